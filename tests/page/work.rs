//! The agent's work on the page: steps, files, questions, sub-agents; and actions on answers.

use super::{BOX, IDLE, NOTICE, TALK, house, open, reloads, says, shown};
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

const STEPS: &str = "[...document.querySelectorAll('.step')].map(step => step.querySelector('summary').innerText.trim().replaceAll('\\n', ' '))";

#[tokio::test]
async fn a_badge_tells_what_a_run_changed_and_opens_it() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let write = |path: &str, content: &str| {
        Reply::tool("write_file", &json!({"path": format!("/mnt/user-data/{path}"), "content": content}))
    };
    house.model.next(write("workspace/a.md", "<b>one</b>\ntwo\n"));
    house.model.next(write("workspace/.env", "quagga\n"));
    house.model.next(Reply::text("Done."));
    browser.types("write it").await;
    browser.presses("Enter").await;
    let badge = "document.querySelector('.changes:not([hidden])')?.innerText.trim() ?? ''";
    browser.sees(badge, "2 files changed, +2 −0").await;
    browser.clicks(".changes").await;
    let names =
        "[...document.querySelectorAll('dialog .changed-file .file-name')].map(node => node.innerText)";
    browser.sees(names, vec!["workspace/.env", "workspace/a.md"]).await;
    browser
        .eval("document.querySelectorAll('dialog .changed-file').forEach(node => { node.open = true; })")
        .await;
    let added =
        "[...document.querySelectorAll('dialog .diff-line.added')].map(node => node.innerText.trim())";
    browser.sees(added, vec!["+<b>one</b>", "+two"]).await;
    browser.sees("document.querySelector('dialog').innerText.includes('may contain a secret')", true).await;
    browser.presses("Escape").await;
    // It is there after a reload, and an answer without such calls has none.
    reloads(&mut browser).await;
    browser.sees(badge, "2 files changed, +2 −0").await;
    says(&mut browser, "and now nothing", "echo: and now nothing").await;
    browser.sees("document.querySelectorAll('.changes').length", 1).await;
    // A branch has no files yet, and no requests are made for runs that it does not have.
    browser.clicks(".turn [aria-label=\"Branch from here\"]").await;
    browser.sees("document.querySelectorAll('.turn').length", 1).await;
    says(&mut browser, "and here", "echo: and here").await;
    browser.sees("document.querySelectorAll('.changes').length", 0).await;
    assert_eq!((&browser.failures, &browser.unanswered), (&Vec::new(), &Vec::new()));
}

#[tokio::test]
async fn steps_are_shown_as_they_run_with_what_they_took_and_gave() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let todos = json!({"todos": [{"content": "Look", "status": "in_progress"}, {"content": "Write", "status": "pending"}]});
    house.model.next(Reply::tool("write_todos", &todos));
    house.model.next(Reply::tool(
        "write_file",
        &json!({"path": "/mnt/user-data/outputs/a.md", "content": "# Report"}),
    ));
    house.model.next(Reply::tool("present_files", &json!({"filepaths": ["/mnt/user-data/outputs/a.md"]})));
    let done = json!({"todos": [{"content": "Look", "status": "completed"}, {"content": "Write", "status": "completed"}]});
    house.model.next(Reply::tool("write_todos", &done));
    house.model.next(Reply::text("It is [here](/mnt/user-data/outputs/a.md)."));
    let mut hold = house.model.hold(2, At::Start);
    browser.types("write it").await;
    browser.presses("Enter").await;
    hold.reached().await.unwrap();
    browser
        .sees(
            "document.querySelector('#todos summary')?.innerText.replaceAll('\\n', ' ').trim() ?? ''",
            "0 of 2 done Look",
        )
        .await;
    browser.sees(STEPS, vec!["Update the to-do list"]).await;
    hold.proceed();
    browser.sees(IDLE, true).await;
    browser.sees("document.querySelector('.words')?.innerText ?? ''", "It is here.").await;
    browser.sees("document.querySelector('.steps-toggle').innerText", "4 steps").await;
    browser.clicks(".steps-toggle").await;
    let steps = [
        "Update the to-do list",
        "Write /mnt/user-data/outputs/a.md",
        "Share files",
        "Update the to-do list",
    ];
    browser.sees(STEPS, steps.to_vec()).await;
    browser.eval("document.querySelectorAll('.step summary')[1].click()").await;
    browser.sees("document.querySelectorAll('.step')[1].innerText.includes('content: # Report')", true).await;
    browser.sees(&shown("todos"), false).await;
    browser.sees("document.querySelector('.file').innerText.trim()", "a.md").await;
    browser.clicks(".words .link").await;
    browser.sees("document.querySelector('dialog .preview')?.innerText.trim()", "Report").await;
    browser.presses("Escape").await;
    browser.clicks("#files").await;
    browser
        .sees("[...document.querySelectorAll('dialog .file-name')].map(node => node.innerText)", vec!["a.md"])
        .await;
    browser.presses("Escape").await;
    browser.sees("document.querySelector('dialog')", Value::Null).await;
    browser.sees("document.getElementById('costs').innerText.endsWith(' tokens')", true).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn a_question_is_answered_by_a_button() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let asked = json!({"question": "Which colour?", "options": ["Red", "Green"], "clarification_type": "missing_info"});
    house.model.next(Reply::tool("ask_clarification", &asked));
    browser.types("paint it").await;
    browser.presses("Enter").await;
    browser
        .sees("[...document.querySelectorAll('.option')].map(one => one.innerText)", vec!["Red", "Green"])
        .await;
    reloads(&mut browser).await;
    browser.sees("document.querySelectorAll('.option').length", 2).await;
    browser.clicks(".option:nth-child(2)").await;
    browser.sees(&format!("{TALK}.slice(-2)"), vec!["you: Green", "pudu: echo: Green"]).await;
    browser.sees("document.querySelectorAll('.option').length", 0).await;
}

#[tokio::test]
async fn a_form_is_filled_in_checked_and_sent_and_its_draft_survives_a_reload() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let fields = json!([
        {"name": "who", "label": "Your name", "type": "text", "required": true, "placeholder": "Ada"},
        {"name": "size", "label": "Size", "type": "select", "options": ["S", "M"]},
        {"name": "extras", "label": "Extras", "type": "multi_select", "options": ["Bow", "Card"], "required": true},
        {"name": "day", "label": "Day", "type": "date"},
        {"name": "gift", "label": "A gift", "type": "checkbox"},
    ]);
    let asked = json!({"question": "Where to?", "clarification_type": "missing_info", "fields": fields});
    house.model.next(Reply::tool("ask_clarification", &asked));
    browser.types("order it").await;
    browser.presses("Enter").await;
    let labels = "[...document.querySelectorAll('.form > * > span')].map(one => one.innerText)";
    browser.sees(labels, vec!["Your name *", "Size", "Extras *", "Day", "A gift"]).await;
    // The browser refuses the form while required answers are missing.
    browser.clicks(".form > button").await;
    browser
        .sees(
            "document.querySelector('.form :invalid') !== null && document.querySelectorAll('.form').length",
            1,
        )
        .await;
    let fill = "(() => { const of = name => document.querySelector(`.form ${name}`);\
        of('input[type=text]').value = 'Ada'; of('select').value = 'M'; of('input[type=date]').value = '2028-02-29';\
        of('.choices label:nth-child(2) input').click(); of('form > label.check input, .form > label.check input').click(); return 1; })()";
    browser.sees(fill, 1).await;
    reloads(&mut browser).await;
    let values = "[...document.querySelectorAll('.form input[type=text], .form select, .form input[type=date]')].map(one => one.value)";
    browser.sees(values, vec!["Ada", "M", "2028-02-29"]).await;
    browser.clicks(".form > button").await;
    let answer = "Your name: Ada\nSize: M\nExtras: Card\nDay: 2028-02-29\nA gift: yes";
    browser
        .sees(&format!("{TALK}.slice(-2)"), vec![format!("you: {answer}"), format!("pudu: echo: {answer}")])
        .await;
    browser.sees("document.querySelectorAll('.form').length", 0).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn a_sub_agent_shows_its_steps_and_again_after_a_reload() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let task = json!({"description": "count apples", "prompt": "Count the apples.", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &task));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("Seven."));
    house.model.next(Reply::text("There are seven."));
    browser.types("count").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('.words')?.innerText ?? ''", "There are seven.").await;
    for _ in 0..2 {
        browser.sees("document.querySelector('.step')?.innerText.includes('count apples')", true).await;
        browser.clicks(".step summary").await;
        browser.sees("document.querySelector('.step-body').innerText.includes('Seven.')", true).await;
        browser
            .sees("document.querySelector('.step-body').innerText.includes('path: /mnt/user-data')", true)
            .await;
        reloads(&mut browser).await;
    }
}

#[tokio::test]
async fn a_sub_agent_that_failed_is_shown_so_and_again_after_a_reload() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let task = json!({"description": "count apples", "prompt": "Count the apples.", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &task));
    house.model.next(Reply::status(401));
    house.model.next(Reply::text("It failed."));
    browser.types("count").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('.words')?.innerText ?? ''", "It failed.").await;
    for _ in 0..2 {
        browser.sees("document.querySelector('.step')?.className", "step failed").await;
        browser.sees("document.querySelector('.step-state')?.innerText", "failed").await;
        reloads(&mut browser).await;
    }
    // Its text is there although its steps are not.
    browser.clicks(".turn [aria-label=\"Branch from here\"]").await;
    browser.sees("document.querySelectorAll('#threads a').length", 2).await;
    browser.sees("document.querySelector('.step')?.className", "step failed").await;
    browser.clicks(".step summary").await;
    browser
        .sees("document.querySelector('.step-body').innerText.includes('rejected the API key')", true)
        .await;
}

#[tokio::test]
async fn a_failure_is_said_plainly_and_tried_again() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    house.model.next(Reply::status(401));
    browser.types("hello").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('.failure p')?.innerText.length > 20", true).await;
    reloads(&mut browser).await;
    browser.sees("document.querySelectorAll('.words').length", 0).await;
    browser.sees("document.querySelector('.failure button')?.innerText ?? ''", "Try again").await;
    browser.clicks(".failure button").await;
    browser.sees(TALK, vec!["you: hello", "pudu: echo: hello"]).await;
}

#[tokio::test]
async fn a_question_is_edited_an_answer_made_anew_judged_and_branched_off() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    says(&mut browser, "first", "echo: first").await;
    says(&mut browser, "secnd", "echo: secnd").await;
    browser.clicks(".turn:last-child [aria-label^=Edit]").await;
    browser.sees("document.activeElement.value", "secnd").await;
    browser.eval("document.activeElement.select()").await;
    browser.types("second").await;
    browser.presses("Enter").await;
    let talk = vec!["you: first", "pudu: echo: first", "you: second", "pudu: echo: second"];
    browser.sees(TALK, talk.clone()).await;
    browser.sees(IDLE, true).await;
    house.model.next(Reply::text("another"));
    browser.clicks(".turn:last-child [aria-label=\"Regenerate answer\"]").await;
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: another").await;
    browser.sees(IDLE, true).await;
    browser.clicks(".turn:last-child [aria-label=\"Good answer\"]").await;
    let pressed =
        "document.querySelector('.turn:last-child [aria-label=\"Good answer\"]')?.ariaPressed ?? ''";
    browser.sees(pressed, "true").await;
    reloads(&mut browser).await;
    browser.sees(pressed, "true").await;
    browser.sees(TALK, vec!["you: first", "pudu: echo: first", "you: second", "pudu: another"]).await;
    browser.clicks(".turn [aria-label=\"Branch from here\"]").await;
    browser.sees(TALK, vec!["you: first", "pudu: echo: first"]).await;
    // Immediately, not when the history is next updated.
    let there =
        "[document.getElementById('title').innerText, document.querySelectorAll('#threads a').length]";
    assert_eq!(browser.eval(there).await, json!(["first", 2]));
    browser.sees("document.querySelector('.turn [aria-label=\"Good answer\"]')", Value::Null).await;

    house.model.next(Reply::text("one two three").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Start);
    browser.eval("document.getElementById('box').focus()").await;
    browser.types("stopp").await;
    browser.presses("Enter").await;
    hold.reached().await.unwrap();
    browser.sees(IDLE, false).await;
    browser.presses("Escape").await;
    browser.sees(IDLE, true).await;
    hold.proceed();
    browser.clicks(".turn:last-child [aria-label^=Edit]").await;
    browser.eval("document.activeElement.select()").await;
    browser.types("stop").await;
    browser.presses("Enter").await;
    browser.sees(TALK, vec!["you: first", "pudu: echo: first", "you: stop", "pudu: echo: stop"]).await;
    browser.sees(NOTICE, "").await;
}

#[tokio::test]
async fn files_go_along_and_are_shown_with_the_message() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let (text, picture) = (house.path("notes.txt"), house.path("dot.png"));
    std::fs::write(&text, "some notes").unwrap();
    std::fs::write(&picture, PNG).unwrap();
    browser.chooses("#picker", &text).await;
    browser.chooses("#picker", &picture).await;
    browser.sees("[...document.querySelectorAll('.chip .file-size')].length", 2).await;
    browser.types("look").await;
    browser.presses("Enter").await;
    browser.sees(IDLE, true).await;
    browser.sees("document.querySelector('.you .file .file-name')?.innerText ?? ''", "notes.txt").await;
    browser.sees("document.querySelector('.you .picture img')?.naturalWidth ?? 0", 1).await;
    browser.sees("document.querySelectorAll('.chip').length", 0).await;
    browser.clicks(".you .file").await;
    browser.sees("document.querySelector('dialog pre')?.innerText ?? ''", "some notes").await;
    browser.presses("Escape").await;
    let asked = house.model.requests();
    assert!(format!("{:?}", asked[0]).contains("notes.txt"), "{:?}", asked[0]);
    browser.sees(BOX, "").await;
}

#[tokio::test]
async fn a_message_waits_for_the_answer_before_it_and_can_be_taken_back() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    house.model.next(Reply::text("one two three").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Chunk(2));
    browser.types("first").await;
    browser.presses("Enter").await;
    hold.reached().await.unwrap();
    for text in ["second", "third"] {
        browser.types(text).await;
        browser.presses("Enter").await;
        browser.sees("document.querySelector('.waiting:last-child .bubble')?.innerText ?? ''", text).await;
    }
    reloads(&mut browser).await;
    browser.sees("document.querySelectorAll('.waiting').length", 2).await;
    browser.clicks(".waiting:last-child .link").await;
    browser.sees("document.querySelectorAll('.waiting').length", 1).await;
    hold.proceed();
    browser.sees(TALK, vec!["you: first", "pudu: one two three", "you: second", "pudu: echo: second"]).await;
    browser.sees(IDLE, true).await;
}

/// An image of one pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0, 0,
    0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63,
    0x64, 0xf8, 0xcf, 0x50, 0x0f, 0, 0x03, 0x86, 0x01, 0x80, 0x5a, 0x34, 0x7d, 0x6b, 0, 0, 0, 0, 0x49, 0x45,
    0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];
