//! Scheduled tasks on the page.

use super::{Browser, TALK, build, looks::audits, open, says};
use serde_json::json;

const ROWS: &str = "[...document.querySelectorAll('.task')].map(task => [task.querySelector('h3').innerText, task.querySelector('.hint').innerText.split(' · next')[0]])";
const WRONG: &str = "(document.querySelector('dialog:last-of-type .wrong:not([hidden])')?.innerText ?? '')";

/// Opens the list of tasks by the menu.
async fn opens_list(browser: &mut Browser) {
    browser.clicks("#account").await;
    clicks(browser, "[role=menuitem]", "Scheduled tasks…").await;
}

async fn presses(browser: &mut Browser, label: &str) {
    clicks(browser, "dialog:last-of-type button", label).await;
}

/// Clicks on the first element with this text.
async fn clicks(browser: &mut Browser, selector: &str, label: &str) {
    let found =
        format!("[...document.querySelectorAll({selector:?})].find(node => node.innerText === {label:?})");
    browser.sees(&format!("Boolean({found})"), true).await;
    browser.eval(&format!("{found}.click()")).await;
}

#[tokio::test]
async fn a_task_is_created_changed_run_paused_and_deleted() {
    let mut house = build("scheduler: {enabled: true}\n").await;
    house.start();
    let Some(mut browser) = open(&house).await else { return };
    says(&mut browser, "hi", "echo: hi").await;
    opens_list(&mut browser).await;
    browser.sees("document.querySelector('.tasks')?.innerText", "You have no scheduled tasks.").await;

    presses(&mut browser, "New task").await;
    browser.sees("document.activeElement.closest('label').innerText", "Title").await;
    browser.types("News").await;
    browser.presses("Tab").await;
    browser.types("read the news").await;
    browser.eval("document.querySelector('[list=time-zones]').value = 'Mars/Olympus'").await;
    audits(&mut browser, "the form of a task").await;
    presses(&mut browser, "Create task").await;
    browser.sees(&format!("{WRONG}.includes('Mars/Olympus')"), true).await;
    browser.eval("document.querySelector('[list=time-zones]').value = 'Europe/Berlin'").await;
    browser.eval("Object.assign(document.querySelector('dialog:last-of-type select'), {value: 'weekly'}).onchange()").await;
    presses(&mut browser, "Create task").await;
    browser.sees(ROWS, json!([["News", "On · Monday at 09:00 (Europe/Berlin)"]])).await;
    audits(&mut browser, "the list of tasks").await;

    presses(&mut browser, "Pause").await;
    browser.sees(ROWS, json!([["News", "Paused · Monday at 09:00 (Europe/Berlin)"]])).await;
    presses(&mut browser, "Resume").await;
    browser.sees(ROWS, json!([["News", "On · Monday at 09:00 (Europe/Berlin)"]])).await;

    presses(&mut browser, "Edit").await;
    browser
        .eval(
            "Object.assign(document.querySelector('dialog:last-of-type select'), {value: 'cron'}).onchange()",
        )
        .await;
    browser.eval("document.querySelector('[placeholder=\"0 9 * * 1-5\"]').value = '0 25 * * *'").await;
    presses(&mut browser, "Save").await;
    browser.sees(&format!("{WRONG} !== ''"), true).await;
    browser.eval("document.querySelector('[placeholder=\"0 9 * * 1-5\"]').value = '*/5 8-10 * * *'").await;
    presses(&mut browser, "Save").await;
    browser.sees(ROWS, json!([["News", "On · */5 8-10 * * * (Europe/Berlin)"]])).await;

    presses(&mut browser, "Run now").await;
    // The list is drawn again after the start.
    let runs = "(document.querySelector('.task details').open = true, document.querySelectorAll('.task-runs a').length)";
    browser.sees(runs, 1).await;
    browser.clicks(".task-runs a").await;
    browser.sees(TALK, vec!["you: read the news", "pudu: echo: read the news"]).await;

    opens_list(&mut browser).await;
    browser.sees("document.querySelectorAll('.task').length", 1).await;
    presses(&mut browser, "Delete").await;
    browser.sees("document.querySelector('dialog:last-of-type h2').innerText", "Delete “News”?").await;
    browser.clicks("dialog:last-of-type .danger").await;
    browser.sees("document.querySelector('.tasks')?.innerText", "You have no scheduled tasks.").await;
    assert_eq!(browser.failures, [""; 0]);
}
