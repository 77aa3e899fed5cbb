//! The slash commands, typed and clicked.

use crate::{
    house::{House, SOON, Talker},
    platforms::on_each_platform,
    scene::{Scene, is_final, slowly},
};
use pudu_sim::{model::Reply, platform::Shown, telegram::Kind};

// On DingTalk a group is one conversation.
on_each_platform!(telegram feishu slack discord => [stop_in_a_group_is_for_the_run_of_who_says_it]);

async fn stop_in_a_group_is_for_the_run_of_who_says_it(scene: Scene) {
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    let begins = async |person: &str, word: &str| {
        scene.house.model.next(slowly(&format!("{word} ").repeat(400)));
        scene.write(&group, person, "talk", true, None);
        let growing = |shown: &[Shown]| shown.iter().find(|shown| shown.text.contains(word)).cloned();
        scene.sees(&group, growing).await.id
    };
    let (hers, his) = (begins(&scene.ada, "hers").await, begins(&bob, "his").await);
    let ended = |shown: &[Shown], id: &str| shown.iter().any(|shown| shown.id == id && is_final(shown));
    scene.write(&group, &scene.ada, "/stop", true, None);
    scene.sees(&group, |shown| ended(shown, &hers).then_some(())).await;
    let answered = |shown: &[Shown]| shown.iter().any(|shown| shown.text == "Stopped.").then_some(());
    scene.sees(&group, answered).await;
    assert!(!ended(&scene.platform.shown(&group), &his), "his goes on");
    scene.write(&group, &bob, "/stop", true, None);
    scene.sees(&group, |shown| ended(shown, &his).then_some(())).await;
}

#[tokio::test]
async fn each_command_answers_once_and_costs_no_model_call() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says(
        "/start",
        "Hello, I am pudu. Send me a message to start a conversation.\n\nType /help for available commands.",
    )
    .await;
    ada.say("/status@pudu_bot");
    ada.reads_so(|text| text.starts_with("No active conversation.")).await;
    ada.says("/memory", "Your admin has turned memory off here.").await;
    ada.says("/retry", "There is no question to ask again yet.").await;
    ada.says("/stop", "Nothing is running.").await;
    ada.says("/new", "New conversation started.").await;
    ada.says("/usage", "Tokens in this conversation: 0 read, 0 written, 0 total, in 0 runs.").await;
    ada.says("/models gpt", "There is no model gpt. Did you mean sim? /models lists the available models.")
        .await;
    ada.says("/models SIM", "This conversation now uses sim.").await;
    ada.says("/mode fast", "There is no mode fast. Choose queue, steer or interrupt.").await;
    ada.say("/sotp");
    let unknown = ada.reads_so(|text| text.starts_with("Unknown command: /sotp. Did you mean /stop?")).await;
    assert!(unknown.contains("/new | "), "{unknown}");
    ada.say("/help");
    let help = ada.reads_so(|text| text.starts_with("Available commands:")).await;
    for command in ["/new", "/status", "/models", "/memory", "/help", "/stop", "/retry", "/usage", "/mode"] {
        assert!(help.contains(command), "{command} is missing in {help}");
    }
    assert_eq!((house.model.count(), ada.answers().len()), (0, 12));
}

#[tokio::test]
async fn new_forgets_and_status_and_usage_tell_the_truth() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("hi").usage(120, 30));
    ada.says("hello", "hi").await;
    ada.say("/usage");
    let usage = ada.reads_so(|text| text.starts_with("Tokens in this conversation: ")).await;
    for part in [
        "Tokens in this conversation: 120 read, 30 written, 150 total, in one run.",
        "The cost of one call is unknown",
        "Your usage today in all chats: 150 tokens.",
    ] {
        assert!(usage.contains(part), "{part} is missing in {usage}");
    }
    ada.say("/status");
    let status = ada.reads_so(|text| text.starts_with("Active thread: ")).await;
    for part in
        ["Model: sim", "State: idle", "Waiting messages: 0", "Tokens: 150 in one run", "telegram is ready"]
    {
        assert!(status.contains(part), "{part} is missing in {status}");
    }
    ada.says("/new", "New conversation started.").await;
    ada.says("who am I?", "echo: who am I?").await;
    assert_eq!(house.model.requests()[1].messages().len(), 2, "only the prompt and the new question");
}

#[tokio::test]
async fn a_choice_is_clicked_instead_of_typed() {
    let house = House::furnish(Default::default(), "", "").await;
    let more = "models:\n  - name: sim\n".to_owned();
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let second = format!(
        "models:\n  - name: other\n    use: langchain_openai:ChatOpenAI\n    model: other-1\n    base_url: {}\n    api_key: sk-none\n  - name: sim\n",
        house.model.url()
    );
    house.write_config(&config.replace(&more, &second));
    let mut house = house;
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.say("/models");
    ada.reads_so(|text| text.contains("other ← in use")).await;
    let list = ada.answers()[0].clone();
    house.telegram.press(ada.chat, ada.person, list.id, "sim").unwrap();
    ada.reads("This conversation now uses sim.").await;
    ada.says("hello", "echo: hello").await;
    assert_eq!(house.model.requests()[0].model(), "sim-1");
}

#[tokio::test]
async fn a_command_in_a_group_concerns_the_conversation_there() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let ada = ada.at(house.telegram.add_group(Kind::Supergroup, "team", &[ada.person]));
    house.model.next(Reply::text("hi").usage(7, 3));
    ada.says("@pudu_bot hello", "hi").await;
    ada.say("/usage@pudu_bot");
    let told = "Tokens in this conversation: 7 read, 3 written, 10 total, in one run.";
    ada.reads_so(|text| text.starts_with(told)).await;
    ada.say("/usage@another_bot");
    ada.say("/help");
    ada.reads_so(|text| text.starts_with("Available commands:")).await;
    assert_eq!(ada.answers().len(), 3, "another bot's command is not ours");
}

#[tokio::test]
async fn retry_asks_the_last_question_again() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("wrong"));
    house.model.next(Reply::text("right"));
    ada.says("6 x 7?", "wrong").await;
    ada.says("/retry", "right").await;
    let requests = house.model.requests();
    assert_eq!(requests[0].messages()[1..], requests[1].messages()[1..], "the wrong answer is taken back");
}

#[tokio::test]
async fn the_menu_is_made_of_the_table() {
    let house = House::open("").await;
    let menu = house.telegram.wait(SOON, |view| {
        view.calls()
            .find(|call| call.method == "setMyCommands")
            .map(|call| call.params["commands"].to_string())
    });
    let menu = menu.await.unwrap();
    assert!(menu.contains("models") && menu.contains("interrupt") || menu.contains("mode"), "{menu}");
}
