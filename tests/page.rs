//! The page, in a real browser.

mod agents;
mod answers;
mod approvals;
mod browser;
mod door;
mod drawn;
mod history;
mod looks;
mod schedules;
mod work;

use crate::house::{House, http};
use browser::Browser;
use pudu_sim::model::{At, Reply};

const BOX: &str = "document.getElementById('box').value";
const NOTICE: &str = "document.getElementById('notice').innerText.trim()";

/// The lines of the conversation: speaker and text.
const TALK: &str = "[...document.querySelectorAll('#turns > .turn')].flatMap(turn => {
    const text = selector => [...turn.querySelectorAll(selector)].filter(node => node.checkVisibility())
        .map(node => node.innerText.trim()).join(' | ');
    const [you, pudu] = [text('.bubble'), text('.body > *, .failure p')];
    return [you && 'you: ' + you, pudu && 'pudu: ' + pudu].filter(Boolean);
})";

/// A house without suggested questions, with its daemon. `rest` is appended to the configuration.
async fn house(rest: &str) -> House {
    let mut house = build(rest).await;
    house.start();
    house
}

async fn build(rest: &str) -> House {
    House::furnish(Default::default(), "", &format!("suggestions: {{enabled: false}}\n{rest}")).await
}

/// Whether no answer is in progress.
const IDLE: &str = "document.getElementById('stop').hidden";

/// An expression that is true if an element is visible.
fn shown(id: &str) -> String {
    format!("document.getElementById('{id}').checkVisibility()")
}

/// Opens the page and waits until it is ready.
async fn visit(browser: &mut Browser, house: &House) {
    browser.open(&format!("http://{}/", house.address)).await;
    browser.sees("document.body?.dataset.ready ?? ''", "true").await;
}

/// Reloads the page.
async fn reloads(browser: &mut Browser) {
    // Deferred, because the response would be lost with the page.
    browser.eval("(document.body.dataset.ready = 'before', void setTimeout(() => location.reload()))").await;
    browser.sees("document.body?.dataset.ready ?? ''", "true").await;
}

async fn open(house: &House) -> Option<Browser> {
    let mut browser = Browser::start().await?;
    visit(&mut browser, house).await;
    Some(browser)
}

/// Sends a message and waits for the answer.
async fn says(browser: &mut Browser, text: &str, answer: &str) {
    browser.eval("document.getElementById('box').focus()").await;
    browser.types(text).await;
    browser.presses("Enter").await;
    browser.sees(&format!("{TALK}.at(-1)"), format!("pudu: {answer}")).await;
    browser.sees(IDLE, true).await;
}

#[tokio::test]
async fn a_person_talks_stops_and_finds_it_all_again() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.types("hi *you*").await;
    browser.presses("Enter").await;
    browser.sees(TALK, vec!["you: hi *you*", "pudu: echo: hi you"]).await;
    browser.sees(BOX, "").await;
    browser
        .sees(
            "[document.title, document.getElementById('title').innerText]",
            vec!["hi *you* · pudu", "hi *you*"],
        )
        .await;
    browser.sees("document.getElementById('spoken').innerText", "Answer complete: echo: hi *you*").await;

    house.model.next(Reply::text("one two three four").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Chunk(3));
    browser.types("count").await;
    browser.presses("Enter").await;
    hold.reached().await.unwrap();
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: one two").await;
    browser.sees(&shown("stop"), true).await;
    browser.types("and then").await;
    browser.presses("Escape").await;
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: one two | Stopped.").await;
    browser.sees(&shown("stop"), false).await;
    browser.sees(BOX, "and then").await;

    let before = browser.eval(TALK).await;
    reloads(&mut browser).await;
    browser.sees("document.querySelectorAll('.turn').length", 2).await;
    browser.sees(TALK, before).await;
    browser.sees(BOX, "and then").await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn a_message_whose_answer_got_lost_is_said_once() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.lose_answers = true;
    browser.types("once").await;
    browser.presses("Enter").await;
    browser
        .sees(&format!("{NOTICE}.split('\\n')[0]"), "Not sent yet: pudu cannot be reached. Trying again…")
        .await;
    browser.lose_answers = false;
    browser.sees(TALK, vec!["you: once", "pudu: echo: once"]).await;
    browser.sees(NOTICE, "").await;
    assert_eq!(house.model.count(), 1);

    browser.lose_answers = true;
    browser.types("twice?").await;
    browser.presses("Enter").await;
    browser.sees(&shown("notice"), true).await;
    browser.lose_answers = false;
    reloads(&mut browser).await;
    browser.sees(TALK, vec!["you: once", "pudu: echo: once", "you: twice?", "pudu: echo: twice?"]).await;
    browser.sees(IDLE, true).await;
    browser.sees("localStorage.getItem('pudu.unsent')", serde_json::Value::Null).await;
    assert_eq!(house.model.count(), 2);
}

#[tokio::test]
async fn what_is_said_while_the_daemon_is_away_is_answered_when_it_is_back() {
    let mut house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    says(&mut browser, "before", "echo: before").await;
    house.kill();
    browser.types("after").await;
    browser.presses("Enter").await;
    browser.sees(&shown("notice"), true).await;
    house.bind = house.address.clone();
    house.start();
    let talk = vec!["you: before", "pudu: echo: before", "you: after", "pudu: echo: after"];
    browser.sees(TALK, talk).await;
    browser.sees(&shown("link"), false).await;
    browser.sees(NOTICE, "").await;
    assert_eq!(house.model.count(), 2);
}

#[tokio::test]
async fn an_answer_goes_on_through_a_reload_and_a_death_of_the_daemon() {
    let mut house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    house.model.next(Reply::text("one two three four").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Chunk(3));
    browser.types("count").await;
    browser.presses("Enter").await;
    hold.reached().await.unwrap();
    browser.sees(TALK, vec!["you: count", "pudu: one two"]).await;
    reloads(&mut browser).await;
    browser.sees(TALK, vec!["you: count", "pudu: one two"]).await;
    browser.sees(&shown("stop"), true).await;
    house.model.next(Reply::text("one two three four five").words_per_chunk(1));
    house.kill();
    browser.sees(&shown("link"), true).await;
    house.bind = house.address.clone();
    house.start();
    browser.sees(TALK, vec!["you: count", "pudu: one two three four five"]).await;
    browser.sees(IDLE, true).await;
    browser.sees(&shown("link"), false).await;
}

#[tokio::test]
async fn commands_are_completed_and_only_those_that_work_are_offered() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let notice = format!("{NOTICE}.split('\\n')[0]");
    browser.types("/m").await;
    let offered = "[...document.querySelectorAll('#menu b')].map(row => row.innerText.trim())";
    browser.sees(&format!("{offered}.filter(name => name.startsWith('/m'))[0]"), "/models [name]").await;
    browser.presses("Enter").await;
    browser.sees(BOX, "/models ").await;
    browser.sees(offered, vec!["sim"]).await;
    browser.presses("Tab").await;
    browser.presses("Enter").await;
    browser.sees(BOX, "").await;
    browser.sees(&notice, "This conversation now uses sim.").await;
    browser.types("/mode steer").await;
    browser.presses("Enter").await;
    browser.sees(&notice, "/mode only works in chats.").await;
    assert_eq!(house.model.count(), 0);
    browser.sees(BOX, "").await;
    says(&mut browser, "x", "echo: x").await;
    for (typed, told) in [
        ("/modls sim", "Unknown command: /modls. Did you mean /models? Available commands: /new | "),
        ("/xyzzy", "Unknown command: /xyzzy. Available commands: /new | "),
    ] {
        browser.types(typed).await;
        browser.presses("Enter").await;
        browser.sees(&format!("{notice}.startsWith('{told}')"), true).await;
        browser.sees(BOX, "").await;
    }
    assert_eq!(house.model.count(), 1);
    // A path is no command, and a skill that was added later is found.
    says(&mut browser, "/etc/hosts is a file", "echo: /etc/hosts is a file").await;
    let folder = house.path(".pudu/skills/custom/make-haiku");
    std::fs::create_dir_all(&folder).unwrap();
    let skill = "---\nname: make-haiku\ndescription: For tests. More.\n---\nAnswer with a haiku.\n";
    std::fs::write(folder.join("SKILL.md"), skill).unwrap();
    house.model.next(Reply::text("Waves."));
    browser.types("/make-haiku the sea").await;
    browser.presses("Enter").await;
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: Waves.").await;
    let asked = house.model.requests().pop().unwrap().last_user();
    assert!(asked.contains("<skill name=\"make-haiku\""), "{asked}");
    browser.sees(IDLE, true).await;
    browser.types("/skills").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('dialog')?.innerText.includes('/make-haiku')", true).await;
    browser.presses("Escape").await;
    browser.types("/retry").await;
    browser.presses("Enter").await;
    browser.sees(&format!("{TALK}.at(-1).startsWith('pudu: echo: /make-haiku the sea')"), true).await;
    browser.sees(IDLE, true).await;
    browser.types("/usage").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('dialog h2')?.innerText ?? ''", "/usage").await;
    browser.presses("Escape").await;
    browser.types("/goal be nice").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('#goal .goal-text')?.innerText ?? ''", "be nice").await;
}

#[tokio::test]
async fn markdown_is_shown_and_can_do_nothing() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let text = "|a|b|\n|-|-|\n|1|2|\n\n```sh\nls\n```\n\n<img src=x onerror='window.bad=1'> [x](javascript:bad=1) \
        ![y](http://127.0.0.1:1/y.png) <script>bad=1</script> [z](data:text/html,bad) **b** _i_ ~~s~~ `c` https://example.org/a_b.";
    house.model.next(Reply::text(text));
    browser.types("show").await;
    browser.presses("Enter").await;
    browser.sees("[...document.querySelectorAll('td')].map(cell => cell.innerText)", vec!["1", "2"]).await;
    browser.sees("document.querySelector('.code')?.innerText.trim()", "sh\nls").await;
    browser.sees("document.querySelectorAll('.words img, .words script').length", 0).await;
    let links = "[...document.querySelectorAll('.words a')].map(link => link.getAttribute('href'))";
    browser.sees(links, vec!["http://127.0.0.1:1/y.png", "https://example.org/a_b"]).await;
    let marked =
        "['strong', 'em', 'del', 'p > code'].map(tag => document.querySelector('.words ' + tag)?.innerText)";
    browser.sees(marked, vec!["b", "i", "s", "c"]).await;
    browser.sees("typeof bad", "undefined").await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn files_of_the_page_are_kept_for_good_and_the_document_is_asked_for_anew() {
    let house = house("").await;
    let get = async |path: &str, tag: &str| {
        let asked = http().get(format!("http://{}{path}", house.address)).header("if-none-match", tag);
        let answer = asked.send().await.unwrap();
        let header =
            |name: &str| answer.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        let headers = ["etag", "cache-control", "content-type", "content-security-policy"].map(header);
        (answer.status().as_u16(), headers, answer.text().await.unwrap())
    };
    let (status, [tag, keeps, kind, policy], document) = get("/", "").await;
    assert_eq!((status, keeps.as_str(), kind.as_str()), (200, "no-cache", "text/html; charset=utf-8"));
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!((get("/", &tag).await.0, get("/", "\"other\"").await.0), (304, 200));
    let script = document.split('"').find(|part| part.ends_with("/main.js")).unwrap();
    let (status, [_, keeps, kind, _], text) = get(script, "").await;
    assert_eq!((status, kind.as_str()), (200, "text/javascript; charset=utf-8"));
    assert_eq!(keeps, "public, max-age=31536000, immutable");
    let (status, [_, keeps, ..], other) = get("/page/another/main.js", "").await;
    assert_eq!((status, keeps.as_str(), other), (200, "no-cache", text));
    for path in ["/page/another/nothing.js", "/page/another/..%2Fpage.html", "/page/main.js"] {
        let (status, _, text) = get(path, "").await;
        assert!(status == 404 && text.contains("detail"), "{path}: {status} {text}");
    }
}
