//! The language of pudu's own texts: the bot's, or else the user's if the platform reports it.

use crate::{
    house::{House, SOON, Talker, http},
    slack::Office,
};
use pudu_sim::{
    model::Reply,
    platform::{Platform, Shown},
    telegram::Seen,
};
use serde_json::{Value, json};

/// Returns the parts of the English catalogue's texts between arguments.
fn english() -> Vec<&'static str> {
    let catalogue = include_str!("../crates/texts/catalogue/en.ftl");
    let values = catalogue.lines().filter(|line| !line.starts_with('#'));
    let values = values.map(|line| line.split_once(" = ").map_or(line, |(_, value)| value));
    // Text in backticks is code, the same in every language.
    let values = values.flat_map(|value| value.split('`').step_by(2));
    let pieces = values.flat_map(|value| value.split(['{', '}', '[', ']', '*', '/']));
    let words =
        |piece: &&str| piece.len() >= 4 && !piece.contains('$') && piece.contains(char::is_alphabetic);
    pieces.map(str::trim).filter(words).collect()
}

/// Collects the user-visible texts of a call, including labels of buttons and commands.
fn read(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if key == "text" || key == "description" => texts.push(text.clone()),
                    value => read(value, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| read(value, texts)),
        Value::String(text) => {
            if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                read(&inner, texts);
            }
        }
        _ => {}
    }
}

/// Fails if the bot sent English text of the catalogue.
fn speaks_no_english(house: &House) {
    let english = english();
    assert!(english.len() > 150 && english.contains(&"Stopped."), "{english:?}");
    let mut texts = Vec::new();
    house.telegram.look(|view| {
        view.calls().for_each(|call| read(&json!(call.params), &mut texts));
    });
    assert!(texts.iter().any(|text| text == "重试") && texts.len() > 40, "{texts:?}");
    for text in texts {
        // Commands, code and names are not translated.
        let text: String =
            text.split("</code>").map(|part| part.split("<code>").next().unwrap_or_default()).collect();
        let is_word = |word: &&str| !word.starts_with('/');
        let words: Vec<&str> = text.split([' ', '\n', '、', '：']).filter(is_word).collect();
        let text = words.join(" ");
        let found: Vec<_> = english.iter().filter(|words| text.contains(**words)).collect();
        assert!(found.is_empty(), "{found:?} in {text}");
    }
}

fn button(one: &Seen, label: &str) -> bool {
    one.buttons.iter().flatten().any(|button| button.text == label)
}

#[tokio::test]
async fn an_account_in_chinese_says_everything_in_chinese() {
    let house = House::build("").await;
    let (ada, eve) = (Talker::new(&house, "Ada"), Talker::new(&house, "Eve"));
    let account = format!("language: zh\nallowed_users: {}", ada.person);
    house.configure(&account, "approvals: {tools: [write_file]}\n");
    let mut house = house;
    house.start();
    eve.say("let me in");
    eve.reads(&format!("我还不认识你，暂时不能回答。请让管理员添加你的 ID：{}", eve.person)).await;
    ada.says("/start", "你好，我是 pudu。给我发条消息就可以开始对话。\n\n发送 /help 查看可用命令。").await;
    ada.say("/help");
    let help = ada.reads_so(|text| text.starts_with("可用命令：")).await;
    assert!(help.contains("/models [名称] — 查看或切换模型"), "{help}");
    for command in ["/status", "/models", "/agent", "/mode", "/usage", "/memory", "/sotp"] {
        let before = ada.answers().len();
        ada.say(command);
        house
            .telegram
            .wait(SOON, |view| (view.answers(ada.chat).len() > before).then_some(()))
            .await
            .unwrap();
    }
    ada.says("/stop", "当前没有正在进行的任务。").await;
    ada.says("/new", "已开始新对话。").await;

    house
        .model
        .next(Reply::tool("write_file", &json!({"path": "/mnt/user-data/outputs/a.txt", "content": "x"})));
    ada.say("write it");
    let asked = house.telegram.wait(SOON, |view| {
        view.answers(ada.chat).into_iter().find(|one| button(one, "同意") && button(one, "拒绝"))
    });
    let asked = asked.await.unwrap();
    assert!(asked.text.contains("🔐 可以执行吗？write_file"), "{}", asked.text);
    assert!(asked.text.contains("等你决定…") && button(&asked, "停止"), "{asked:?}");
    house.telegram.press(ada.chat, ada.person, asked.id, "同意").unwrap();
    ada.reads_so(|text| text.contains("✅ Ada 同意了 write_file") && text.contains("echo:")).await;

    house.model.next(Reply::status(401).message("x"));
    ada.say("hi");
    ada.reads_so(|text| text.contains("⚠️ 模型服务商拒绝了密钥，请联系管理员处理，原因见日志。")).await;
    let failed = ada.answers().pop().unwrap();
    assert!(button(&failed, "重试"), "{failed:?}");
    speaks_no_english(&house);
}

#[tokio::test]
async fn each_person_is_answered_in_their_own_language_unless_the_account_has_one() {
    let mut house = House::open("").await;
    let person = |name: &str, language: &str| {
        let person = Talker::new(&house, name);
        house.telegram.speaks(person.person, language);
        person
    };
    let (ada, bob) = (person("Ada", "zh-hans"), person("Bob", "en"));
    let (chen, dora) = (person("Chen", "zh-hant"), person("Dora", "de"));
    let (chinese, english) = ("当前没有正在进行的任务。", "Nothing is running.");
    for (person, answer) in [(&ada, chinese), (&bob, english), (&chen, chinese), (&dora, english)] {
        person.says("/stop", answer).await;
    }
    // After a restart it is read from the store.
    house.stop().await;
    ada.say("/usage");
    house.start();
    ada.reads("当前没有进行中的对话。").await;
    let menus = |language: Option<&'static str>, about: &'static str| {
        house.telegram.wait(SOON, move |view| {
            let mut menus = view.calls().filter(|call| call.method == "setMyCommands");
            let own = |call: &Value| call["language_code"].as_str() == language;
            menus
                .rfind(|call| own(&json!(call.params)) && call.params["commands"].to_string().contains(about))
                .map(drop)
        })
    };
    menus(None, "Start a new conversation").await.unwrap();
    menus(Some("zh"), "开始新对话").await.unwrap();
    // The next edits apply without a restart.
    house.configure("language: en", "");
    ada.says("/stop", english).await;
    menus(Some("zh"), "Start a new conversation").await.unwrap();
    house.configure("language: zh-CN", "");
    bob.says("/stop", chinese).await;
    menus(None, "开始新对话").await.unwrap();
}

#[tokio::test]
async fn slack_tells_a_persons_language_with_the_name() {
    let mut office = Office::build(pudu_sim::slack::Options::default()).await;
    office.slack.speaks(&office.ada, "zh-CN");
    office.house.start();
    office.write(&office.direct, "/stop", true, None);
    let answered =
        |shown: &[Shown]| shown.last().filter(|last| last.text == "当前没有正在进行的任务。").map(drop);
    let platform: &dyn Platform = &office.slack;
    platform.wait(&office.direct, SOON, |at| answered(&at.shown(&office.direct))).await.unwrap();
}

#[tokio::test]
async fn the_page_answers_in_the_browsers_language_unless_one_is_configured() {
    let house = House::open("").await;
    let say = async |thread: &str, accept: &str| {
        let url = format!("http://{}/api/threads/{thread}/slash-commands", house.address);
        let post = http().post(url).header("accept-language", accept).json(&json!({"text": "/stop"}));
        post.send().await.unwrap().text().await.unwrap()
    };
    let (chinese, english) = ("当前没有正在进行的任务。", "Nothing is running.");
    let told = say("one", "de;q=0.9, zh-CN;q=0.8, en;q=0.5").await;
    assert!(told.contains(chinese), "{told}");
    let told = say("two", "en-US,en;q=0.9,zh;q=0.8").await;
    assert!(told.contains(english), "{told}");
    house.configure("", "  language: zh\n");
    let told = say("three", "en-US").await;
    assert!(told.contains(chinese), "{told}");
}
