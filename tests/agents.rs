//! Custom agents, through the real daemon: created, chosen and changed in a chat, limited by their files, and
//! inaccessible if the bot's configuration names its agent.

mod changes;
mod own;

use crate::{
    house::{House, SOON, Talker, http},
    platforms::on_each_platform,
    scene::{Scene, last},
};
use pudu_sim::{
    model::{Ask, At, Reply},
    platform::Shown,
    telegram::{Kind, Post},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;

/// Lets the agent run commands.
const SHELL: &str = "sandbox:\n  allow_host_bash: true\n";

impl House {
    /// Writes an agent's files like an operator.
    fn write_agent(&self, name: &str, config: &str, soul: &str) {
        let folder = self.path(format!(".pudu/users/default/agents/{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.yaml"), config).unwrap();
        std::fs::write(folder.join("SOUL.md"), soul).unwrap();
    }

    /// Reads the SOUL.md of any user's agent.
    fn soul_of(&self, name: &str) -> String {
        let users = std::fs::read_dir(self.path(".pudu/users")).unwrap().flatten();
        let souls = users.map(|user| user.path().join(format!("agents/{name}/SOUL.md")));
        std::fs::read_to_string(souls.into_iter().find(|soul| soul.is_file()).unwrap()).unwrap()
    }
}

/// Setting of a bot that makes a user its approver.
fn approver(talker: &Talker) -> String {
    format!("approvers: [{}]\n", talker.person)
}

/// Returns the newest request to the model.
fn asked(house: &House) -> Arc<Ask> {
    house.model.requests().last().unwrap().clone()
}

fn system(ask: &Ask) -> &str {
    ask.messages()[0]["content"].as_str().unwrap()
}

#[tokio::test]
async fn an_agent_is_made_in_the_chat_and_answers_from_then_on_after_a_restart_too() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    house.model.next(Reply::text("What about?"));
    ada.says("/agent new Poet writes poems", "What about?").await;
    let guided = asked(&house);
    assert_eq!(guided.tools(), ["ask_clarification", "setup_agent"], "nothing else can be done meanwhile");
    assert!(system(&guided).contains("Its name is `poet`") && !system(&guided).contains("You are pudu"));
    assert_eq!(guided.last_user(), "/agent new Poet writes poems");
    assert_eq!(guided.messages().len(), 2, "a conversation of its own");
    ada.say("/status");
    ada.reads_so(|text| text.contains("Agent: poet (in progress)")).await;

    let made = json!({"soul": "You are a poet of deer.", "description": "Writes poems. And more."});
    house.model.next(Reply::tool("setup_agent", &made));
    house.model.next(Reply::text("Made."));
    ada.says("about deer", "Made.").await;
    assert!(asked(&house).last_tool().starts_with("The agent `poet` is created."));
    assert_eq!(house.soul_of("poet"), "You are a poet of deer.\n");

    ada.says("a poem!", "echo: a poem!").await;
    let answered = asked(&house);
    assert!(system(&answered).contains("<soul>\nYou are a poet of deer.\n</soul>"), "{}", system(&answered));
    assert!(answered.tools().contains(&"update_agent") && answered.tools().contains(&"read_file"));
    assert!(!answered.tools().contains(&"setup_agent"));
    assert!(answered.body.to_string().contains("about deer"), "it knows what it was made of");

    house.kill();
    house.start();
    ada.says("/new", "New conversation started.").await;
    ada.says("another!", "echo: another!").await;
    assert!(system(&asked(&house)).contains("poet of deer"), "the choice is the conversation's and stays");
    ada.say("/agent");
    let list = ada.reads_so(|text| text.starts_with("Agents:")).await;
    assert!(list.contains("lead_agent: the default agent\n"), "{list}");
    assert!(list.contains("poet: Writes poems ← answers here"), "{list}");
    let list = ada.answers().last().unwrap().clone();
    house.telegram.press(ada.chat, ada.person, list.id, "lead_agent").unwrap();
    ada.reads("lead_agent answers here from now on.").await;
    ada.says("and you?", "echo: and you?").await;
    assert!(!system(&asked(&house)).contains("<soul>"));
    ada.says("/agent pot", "There is no agent pot. Did you mean poet? /agent lists the agents.").await;
    ada.says("/agent POET", "poet answers here from now on: Writes poems.").await;
    ada.says("/agent default", "lead_agent answers here from now on.").await;
    let audit = house.audit(&[]);
    let deed = audit.lines().find(|line| line.contains("setup_agent")).unwrap_or_else(|| panic!("{audit}"));
    assert!(deed.contains("allowed  exit 0  poet: Writes poems. And more."), "{deed}");
}

#[tokio::test]
async fn a_restart_while_an_agent_is_made_makes_it_once_and_answers() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let made = json!({"soul": "You are a poet.", "description": "Writes."});
    house.model.next(Reply::tool("setup_agent", &made));
    let mut hold = house.model.hold(2, At::Start);
    ada.say("/agent new poet all is said");
    hold.reached().await.unwrap();
    assert_eq!(house.soul_of("poet"), "You are a poet.\n");
    house.kill();
    house.start();
    hold.cut();
    ada.reads("echo: /agent new poet all is said").await;
    assert_eq!(ada.answers().len(), 1);
    ada.says("hello", "echo: hello").await;
    assert!(system(&asked(&house)).contains("You are a poet."));
}

#[tokio::test]
async fn in_a_group_an_agent_is_made_and_answers_in_its_chain_and_questions_of_others_go_on_as_before() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let group = house.telegram.add_group(Kind::Supergroup, "team", &[ada.person]);
    let ada = ada.at(group);
    let reply = |text: &str| {
        let last = ada.answers().last().unwrap().id;
        house.telegram.post(group, ada.person, &Post::text(text).reply_to(last)).unwrap();
    };
    house.model.next(Reply::text("What about?"));
    ada.says("/agent@pudu_bot new poet", "What about?").await;
    let made = json!({"soul": "You are a poet.", "description": "Writes."});
    house.model.next(Reply::tool("setup_agent", &made));
    house.model.next(Reply::text("Made."));
    reply("deer");
    ada.reads("Made.").await;
    reply("a poem");
    ada.reads("echo: [Ada] a poem").await;
    assert!(system(&asked(&house)).contains("You are a poet."));
    ada.says("@pudu_bot what is new?", "echo: [Ada] what is new?").await;
    assert!(!system(&asked(&house)).contains("You are a poet."), "a new question, a new conversation");
}

#[tokio::test]
async fn making_can_be_given_up_and_a_name_that_cannot_be_is_refused_with_the_reason() {
    let house = House::build("").await;
    house.write_agent("poet", "", "You write.");
    let mut house = house;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let how = "Write /agent new NAME, followed by the agent's purpose.";
    ada.says("/agent new", &format!("The new agent needs a name. {how}")).await;
    ada.says("/agent new poet", &format!("The agent poet exists already. {how}")).await;
    ada.says(
        "/agent new default",
        &format!("default cannot be an agent's name: it has another meaning. {how}"),
    )
    .await;
    let letters = "use letters, digits and hyphens";
    ada.says("/agent new ../x", &format!("../x cannot be an agent's name: {letters}. {how}")).await;
    assert_eq!(house.model.count(), 0);
    house.model.next(Reply::tool("setup_agent", &json!({"soul": " ", "description": "a"})));
    house
        .model
        .next(Reply::tool("setup_agent", &json!({"soul": "a", "description": "a", "skills": ["none"]})));
    house.model.next(Reply::tool("bash", &json!({"description": "a", "command": "ls"})));
    house.model.next(Reply::text("Hm."));
    ada.says("/agent new critic", "Hm.").await;
    let told = |n: usize| house.model.requests()[n].last_tool();
    assert!(told(1).contains("neither the soul nor the description may be empty"), "{}", told(1));
    assert!(told(2).contains("there is no skill none; there are: "), "{}", told(2));
    assert!(told(3).contains("ask_clarification, setup_agent"), "{}", told(3));
    ada.says("/skills", "There are no skills here.").await;
    let gone = "New conversation started. I did not create the agent that you were designing here.";
    ada.says("/new", gone).await;
    ada.says("hello", "echo: hello").await;
    assert!(system(&asked(&house)).contains("You are pudu"));
}

#[tokio::test]
async fn an_agent_and_its_sub_agents_have_the_tools_and_skills_that_its_file_says() {
    let house = House::build("").await;
    house.configure("", SHELL);
    house.write_agent(
        "reader",
        "description: Reads.\ntool_groups: ['file:read', typo]\nskills: [deep-research, missing]\nmodel: nothing\n",
        "You read.",
    );
    house.write_agent("bare", "tool_groups: []\nskills: []\n", "You are bare.");
    let mut house = house;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.configure(&approver(&ada), SHELL);
    ada.says("hello", "echo: hello").await;
    let all: Vec<String> = asked(&house).tools().iter().map(|&tool| tool.to_owned()).collect();
    assert!(
        ["bash", "web_search", "write_file"].iter().all(|tool| all.contains(&(*tool).to_owned())),
        "{all:?}"
    );

    ada.say("/agent reader");
    let switched = ada.reads_so(|text| text.starts_with("reader answers here from now on: Reads.")).await;
    for note in [
        "there is no model nothing, so the default model is used",
        "there is no tool group typo (there are: bash, file:read, file:write, web)",
        "there is no skill missing",
    ] {
        assert!(switched.contains(note), "{switched}");
    }
    let hidden = json!({"path": "/mnt/skills/public/code-review/SKILL.md"});
    let shown = json!({"path": "/mnt/skills/public/deep-research/SKILL.md"});
    house.model.next(Reply::tool("read_file", &hidden));
    house.model.next(Reply::tool("read_file", &shown));
    let work = json!({"description": "look", "prompt": "look around", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &work));
    house.model.next(Reply::text("Looked."));
    house.model.next(Reply::text("Done."));
    ada.says("read", "Done.").await;
    let requests = house.model.requests();
    let first = &requests[1];
    let expect = [
        "ls",
        "read_file",
        "glob",
        "grep",
        "present_files",
        "list_uploaded_files",
        "ask_clarification",
        "write_todos",
        "task",
        "update_agent",
    ];
    assert_eq!(first.tools(), expect);
    assert!(system(first).contains("- deep-research: ") && !system(first).contains("- code-review: "));
    assert_eq!(
        requests[2].last_tool(),
        "Error: /mnt/skills/public/code-review/SKILL.md is outside the sandbox: use a path under /mnt/user-data"
    );
    assert!(requests[3].last_tool().contains("# Deep research"), "{}", requests[3].last_tool());
    assert_eq!(requests[4].last_user(), "look around");
    let expect = ["ls", "read_file", "glob", "grep", "list_uploaded_files"];
    assert_eq!(requests[4].tools(), expect, "a sub-agent has no more, and is nobody who could be changed");
    let note = "ignored part of agent file";
    ada.says("again", "echo: again").await;
    assert_eq!(house.log().matches(note).count(), 3, "each is in the log once:\n{}", house.log());

    ada.say("/code-review this");
    ada.reads("The skill /code-review is not available to reader. /skills lists the available skills.").await;
    ada.say("/skills");
    let list = ada.reads_so(|text| text.starts_with("Skills:")).await;
    assert!(list.contains("/deep-research") && !list.contains("/code-review"), "{list}");
    house.model.next(Reply::text("It is deep."));
    ada.says("/deep-research the sea", "It is deep.").await;
    assert!(asked(&house).last_user().contains("<skill name=\"deep-research\""));

    ada.says("/agent bare", "bare answers here from now on.").await;
    ada.says("hello", "echo: hello").await;
    let bare = asked(&house);
    assert!(
        ["ls", "bash", "web_fetch"].iter().all(|tool| !bare.tools().contains(tool)),
        "{:?}",
        bare.tools()
    );
    assert!(bare.tools().contains(&"present_files") && !system(&bare).contains("<skills>"));
}

#[tokio::test]
async fn an_agent_has_its_model_until_people_choose_another() {
    let house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let model = format!(
        "  - name: other\n    use: langchain_openai:ChatOpenAI\n    model: other-1\n    base_url: {}\n    api_key: sk-none\nchannels:\n",
        house.model.url()
    );
    house.write_config(&config.replace("channels:\n", &model));
    house.write_agent("thinker", "model: other\n", "You think.");
    let mut house = house;
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("one", "echo: one").await;
    ada.says("/agent thinker", "thinker answers here from now on.").await;
    ada.says("two", "echo: two").await;
    ada.say("/status");
    ada.reads_so(|text| text.contains("Agent: thinker\n") && text.contains("Model: other\n")).await;
    ada.says("/models sim", "This conversation now uses sim.").await;
    ada.says("three", "echo: three").await;
    let models: Vec<String> = house.model.requests().iter().map(|ask| ask.model().to_owned()).collect();
    assert_eq!(models, ["sim-1", "other-1", "sim-1"]);
}

#[tokio::test]
async fn a_command_finds_no_skill_that_its_agent_does_not_have() {
    let house = House::build("").await;
    house.write_agent("reader", "skills: [deep-research]\n", "You read.");
    let mut house = house;
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("/agent reader", "reader answers here from now on.").await;
    let look = json!({"description": "look", "command": "ls /mnt/skills/public"});
    house.model.next(Reply::tool("bash", &look));
    house.model.next(Reply::text("Done."));
    ada.says("look", "Done.").await;
    if !house.model.requests()[0].tools().contains(&"bash") {
        println!("skipped: commands cannot be confined here");
        return;
    }
    assert_eq!(asked(&house).last_tool(), "deep-research");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_breaks_answers_nobody_and_says_so_where_people_see_it() {
    let house = House::open("").await;
    house.write_agent("careful", "tool_groups: []\n", "You are careful.");
    let ada = Talker::new(&house, "Ada");
    ada.says("/agent careful", "careful answers here from now on.").await;
    house.write_agent("careful", "tool_groups: none\n", "You are careful.");
    ada.say("run something");
    let said = ada.reads_so(|text| text.contains("The agent careful cannot be used")).await;
    assert!(said.contains("its config.yaml cannot be used: tool_groups must be a list of names"), "{said}");
    assert_eq!(house.model.count(), 0, "nobody answers in its place with more tools than it has");
    ada.say("/agent");
    let list = ada.reads_so(|text| text.starts_with("Agents:")).await;
    assert!(list.contains("⚠️ careful does not work: its config.yaml cannot be used"), "{list}");
    ada.say("/agent careful");
    ada.reads_so(|text| {
        text.starts_with("The agent careful cannot be used") && text.ends_with("the agents.")
    })
    .await;
    assert!(house.log().contains("failed to load agent"), "{}", house.log());
    let (_, listed) = house.pudu(&["agent", "list"]);
    assert!(listed.contains("BROKEN  careful"), "{listed}");
    let (ok, found) = house.pudu(&["doctor"]);
    assert!(!ok && found.contains("agents\n  BAD   careful: its config.yaml cannot be used"), "{found}");
    house.write_agent("careful", "tool_groups: []\n", "You are careful.");
    ada.says("again", "echo: again").await;
}

#[tokio::test]
async fn what_an_agent_that_broke_did_not_answer_is_asked_again_when_it_is_mended() {
    let house = House::open("").await;
    house.write_agent("careful", "tool_groups: []\n", "You are careful.");
    let ada = Talker::new(&house, "Ada");
    ada.says("/agent careful", "careful answers here from now on.").await;
    ada.says("one", "echo: one").await;
    house.write_agent("careful", "tool_groups: none\n", "You are careful.");
    ada.say("two");
    ada.reads_so(|text| text.contains("The agent careful cannot be used")).await;
    house.write_agent("careful", "tool_groups: []\n", "You are careful.");
    let failed = ada.answers().last().unwrap().id;
    house.telegram.press(ada.chat, ada.person, failed, "Try again").unwrap();
    ada.reads("echo: two").await;
    let ask = asked(&house);
    let said: Vec<&str> = ask.messages()[1..].iter().filter_map(|m| m["content"].as_str()).collect();
    assert_eq!(said, ["one", "echo: one", "two"]);
}

#[tokio::test]
async fn an_answer_that_a_crash_cut_is_delivered_though_its_agent_broke_meanwhile() {
    let mut house = House::build("session: {assistant_id: careful}\n").await;
    house.write_agent("careful", "tool_groups: []\n", "You are careful.");
    house.set("PUDU_CRASH_AT", "turn.conclude.before#1");
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.say("one");
    assert!(house.ended(SOON).await.is_some());
    house.write_agent("careful", "tool_groups: none\n", "You are careful.");
    house.set("PUDU_CRASH_AT", "");
    house.start();
    ada.reads("echo: one").await;
    assert_eq!((house.model.count(), ada.answers().len()), (1, 1));
}

#[tokio::test]
async fn an_agent_that_was_just_made_stays_when_a_new_conversation_begins() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let made = json!({"soul": "You are a poet.", "description": "Writes."});
    house.model.next(Reply::tool("setup_agent", &made));
    house.model.next(Reply::text("Made."));
    ada.says("/agent new poet all is said", "Made.").await;
    ada.says("/new", "New conversation started.").await;
    ada.says("a poem", "echo: a poem").await;
    assert!(system(&asked(&house)).contains("You are a poet."));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_account_names_an_agent_nobody_switches_makes_or_changes_one() {
    let mut house = House::build("").await;
    house.write_agent("support", "tool_groups: []\n", "You support.");
    house.write_agent("secret", "", "You are secret.");
    let named = "session: {assistant_id: support}\n";
    house.configure(&format!("{named}agent_choice: create\n"), "");
    let (_, found) = house.pudu(&["doctor"]);
    assert!(found.contains("agents\n  ok    secret: can answer\n  ok    support: can answer\n"), "{found}");
    house.write_agent("odd", "model: big\n", "You are odd.");
    let (_, found) = house.pudu(&["doctor"]);
    assert!(found.contains("poor  odd: there is no model `big`, so the default model is used\n"), "{found}");
    house.configure("session: {assistant_id: nobody}\n", "");
    let (ok, found) = house.pudu(&["doctor"]);
    let missing = "BAD   channels.telegram.session.assistant_id: There is no agent `nobody`";
    assert!(!ok && found.contains(missing), "{found}");
    let (ok, checked) = house.pudu(&["config", "check"]);
    let missing =
        "warning: channels.telegram.session.assistant_id: There is no agent `nobody`\n  help: create it";
    assert!(ok && checked.contains(missing), "{checked}");
    house.configure(&format!("{named}agent_choice: create\n"), "");
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("/agent secret", "secret answers here from now on.").await;
    ada.says("hello", "echo: hello").await;
    assert!(system(&asked(&house)).contains("You are secret."));

    house.configure(named, "");
    ada.says("who is it?", "echo: who is it?").await;
    let ask = asked(&house);
    assert!(system(&ask).contains("You support."), "a choice from before does not count");
    assert!(!ask.tools().contains(&"update_agent") && !ask.tools().contains(&"bash"), "{:?}", ask.tools());
    let fixed = "Your admin chose the agent for this chat; it cannot be changed here.";
    ada.says("/agent", &format!("support answers here. {fixed}")).await;
    for words in ["/agent lead", "/agent secret", "/agent nobody", "/agent new mine", "/agent -"] {
        let before = ada.answers().len();
        ada.say(words);
        let answered = house.telegram.wait(SOON, |view| {
            let answers = view.answers(ada.chat);
            (answers.len() > before).then(|| answers.last().unwrap().text.clone())
        });
        assert_eq!(answered.await.unwrap(), fixed, "{words}");
    }
    let before = house.model.count();
    house.configure(&format!("{named}agent_choice: choose\n"), "");
    ada.says("/agent new mine", "Only admins of this bot create agents here. /agent lists the agents.").await;
    ada.says("/agent default", "support answers here from now on.").await;
    ada.says("/agent lead_agent", "lead_agent answers here from now on.").await;
    ada.says("at last", "echo: at last").await;
    assert!(!asked(&house).tools().contains(&"update_agent"));
    assert_eq!(house.model.count(), before + 1);
}

impl House {
    async fn call(&self, method: Method, path: &str, token: bool, body: &Value) -> (u16, Value) {
        let mut call = http().request(method, format!("http://{}{path}", self.address)).json(body);
        if token {
            let token = std::fs::read_to_string(self.path(".pudu/gateway-token")).unwrap();
            call = call.bearer_auth(token.trim());
        }
        let answer = call.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }
}

#[tokio::test]
async fn the_api_is_there_when_it_is_switched_on_and_changes_nothing_without_the_token() {
    let house = House::open("").await;
    let none = Value::Null;
    let (status, told) = house.call(Method::GET, "/api/agents", true, &none).await;
    assert_eq!(status, 403);
    assert!(told["detail"].as_str().unwrap().contains("agents_api: {enabled: true}"), "{told}");
    house.configure("", "agents_api: {enabled: true}\n");
    let switched = async {
        while house.call(Method::GET, "/api/agents", false, &none).await.0 != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, switched).await.unwrap();
    let poet = json!({"name": "Poet", "description": "Writes.", "soul": "You write.", "skills": []});
    assert_eq!(house.call(Method::POST, "/api/agents", false, &poet).await.0, 401);
    let shown = json!({"name": "poet", "description": "Writes.", "model": null, "tool_groups": null, "skills": [], "soul": "You write.", "model_settings": null, "thinking_enabled": null, "reasoning_effort": null});
    assert_eq!(house.call(Method::POST, "/api/agents", true, &poet).await, (201, shown.clone()));
    assert_eq!(house.call(Method::POST, "/api/agents", true, &poet).await.0, 409);
    for (body, expect) in [
        (json!({"name": "a/b"}), 422),
        (json!({"name": "new"}), 422),
        (json!({"name": "b", "model": "none"}), 422),
        (json!({"name": "b", "soul": "x".repeat(70_000)}), 422),
        (json!({"name": "b", "tool_groups": "web"}), 422),
        // If this key were ignored, the agent would have all tools.
        (json!({"name": "b", "soul": "x", "tools": ["bash"]}), 422),
    ] {
        assert_eq!(house.call(Method::POST, "/api/agents", true, &body).await.0, expect, "{body:.40}");
    }
    let check = async |name: &str| {
        house.call(Method::GET, &format!("/api/agents/check?name={name}"), false, &none).await
    };
    assert_eq!(check("POET").await, (200, json!({"available": false, "name": "poet"})));
    assert_eq!(check("critic").await, (200, json!({"available": true, "name": "critic"})));
    assert_eq!(check("a%2Fb").await.0, 422);
    let edit = json!({"skills": null, "tool_groups": ["web"], "description": "Rhymes."});
    assert_eq!(house.call(Method::PUT, "/api/agents/poet", false, &edit).await.0, 401);
    let (status, now) = house.call(Method::PUT, "/api/agents/poet", true, &edit).await;
    let expect = json!({"name": "poet", "description": "Rhymes.", "model": null, "tool_groups": ["web"], "skills": null, "soul": "You write.", "model_settings": null, "thinking_enabled": null, "reasoning_effort": null});
    assert_eq!((status, &now), (200, &expect));
    assert_eq!(house.call(Method::GET, "/api/agents/Poet", false, &none).await, (200, expect.clone()));
    let all = json!({"agents": [expect], "broken": []});
    assert_eq!(house.call(Method::GET, "/api/agents", false, &none).await, (200, all));
    assert_eq!(house.call(Method::DELETE, "/api/agents/poet", false, &none).await.0, 401);
    assert_eq!(house.call(Method::DELETE, "/api/agents/poet", true, &none).await.0, 204);
    assert_eq!(house.call(Method::GET, "/api/agents/poet", false, &none).await.0, 404);
    let old = house.path(".pudu/agents/old");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("SOUL.md"), "You are old.").unwrap();
    assert_eq!(house.call(Method::GET, "/api/agents/old", false, &none).await.0, 200);
    assert_eq!(house.call(Method::DELETE, "/api/agents/old", true, &none).await.0, 409);
}

#[tokio::test]
async fn the_command_line_makes_lists_shows_and_removes() {
    let house = House::build("").await;
    std::fs::write(house.path("soul.md"), "You write poems.").unwrap();
    let new = [
        "agent",
        "new",
        "Poet",
        "--soul",
        "soul.md",
        "--description",
        "Writes. A lot.",
        "--tool-groups",
        "web, bash",
        "--skills",
        "",
    ];
    assert_eq!(house.pudu(&new), (true, "Created poet; /agent poet in a chat switches to it.\n".into()));
    let (ok, said) = house.pudu(&new);
    assert!(!ok && said.contains("the agent `poet` already exists"), "{said}");
    assert_eq!(house.pudu(&["agent", "list"]), (true, "poet  Writes\n".into()));
    let shown = "poet\n  Writes. A lot.\n  model       the default\n  tool groups web, bash\n  skills      none\n\nYou write poems.\n";
    assert_eq!(house.pudu(&["agent", "show", "POET"]), (true, shown.into()));
    let (ok, said) = house.pudu(&["agent", "show", "../x"]);
    assert!(!ok && said.contains("letters, digits and hyphens"), "{said}");
    assert_eq!(house.pudu(&["agent", "remove", "poet"]), (true, "Removed poet.\n".into()));
    assert_eq!(house.pudu(&["agent", "list"]), (true, "There are no agents.\n".into()));
}

on_each_platform!([an_agent_is_chosen_by_a_slash]);

async fn an_agent_is_chosen_by_a_slash(scene: Scene) {
    scene.house.write_agent("poet", "description: Writes poems.\n", "You write poems.");
    scene.say("/agent");
    let listed = |shown: &[Shown]| last(shown).filter(|text| text.contains("Writes poems"));
    scene.sees(&scene.chat, listed).await;
    scene.say("/agent poet");
    let switched = |shown: &[Shown]| last(shown).filter(|text| text.contains("answers here from now on"));
    scene.sees(&scene.chat, switched).await;
    scene.house.model.next(Reply::text("Waves."));
    scene.say("the sea");
    scene.reads(&scene.chat, "Waves.").await;
    assert!(system(&asked(&scene.house)).contains("You write poems."));
}

#[tokio::test]
async fn what_an_agents_model_is_told_can_be_looked_at_without_asking_it() {
    let data = tempfile::tempdir().unwrap();
    let rest = format!(
        "sandbox:\n  allow_host_bash: true\n  mounts:\n    - host_path: {}\n      container_path: /mnt/data\n      read_only: true\n",
        data.path().display()
    );
    let house = House::furnish(Default::default(), "", &rest).await;
    let (good, told) = house.pudu(&["explain"]);
    assert!(good, "{told}");
    for words in [
        "model: sim, with a window of 128000 tokens\n",
        "   2. skill_policy\n",
        "  bash (about ",
        "--- role (about ",
        "You are pudu, an assistant",
        "- /mnt/data (to read)",
        "At most 3 work side by side in one reply; calls beyond that are dropped. A run may start 6 in all",
        "--- skills (about ",
    ] {
        assert!(told.contains(words), "{words:?} is not in {told}");
    }
    assert_eq!(house.model.count(), 0, "nobody is asked");
    let (good, told) = house.pudu(&["explain", "--model", "sin"]);
    assert!(!good && told.contains("there is no model `sin`; did you mean `sim`?"), "{told}");
    let (good, told) = house.pudu(&["explain", "--agent", "nobody"]);
    assert!(!good && told.contains("There is no agent `nobody`"), "{told}");
}

#[tokio::test]
async fn what_an_agents_file_says_of_its_model_is_in_its_requests_and_in_nobody_elses() {
    let mut house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let model = "    model: sim-1\n    temperature: 1.0\n    max_tokens: 900\n    supports_thinking: true\n    \
                 supports_reasoning_effort: true\n";
    house.write_config(&config.replace("    model: sim-1\n", model));
    let settings = "model_settings: {temperature: 0.25, max_tokens: 77}\nreasoning_effort: low\n";
    house.write_agent("poet", settings, "You write poems.");
    house.write_agent("sloth", "model_settings: {max_tokens: 0}\n", "You are slow.");
    house.start();
    let ada = Talker::new(&house, "Ada");
    let told = |house: &House| {
        let body = &asked(house).body;
        ["temperature", "max_tokens", "reasoning_effort"].map(|key| body[key].clone())
    };
    ada.says("hello", "echo: hello").await;
    assert_eq!(told(&house), [json!(1.0), json!(900), Value::Null]);
    ada.say("/agent poet");
    ada.reads_so(|text| text.contains("poet")).await;
    ada.says("a poem", "echo: a poem").await;
    assert_eq!(told(&house), [json!(0.25), json!(77), json!("low")]);
    ada.say("/think high");
    ada.reads_so(|text| text.starts_with("Thinking is set to high here")).await;
    ada.says("another", "echo: another").await;
    assert_eq!(told(&house), [json!(0.25), json!(77), json!("high")], "what people chose comes first");
    ada.say("/agent sloth");
    ada.reads_so(|text| text.contains("model_settings.max_tokens must be a whole number from 1 to 200000"))
        .await;
}
