//! Appearance and usability of the page: dark mode, phone, keyboard, screen reader.

use super::{IDLE, TALK, browser::Browser, house, open, reloads, says, shown, visit};
use pudu_sim::model::Reply;
use serde_json::{Value, json};

const GROUND: &str = "document.body && getComputedStyle(document.body).backgroundColor";
const DARK: &str = "rgb(25, 23, 20)";
const LIGHT: &str = "rgb(251, 249, 246)";

#[tokio::test]
async fn dark_is_as_the_system_has_it_or_as_was_chosen() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.prefers("dark").await;
    browser.sees(GROUND, DARK).await;
    browser.prefers("light").await;
    browser.sees(GROUND, LIGHT).await;
    browser.clicks("#account").await;
    let dark = "[...document.querySelectorAll('.menu button')].find(one => one.innerText === 'Dark')";
    browser.sees(&format!("Boolean({dark})"), true).await;
    browser.eval(&format!("{dark}.click()")).await;
    browser.sees(GROUND, DARK).await;
    reloads(&mut browser).await;
    browser.sees(GROUND, DARK).await;
}

#[tokio::test]
async fn the_page_speaks_the_language_of_the_browser() {
    let house = house("").await;
    let Some(mut browser) = Browser::start().await else { return };
    browser.reads("fr,zh-CN,en").await;
    visit(&mut browser, &house).await;
    let seen = "[document.documentElement.lang, document.querySelector('#welcome h2').innerText, document.getElementById('new').innerText.trim(),
        document.getElementById('box').placeholder, document.getElementById('help').title, document.getElementById('model').ariaLabel]";
    let chinese = ["zh-Hans", "有什么可以帮您？", "新对话", "给 pudu 发消息", "按键和命令", "模型：sim"];
    browser.sees(seen, json!(chinese)).await;
    // User messages are unchanged.
    says(&mut browser, "Send", "echo: Send").await;
    browser.sees(TALK, vec!["you: Send", "pudu: echo: Send"]).await;
    browser.sees("document.querySelector('#threads h3')?.innerText", "今天").await;
    browser.types("/comp").await;
    browser.sees("document.querySelector('#menu span')?.innerText ?? ''", "总结本对话，腾出空间").await;
    browser.reads("fr,de").await;
    visit(&mut browser, &house).await;
    browser
        .sees(
            "[document.documentElement.lang, document.getElementById('new').innerText.trim()]",
            json!(["en", "New conversation"]),
        )
        .await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn on_a_phone_nothing_is_wider_than_it_and_the_history_is_a_drawer() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.resizes(320, 640).await;
    let wide = format!(
        "|{}\n|{}\n|{}\n\n```\n{}\n```\n\n{}",
        "a|".repeat(20),
        "-|".repeat(20),
        "bbbbbb|".repeat(20),
        "x".repeat(300),
        "y".repeat(300)
    );
    house.model.next(Reply::text(&wide));
    browser.types("wide and wider than any telephone that anybody has in a pocket").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelectorAll('td').length", 20).await;
    browser.sees(IDLE, true).await;
    let too_wide = "[...document.querySelectorAll('#app *')].filter(node => node.checkVisibility() && !node.closest('.wide, pre, h1, #sidebar')
        && node.getBoundingClientRect().right > innerWidth + 1).map(node => node.id || node.className)";
    browser.sees(too_wide, Vec::<Value>::new()).await;
    browser
        .sees(
            "[document.documentElement.scrollWidth, document.getElementById('scroll').scrollWidth <= document.getElementById('scroll').clientWidth]",
            json!([320, true]),
        )
        .await;
    let drawer = "Math.round(document.getElementById('sidebar').getBoundingClientRect().left)";
    browser.sees(&format!("{drawer} < 0 && getComputedStyle(sidebar).visibility"), "hidden").await;
    browser.clicks("#open").await;
    browser.sees(drawer, 0).await;
    browser.presses("Escape").await;
    browser.sees(&format!("{drawer} < 0"), true).await;
    browser.clicks("#open").await;
    browser.clicks("#new").await;
    browser.sees("document.querySelectorAll('.turn').length", 0).await;
    browser.sees(&format!("{drawer} < 0"), true).await;
}

#[tokio::test]
async fn everything_is_reached_by_keys() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    says(&mut browser, "hello", "echo: hello").await;
    browser.sees("document.getElementById('costs').hidden", false).await;
    browser.sees("document.querySelectorAll('#threads a').length", 1).await;
    browser.eval("(document.activeElement.blur(), 1)").await;
    let mut reached = Vec::new();
    for _ in 0..50 {
        browser.presses("Tab").await;
        // Between the last and the first element the browser's own controls have the focus.
        if browser.eval("document.activeElement === document.body").await == true {
            continue;
        }
        let outlined = "getComputedStyle(document.activeElement).outlineStyle !== 'none' || ['box', 'search'].includes(document.activeElement.id)";
        assert_eq!(
            browser.eval(outlined).await,
            true,
            "{}",
            browser.eval("document.activeElement.outerHTML").await
        );
        let name = browser.eval("document.activeElement.id || document.activeElement.getAttribute('aria-label') || document.activeElement.innerText").await;
        let name = name.as_str().unwrap().to_owned();
        if reached.first() == Some(&name) {
            break;
        }
        reached.push(name);
    }
    for wanted in [
        "fold",
        "new",
        "search",
        "hello",
        "Actions for hello",
        "account",
        "costs",
        "files",
        "help",
        "scroll",
        "Copy message",
        "Edit and send again",
        "Copy answer",
        "Regenerate answer",
        "Branch from here",
        "Good answer",
        "Bad answer",
        "box",
        "attach",
        "model",
    ] {
        assert!(reached.iter().any(|name| name == wanted), "{wanted} is not in {reached:?}");
    }
    browser.eval("(document.activeElement.blur(), 1)").await;
    browser.presses("?").await;
    browser.sees("document.querySelector('dialog h2')?.innerText ?? ''", "Keys and commands").await;
    browser.presses("Escape").await;
    browser.sees("document.querySelector('dialog')", Value::Null).await;
    browser.clicks("#model").await;
    browser.sees("document.activeElement.role", "menuitemradio").await;
    browser.presses("Escape").await;
    browser.sees("document.activeElement.id", "model").await;
    browser.sees("getComputedStyle(document.getElementById('model')).display !== 'none'", true).await;
}

#[tokio::test]
async fn an_answer_that_means_harm_does_none() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let rows = "|x|y|\n".repeat(3000);
    let text = format!(
        "{}\n\n[\u{202e}moc.live](https://evil.example)\n\n|a|b|\n|-|-|\n{rows}\n\n{}\n\n```\n{}\n```\n\nend",
        ">".repeat(5000),
        "*_[".repeat(3000),
        "let x = 1; // \u{202e}\n".repeat(60_000),
    );
    house.model.next(Reply::text("x").chunks([text]));
    browser.types("harm").await;
    browser.presses("Enter").await;
    browser.sees(IDLE, true).await;
    browser.sees("[...document.querySelectorAll('.words > p')].at(-1)?.innerText ?? ''", "end").await;
    browser.sees("document.querySelectorAll('td').length", 400).await;
    browser.sees("document.querySelector('.code pre').innerText.length < 60000", true).await;
    browser.sees("document.querySelector('.code pre').innerText.includes('\\u202e')", false).await;
    browser.sees("document.querySelectorAll('.turn *').length < 10000", true).await;
    says(&mut browser, "still there", "echo: still there").await;
    assert_eq!(browser.failures, [""; 0]);
}

/// Returns the path of axe-core's script, if available: `PUDU_AXE_CORE`.
fn axe() -> Option<String> {
    let path = std::env::var_os("PUDU_AXE_CORE");
    let Some(path) = path else {
        assert!(std::env::var("PUDU_REQUIRE_AXE").is_err(), "PUDU_AXE_CORE names no script");
        println!("skipped: PUDU_AXE_CORE does not say where axe-core is");
        return None;
    };
    Some(std::fs::read_to_string(path).unwrap())
}

/// Checks the page's current content with axe.
async fn examines(browser: &mut Browser, axe: &str, what: &str) {
    browser.eval(&format!("{axe}; 1")).await;
    let found = "axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(one =>
        `${one.id}: ${one.nodes.map(node => node.target.join(' ')).join(', ')}`))";
    assert_eq!(browser.eval(found).await, json!([]), "{what}");
}

/// Checks the page with axe if available.
pub async fn audits(browser: &mut Browser, what: &str) {
    if let Some(axe) = axe() {
        examines(browser, &axe, what).await;
    }
}

#[tokio::test]
async fn axe_finds_nothing() {
    let Some(axe) = axe() else { return };
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    for scheme in ["light", "dark"] {
        browser.prefers(scheme).await;
        visit(&mut browser, &house).await;
        browser.eval("location.hash = '#/'").await;
        browser.sees("document.querySelectorAll('.turn').length", 0).await;
        examines(&mut browser, &axe, "an empty page").await;
        let text = "# A\n\n### B\n\n|a|b|\n|-|-|\n|1|2|\n\n```sh\nls\n```\n\n- [x] c\n\n> q [l](https://example.org)";
        house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
        house.model.next(Reply::text(text));
        browser.eval("document.getElementById('box').focus()").await;
        browser.types("show").await;
        browser.presses("Enter").await;
        browser.sees("document.querySelectorAll('td').length", 2).await;
        browser.sees(IDLE, true).await;
        browser.clicks(".step summary").await;
        examines(&mut browser, &axe, "a conversation").await;
        browser.clicks("#account").await;
        browser.sees("document.querySelectorAll('.menu').length", 1).await;
        examines(&mut browser, &axe, "a menu").await;
        browser.presses("Escape").await;
        for button in ["#files", "#help", "#costs"] {
            browser.clicks(button).await;
            browser.sees("document.querySelector('dialog')?.open ?? false", true).await;
            examines(&mut browser, &axe, button).await;
            browser.presses("Escape").await;
            browser.sees("document.querySelector('dialog')", Value::Null).await;
        }
        browser.eval("document.getElementById('box').focus()").await;
        browser.types("/").await;
        browser.sees(&shown("menu"), true).await;
        examines(&mut browser, &axe, "the commands").await;
        browser.presses("Escape").await;
        browser.eval("document.getElementById('box').select()").await;
        says(&mut browser, "on", "echo: on").await;
        browser.sees(&format!("{TALK}.length"), 4).await;
    }
}
