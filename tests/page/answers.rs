//! How the page shows answers, and how they end.

use super::{IDLE, browser::Browser, house, open};
use crate::house::House;
use pudu_sim::model::Reply;
use serde_json::json;

const BOLD: &str = include_str!("../../channels/src/render/tests/bold.md");

async fn answers(browser: &mut Browser, house: &House, reply: impl Into<Reply>) {
    house.model.next(reply);
    browser.types("go").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelectorAll('.words').length > 0", true).await;
    browser.sees(IDLE, true).await;
}

#[tokio::test]
async fn marks_become_what_models_mean() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let more = "\n\n~5 min ~/path[^1], \\(a_1 * b_1\\) and ~~gone~~\n\n- [ ] a\n  - b\n\n<details>\n<summary>Log</summary>\n\nall **well**\n\n</details>\n\n[^1]: a note";
    answers(&mut browser, &house, Reply::text(&format!("{BOLD}{more}"))).await;
    let texts = |selector: &str| {
        format!("[...document.querySelectorAll('.words {selector}')].map(node => node.textContent)")
    };
    let bold = ["“重点”", "注意：", "粗体（说明）", "「強調」", "太字。", "\"강조\"", "중요(重要)", "bold"];
    browser.sees(&format!("{}.slice(0, 8)", texts("strong")), bold.to_vec()).await;
    browser.sees(&texts("em"), vec!["“quoted”"]).await;
    browser.sees(&texts(".formula annotation"), vec!["a_1 * b_1"]).await;
    browser.sees(&texts("del"), vec!["gone"]).await;
    browser.sees(&texts("sup"), vec!["1", "1"]).await;
    browser.sees(&texts(".note > div"), vec!["a note"]).await;
    browser.clicks("p .footnote button").await;
    browser.sees("document.activeElement.className", "note").await;
    browser.clicks(".note .footnote button").await;
    browser.sees("document.activeElement.closest('p') !== null", true).await;
    browser.sees(&texts(".tasks li li"), vec!["b"]).await;
    browser.sees(&texts("details > summary"), vec!["Log"]).await;
    browser.sees(&texts("details strong"), vec!["well"]).await;
    browser.sees("document.querySelector('.words').textContent.includes('~5 min ~/path')", true).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn parts_without_an_end_are_open_and_footnotes_without_a_text_are_no_links() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let text = "One[^1] and two[^none].\n\n<details open>\n<summary>A</summary>\n\na\n\n</details>\n\n\
        <details>\n<summary>B</summary>\n\nb\n\n</details>\n\n[^1]: a note\n\n\
        <details>\n<summary>C</summary>\n\nThe answer.";
    answers(&mut browser, &house, Reply::text(text)).await;
    let open = "[...document.querySelectorAll('.words details')].map(node => node.open)";
    browser.sees(open, json!([true, false, true])).await;
    let first = "document.querySelector('.words p').textContent";
    browser.sees(first, "One1 and two[^none].").await;
    browser.sees("document.querySelectorAll('.words p .footnote').length", 1).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn an_answer_that_was_cut_says_so() {
    for (reason, words) in [("length", "output limit"), ("content_filter", "content filter")] {
        let house = house("").await;
        let Some(mut browser) = open(&house).await else { return };
        answers(&mut browser, &house, Reply::text("half an ans").finish(reason)).await;
        let seen = format!("document.querySelector('.cut')?.innerText.includes('{words}')");
        browser.sees(&seen, true).await;
    }
}

#[tokio::test]
async fn failed_steps_and_exit_codes_are_visible_when_steps_are_folded() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let read = Reply::tool("read_file", &json!({"path": "/mnt/user-data/outputs/none.md"}));
    let list = || Reply::tool("ls", &json!({"path": "/mnt/user-data"}));
    for reply in [Reply::tool("bash", &json!({"command": "exit 3"})), read, list(), list()] {
        house.model.next(reply);
    }
    answers(&mut browser, &house, Reply::text("done")).await;
    browser.sees("document.querySelector('.steps-toggle').innerText", "4 steps, 2 failed").await;
    browser.clicks(".steps-toggle").await;
    let states = "[...document.querySelectorAll('.step-state')].map(node => node.innerText)";
    browser.sees(states, vec!["exit code 3", "failed", "", ""]).await;
}

#[tokio::test]
async fn an_edit_is_shown_as_a_diff() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let path = "/mnt/user-data/outputs/a.md";
    house.model.next(Reply::tool("write_file", &json!({"path": path, "content": "one\ntwo\n"})));
    house.model.next(Reply::tool("str_replace", &json!({"path": path, "old_str": "two", "new_str": "2\n3"})));
    answers(&mut browser, &house, Reply::text("done")).await;
    browser.eval("[...document.querySelectorAll('.step summary')].at(-1).click() ?? 1").await;
    let lines = "[...document.querySelectorAll('.step .diff-line')].map(node => [node.classList[1], node.textContent.trim()])";
    browser.sees(lines, json!([["removed", "- two"], ["added", "+ 2"], ["added", "+ 3"]])).await;
    // A long one is shortened, and the rest is loaded on request.
    let long = format!("{}end", "x\n".repeat(7_000));
    house.model.next(Reply::tool("str_replace", &json!({"path": path, "old_str": "2\n3", "new_str": long})));
    answers(&mut browser, &house, Reply::text("It is long.")).await;
    browser.sees("[...document.querySelectorAll('.words')].at(-1).innerText.trim()", "It is long.").await;
    browser.eval("[...document.querySelectorAll('.step summary')].at(-1).click() ?? 1").await;
    let step = "[...document.querySelectorAll('.step')].at(-1)";
    let last = format!(
        "{step}.querySelectorAll('.diff-line').length > 5000 && {step}.querySelector('.diff-line:last-child').textContent.trim()"
    );
    browser.sees(&last, "+").await;
    browser.eval(&format!("{step}.querySelector('.small-button').click() ?? 1")).await;
    browser.sees(&last, "+ end").await;
    browser.sees(&format!("{step}.querySelectorAll('.small-button').length"), 0).await;
}

#[tokio::test]
async fn focus_never_scrolls_the_page_off_the_screen() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let rows = "| a | b |\n|---|---|\n".to_owned() + &"| x | y |\n".repeat(150);
    answers(&mut browser, &house, Reply::text(&rows)).await;
    let scrolled = "(() => {
        for (const node of document.querySelectorAll('button, a, [tabindex], textarea, input, summary')) node.focus();
        for (const node of [document.documentElement, document.body, app, document.querySelector('main')]) node.scrollTop = node.scrollLeft = 300;
        const top = Math.round(app.getBoundingClientRect().top), left = Math.round(app.getBoundingClientRect().left);
        return [top, left, scrollY, Math.round(document.querySelector('header').getBoundingClientRect().top)];
    })()";
    browser.sees(scrolled, json!([0, 0, 0, 0])).await;
}
