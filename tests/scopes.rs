//! No data of one user reaches another. Users of all five platforms, in private chats and in rooms, act at random: they
//! state things, ask, have files and skills written and searched, list, change and export memory, link and unlink,
//! while the daemon is killed now and then. Each statement has a unique mark (`oracle.rs`), and after each step no
//! request to the model, no message and no file in a chat may contain a foreign mark; each user's token usage is exact;
//! and at the end no user's folder contains foreign data. In every fourth world all users share one user
//! (`unpaired_people: shared`), and only rooms are separate.
//!
//! `PUDU_SCOPE_STEPS` sets the number of steps (default 240), `PUDU_SCOPE_SEED` the seed. `scopes/mutants.py` removes
//! the checks one by one and expects this test to fail.

mod oracle;

use crate::{
    house::{House, SOON},
    platforms,
    scene::is_final,
};
use oracle::{ChatId, Mark, Oracle, PersonId, marks};
use pudu_sim::{
    Platform,
    model::{Ask, Reply},
    platform::{Shown, Words},
};
use serde_json::json;
use std::sync::Arc;

/// Number of steps in one world.
const STEPS_OF_A_WORLD: u32 = 500;
/// Number of tokens of one request and its reply.
const TOKENS_OF_A_CALL: u64 = 110;
/// Memory is updated soon, and the lead agent creates skills.
const SETTINGS: &str = "memory: {debounce_seconds: 1}
skill_evolution: {enabled: true}
approvals: {skill_changes: allow}
";
/// A command that prints everything visible in the sandbox.
const LOOK: &str =
    "grep -rhoaE 'zq[0-9]{6}' /mnt /tmp /home /root 2>/dev/null | sort -u | head -c 20000; env";

/// The state of one world.
struct World {
    house: House,
    platforms: Vec<Arc<dyn Platform>>,
    people: Vec<Person>,
    chats: Vec<Chat>,
    oracle: Oracle,
    random: fastrand::Rng,
    /// Number of the model's calls that were checked.
    calls_seen: u64,
    reached: Reached,
}

struct Person {
    id: String,
    chat: ChatId,
}

struct Chat {
    platform: usize,
    id: String,
    /// The user of a private chat, or the users of a room.
    people: Vec<PersonId>,
    /// Number of the bot's messages that were checked.
    seen: usize,
    /// The first message of a reply chain.
    chain: Option<String>,
}

/// Counts of marks that arrived where they belong: a world without any proves nothing.
#[derive(Default, Debug)]
struct Reached {
    recalled: u32,
    skills: u32,
    exports: u32,
    found: u32,
    learnt: u32,
    listed: u32,
    usages: u32,
    joins: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_one_person_reaches_another() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let steps = u32::try_from(number("PUDU_SCOPE_STEPS").unwrap_or(240)).unwrap();
    let seed = number("PUDU_SCOPE_SEED").unwrap_or(1);
    println!("seed {seed}, {steps} steps");
    let mut left = steps;
    for world in 0.. {
        let now = left.min(STEPS_OF_A_WORLD);
        let mut world = World::open(seed.wrapping_add(world)).await;
        for step in 0..now {
            world.step(step).await;
        }
        world.end(now).await;
        left -= now;
        println!("{} steps: {:?}", steps - left, world.reached);
        if left == 0 {
            break;
        }
    }
}

fn learns(ask: &Ask) -> bool {
    ask.last_user().contains("<current_memory>")
}

/// Proposes everything in its context as facts, with a quote of the author.
fn gullible(ask: &Ask) -> Reply {
    let fact = |mark: Mark| {
        json!({
            "content": format!("The favourite thing is {mark}"), "quote": format!("my favourite thing is {mark}"),
            "category": "preference", "confidence": 0.9, "scope": "user", "durability": "durable",
            "authority": "descriptive"
        })
    };
    let facts: Vec<_> = marks(&ask.last_user()).into_iter().map(fact).collect();
    Reply::text(&json!({ "user": {}, "history": {}, "newFacts": facts }).to_string()).usage(0, 0).into()
}

/// Executes the request and answers with its mark.
fn obedient(ask: &Ask) -> Reply {
    let said = ask.last_user();
    let Some(mark) = marks(&said).into_iter().next() else { return Reply::text("what?").into() };
    let reply = match ask.last_role() {
        "tool" => Reply::text(&format!("done {mark}")),
        _ if said.contains("Write down") => Reply::tool(
            "write_file",
            &json!({ "path": format!("/mnt/user-data/workspace/{mark}.txt"), "content": format!("{mark}\n") }),
        ),
        _ if said.contains("Look for") => Reply::tool("bash", &json!({ "command": LOOK })),
        _ if said.contains("Make a skill") => Reply::tool("skill_manage", &skill(mark)),
        _ => Reply::text(&format!("done {mark}")),
    };
    reply.usage(TOKENS_OF_A_CALL - 10, 10).into()
}

fn skill(mark: Mark) -> serde_json::Value {
    let text = format!("---\nname: thing-{mark}\ndescription: For {mark} and nothing else.\n---\n# {mark}\n");
    json!({ "action": "create", "name": format!("thing-{mark}"), "content": text })
}

impl World {
    async fn open(seed: u64) -> Self {
        let platforms = vec![
            platforms::telegram().await,
            platforms::slack().await,
            platforms::feishu().await,
            platforms::dingtalk().await,
            platforms::discord().await,
        ];
        let mut house = House::elsewhere(platforms[0].clone()).await;
        let is_shared = seed % 4 == 3;
        let people = if is_shared { "  unpaired_people: shared\n" } else { "" };
        house.configure_all(&platforms, &format!("{people}{SETTINGS}"));
        house.model.when(learns, gullible);
        house.model.otherwise(obedient);
        let (mut people, mut chats, mut oracle) = (Vec::new(), Vec::new(), Oracle::new(is_shared));
        for (platform, at) in platforms.iter().enumerate().map(|(at, platform)| (platform, at)) {
            let chat = |id, people| Chat { platform: at, id, people, seen: 0, chain: None };
            let mut members = Vec::new();
            for name in ["Ada", "Bob"] {
                let id = platform.person(name);
                let person = oracle.person(platform.name(), &id);
                chats.push(chat(platform.private(&id), vec![person]));
                let own = oracle.private_chat(person);
                people.push(Person { id: id.clone(), chat: own });
                members.push((person, id));
            }
            let ids: Vec<&str> = members.iter().map(|(_, id)| id.as_str()).collect();
            let room = platform.group("Herd", &ids);
            oracle.room(platform.name(), &room);
            chats.push(chat(room, members.iter().map(|(person, _)| *person).collect()));
        }
        // A model call that ends with a task settles what it may have spent; one that ends with a process does not.
        house.in_its_own_process();
        house.start();
        let random = fastrand::Rng::with_seed(seed);
        let world = Self {
            house,
            platforms,
            people,
            chats,
            oracle,
            random,
            calls_seen: 0,
            reached: Reached::default(),
        };
        world.hears().await;
        world
    }

    async fn hears(&self) {
        for platform in &self.platforms {
            let hears = platform.wait("", SOON, |platform| platform.hears().then_some(()));
            hears.await.unwrap_or_else(|timeout| panic!("{timeout}"));
        }
    }

    /// Performs one action, waits for all answers, and checks everything that was sent.
    async fn step(&mut self, step: u32) {
        match self.random.u32(0..100) {
            0 => {
                self.house.kill();
                self.house.start();
                self.hears().await;
            }
            1..=3 => self.joins().await,
            4..=6 => self.parts().await,
            7..=30 => self.commands(step).await,
            _ => self.talk(step).await,
        }
        self.check_calls();
        self.check_chats(step);
    }

    /// Several users in different chats write concurrently.
    async fn talk(&mut self, step: u32) {
        let mut chats: Vec<usize> = (0..self.chats.len()).collect();
        self.random.shuffle(&mut chats);
        chats.truncate(self.random.usize(1..=4));
        let said: Vec<(usize, Mark)> = chats.into_iter().map(|chat| (chat, self.says(chat))).collect();
        for (chat, mark) in said {
            let done = |shown: &[Shown]| {
                shown.iter().rev().any(|one| one.text.contains(&format!("done {mark}")) && is_final(one))
            };
            self.sees(chat, step, done).await;
        }
    }

    fn says(&mut self, chat: usize) -> Mark {
        let person = self.member(chat);
        let mark = self.oracle.state(ChatId(chat), person);
        let text = match self.random.u32(0..10) {
            0..=4 => format!("My favourite thing is {mark}."),
            5..=6 => format!("What is the favourite thing, {mark}?"),
            7 => format!("Write down {mark}."),
            // A user who shares everything changes everybody's skills.
            8 if self.random.bool() && !self.oracle.is_shared => format!("Make a skill of {mark}."),
            _ => format!("Look for {mark}."),
        };
        let is_answer = self.random.u32(0..3) == 0;
        let answers = self.chats[chat].chain.clone().filter(|_| is_answer);
        let message = self.write(chat, person, &text, answers.clone());
        if self.chats[chat].people.len() > 1 && answers.is_none() {
            self.chats[chat].chain = Some(message);
        }
        mark
    }

    fn member(&mut self, chat: usize) -> PersonId {
        let people = &self.chats[chat].people;
        people[self.random.usize(..people.len())]
    }

    fn write(&self, chat: usize, person: PersonId, text: &str, answers: Option<String>) -> String {
        let (chat, person) = (&self.chats[chat], &self.people[person.0]);
        self.platforms[chat.platform].write(&Words {
            chat: chat.id.clone(),
            person: person.id.clone(),
            text: text.to_owned(),
            to_bot: true,
            answers,
            files: Vec::new(),
        })
    }

    async fn sees(&self, chat: usize, step: u32, wanted: impl Fn(&[Shown]) -> bool) -> Vec<Shown> {
        let Chat { platform, id, .. } = &self.chats[chat];
        let found = self.platforms[*platform]
            .wait(id, SOON, |platform| Some(platform.shown(id)).filter(|shown| wanted(shown)))
            .await;
        found.unwrap_or_else(|timeout| panic!("step {step}: {timeout}"))
    }

    /// Sends a command and reads its answer.
    async fn command(&mut self, chat: usize, person: PersonId, text: &str, step: u32) -> String {
        let before = self.shown(chat).iter().filter(|one| is_final(one)).count();
        self.write(chat, person, text, None);
        let more = |shown: &[Shown]| shown.iter().filter(|one| is_final(one)).count() > before;
        let shown = self.sees(chat, step, more).await;
        shown.last().map(|one| one.text.clone()).unwrap_or_default()
    }

    async fn commands(&mut self, step: u32) {
        let chat = self.random.usize(..self.chats.len());
        let person = self.member(chat);
        let is_private = self.chats[chat].people.len() == 1;
        match self.random.u32(0..12) {
            0..=1 => {
                let mark = self.oracle.state(ChatId(chat), person);
                self.command(chat, person, &format!("/memory add my favourite thing is {mark}"), step).await;
            }
            2..=3 => {
                let listed = self.command(chat, person, "/memory", step).await;
                self.reached.listed += u32::from(!marks(&listed).is_empty());
            }
            4 => drop(self.command(chat, person, "/memory search favourite", step).await),
            5 => drop(self.command(chat, person, "/memory last", step).await),
            6 if self.random.u32(0..4) == 0 => {
                drop(self.command(chat, person, "/memory forget all", step).await);
            }
            7 if self.random.bool() => {
                drop(self.command(chat, person, "/memory off", step).await);
                drop(self.command(chat, person, "/memory on", step).await);
            }
            8..=9 => {
                let said = self.command(chat, person, "/usage", step).await;
                match is_private {
                    true => self.check_usage(person, &said),
                    false => assert!(!said.contains("today in all chats"), "told in a room: {said}"),
                }
            }
            10 => drop(self.command(chat, person, "/memory export", step).await),
            _ => drop(self.command(chat, person, "/new", step).await),
        }
    }

    /// A user enters another user's code and confirms it.
    async fn joins(&mut self) {
        if self.oracle.is_shared {
            return;
        }
        let alone = self.oracle.alone();
        let (Some(one), other) =
            (self.random.choice(&alone).copied(), self.random.usize(..self.people.len()))
        else {
            return;
        };
        let other = PersonId(other);
        if self.oracle.is_same(one, other) {
            return;
        }
        let (mine, theirs) = (self.people[one.0].chat, self.people[other.0].chat);
        let offer = self.command(theirs.0, other, "/connect", 0).await;
        let (_, rest) = offer.split_once("/connect ").unwrap_or_else(|| panic!("no code in {offer:?}"));
        let code = rest.split_once('.').unwrap().0.to_owned();
        let before = self.shown(theirs.0).len();
        let done = self.command(mine.0, one, &format!("/connect {code} yes"), 0).await;
        assert!(done.starts_with("Done:"), "{done}");
        self.sees(theirs.0, 0, |shown| shown.len() > before).await;
        self.oracle.join(one, other);
        self.reached.joins += 1;
    }

    async fn parts(&mut self) {
        if self.oracle.is_shared {
            return;
        }
        let together = self.oracle.together();
        let Some(one) = self.random.choice(&together).copied() else { return };
        self.command(self.people[one.0].chat.0, one, "/connect off", 0).await;
        self.oracle.part(one);
    }

    fn shown(&self, chat: usize) -> Vec<Shown> {
        let Chat { platform, id, .. } = &self.chats[chat];
        self.platforms[*platform].shown(id)
    }

    /// Checks the model's new requests.
    fn check_calls(&mut self) {
        for exchange in self.house.model.exchanges() {
            if exchange.n <= self.calls_seen {
                continue;
            }
            self.calls_seen = exchange.n;
            let ask = &exchange.ask;
            let told = marks(&ask.body.to_string());
            if learns(ask) {
                self.reached.learnt += u32::from(!told.is_empty());
                let said = ask.last_user();
                let conversation =
                    said.split_once("<conversation>").map_or("", |(_, conversation)| conversation);
                self.oracle.check_learning(&marks(conversation), &told, &said);
                continue;
            }
            let Some(mark) = marks(&ask.last_user()).into_iter().next() else { continue };
            let chat = self.oracle.chat_of(mark);
            self.oracle.check(chat, &told, &format!("a request about {mark}: {}", ask.body["messages"]));
            self.oracle.spend(mark, TOKENS_OF_A_CALL);
            let last = ask.last_user();
            self.reached.recalled += u32::from(last.contains("<memory>") && marks(&last).len() > 1);
            let found = marks(&ask.last_tool());
            self.reached.found += u32::from(found.len() > 1);
            self.oracle.find(chat, found);
            let system = ask.messages().first().map(|system| marks(&system["content"].to_string()));
            self.reached.skills += u32::from(system.is_some_and(|of_skills| !of_skills.is_empty()));
        }
    }

    /// Checks the bot's new messages in all chats.
    fn check_chats(&mut self, step: u32) {
        for chat in 0..self.chats.len() {
            let shown = self.shown(chat);
            for one in &shown[self.chats[chat].seen.min(shown.len())..] {
                let files = one.files.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes));
                let text = [one.text.as_str().into()].into_iter().chain(files).collect::<Vec<_>>().join("\n");
                self.reached.exports += u32::from(!one.files.is_empty() && !marks(&text).is_empty());
                self.oracle.check(ChatId(chat), &marks(&text), &format!("step {step}: {text:?}"));
            }
            self.chats[chat].seen = shown.len();
        }
    }

    fn check_usage(&mut self, person: PersonId, said: &str) {
        self.check_calls();
        let told = said.split_once("today in all chats: ").map(|(_, rest)| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        });
        // Without a conversation there is no usage.
        if said.contains("tokens") {
            assert_eq!(told.unwrap_or(0), self.oracle.spent(person), "usage of {person:?}: {said}");
            self.reached.usages += 1;
        }
    }

    /// Checks the files of memory, and whether anything arrived where it belongs.
    async fn end(&mut self, steps: u32) {
        assert!(self.house.stop().await.success());
        self.check_calls();
        for user in std::fs::read_dir(self.house.path(".pudu/users")).unwrap().flatten() {
            let mut kept = walk(&user.path().join("agents"));
            kept.extend(walk(&user.path().join("skills")));
            kept.extend(std::fs::read_to_string(user.path().join("memory.json")));
            self.oracle.check_folder(&user.file_name().to_string_lossy(), &marks(&kept.join("\n")));
        }
        assert!(self.platforms.iter().all(|platform| platform.misused().is_empty()));
        let Reached { recalled, skills, exports, found, learnt, listed, usages, joins } = self.reached;
        let shared = u32::from(self.oracle.is_shared);
        let (joins, skills) = (joins + shared, skills + shared);
        let least = [recalled, skills, exports, found, learnt, listed, usages, joins].into_iter().min();
        assert!(steps < 200 || least > Some(0), "nothing is proven by {:?}", self.reached);
    }
}

/// Returns the texts of all files in a folder.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => texts.extend(walk(&entry.path())),
            false => texts.extend(std::fs::read_to_string(entry.path())),
        }
    }
    texts
}
