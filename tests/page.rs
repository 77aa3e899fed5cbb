//! The page, in a real browser.

mod browser;

use crate::house::House;
use browser::Browser;
use pudu_sim::model::{At, Reply};

const BOX: &str = "document.getElementById('box').value";
const NOTICE: &str = "document.querySelector('#notice span').textContent";

/// What stands in the conversation: who, and what.
const TALK: &str = "[...document.querySelectorAll('#lines > .row')].map(row =>
    (row.classList.contains('you') ? 'you: ' : 'pudu: ') + row.querySelector('.words').innerText)";

/// What stands below: the channels, and the colours of their dots.
const CHANNELS: &str = "[...document.querySelectorAll('#channels > span:not(.keys)')].map(channel => {
    const dot = getComputedStyle(channel.firstElementChild).backgroundColor;
    const is = name => {
        const probe = document.body.appendChild(make('i', { style: `color: var(--${name})` }));
        const same = getComputedStyle(probe).color === dot;
        probe.remove();
        return same;
    };
    return `${channel.innerText} ${is('good') ? 'green' : is('quiet') ? 'grey' : dot}`;
})";

/// An expression for whether a button is there to be clicked.
fn shown(id: &str) -> String {
    format!("document.getElementById('{id}').checkVisibility()")
}

async fn open(house: &House) -> Option<Browser> {
    let mut browser = Browser::start().await?;
    browser.open(&format!("http://{}/", house.address)).await;
    browser.sees("document.readyState", "complete").await;
    browser.sees("rows.size === 0 && source?.readyState === 1 && commands.length > 5", true).await;
    Some(browser)
}

#[tokio::test]
async fn a_person_talks_stops_and_finds_it_all_again() {
    let house = House::open("").await;
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

    house.model.next(Reply::text("one two three four").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Chunk(3));
    browser.types("count").await;
    browser.presses("Enter").await;
    hold.reached().await.unwrap();
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: one two").await;
    browser.sees(&shown("stop"), true).await;
    browser.types("and then").await;
    browser.presses("Escape").await;
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: one two\n\nStopped.").await;
    browser.sees(&shown("stop"), false).await;
    browser.sees(BOX, "and then").await;

    let before = browser.eval(TALK).await;
    browser.eval("location.reload()").await;
    browser.sees("document.querySelectorAll('.row').length", 4).await;
    browser.sees(TALK, before).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn a_message_whose_answer_got_lost_stays_in_the_box_and_is_said_once() {
    let house = House::open("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.lose_answers = true;
    browser.types("once").await;
    browser.presses("Enter").await;
    browser.sees(NOTICE, "Not sent yet: pudu cannot be reached. Trying again…").await;
    browser.sees(BOX, "once").await;
    browser.lose_answers = false;
    browser.sees(BOX, "").await;
    browser.sees(NOTICE, "").await;
    browser.sees(TALK, vec!["you: once", "pudu: echo: once"]).await;
    assert_eq!(house.model.count(), 1);
}

#[tokio::test]
async fn the_daemon_may_go_and_come_back() {
    let mut house = House::open("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.types("before").await;
    browser.presses("Enter").await;
    browser.sees(TALK, vec!["you: before", "pudu: echo: before"]).await;
    browser.eval("channels()").await;
    browser.sees(CHANNELS, vec!["local green", "telegram green"]).await;
    house.kill();
    browser.sees("document.getElementById('link').innerText", "Reconnecting…").await;
    browser.sees(CHANNELS, vec!["local: unknown grey", "telegram: unknown grey"]).await;
    browser.types("after").await;
    browser.presses("Enter").await;
    browser.sees(&shown("notice"), true).await;
    house.bind = house.address.clone();
    house.start();
    let talk = vec!["you: before", "pudu: echo: before", "you: after", "pudu: echo: after"];
    browser.sees(TALK, talk).await;
    browser.sees(&shown("link"), false).await;
    browser.eval("channels()").await;
    browser.sees(CHANNELS, vec!["local green", "telegram green"]).await;
    assert_eq!(house.model.count(), 2);
}

#[tokio::test]
async fn commands_are_completed_and_choices_are_buttons() {
    let house = House::open("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.types("/mod").await;
    browser
        .sees(
            "[...menu.children].map(row => row.firstChild.innerText.trim())",
            vec!["/models [name]", "/mode [queue|steer|interrupt]"],
        )
        .await;
    browser.presses("ArrowUp").await;
    browser.presses("Enter").await;
    browser.sees(BOX, "/mode ").await;
    browser.presses("Escape").await;
    browser.presses("Enter").await;
    browser
        .sees(
            "[...document.querySelectorAll('.extras button')].map(b => b.innerText)",
            vec!["steer", "interrupt"],
        )
        .await;
    browser.eval("document.querySelector('.extras button').click()").await;
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: Mode steer: a message reaches me while I work.").await;
    browser.presses("ArrowUp").await;
    browser.sees(BOX, "/mode").await;
}

#[tokio::test]
async fn markdown_is_shown_and_can_do_nothing() {
    let house = House::open("").await;
    let Some(mut browser) = open(&house).await else { return };
    let text =
        "|a|b|\n|-|-|\n|1|2|\n\n```sh\nls\n```\n\n<img src=x onerror='window.bad=1'> [x](javascript:bad=1)";
    house.model.next(Reply::text(text));
    browser.types("show").await;
    browser.presses("Enter").await;
    browser.sees("[...document.querySelectorAll('td')].map(cell => cell.innerText)", vec!["1", "2"]).await;
    browser.sees("document.querySelector('.code')?.innerText.trim()", "sh\nCopy\nls").await;
    browser.sees("document.querySelectorAll('.words img, .words a[href]').length", 0).await;
    browser.sees("typeof bad", "undefined").await;
}

#[tokio::test]
async fn a_page_that_is_not_let_in_asks_for_the_token() {
    let mut house = House::furnish(Default::default(), "", "gateway:\n  token: open-sesame\n").await;
    house.start();
    let Some(mut browser) = Browser::start().await else { return };
    browser.open(&format!("http://{}/", house.address)).await;
    browser.sees("document.querySelector('dialog')?.open", true).await;
    browser.types("wrong").await;
    browser.presses("Enter").await;
    browser.sees(&shown("wrong"), true).await;
    browser.eval("document.getElementById('token').value = ''").await;
    browser.types("open-sesame").await;
    browser.presses("Enter").await;
    browser.sees("door.open || source?.readyState !== 1", false).await;
    browser.eval("box.focus()").await;
    browser.types("hello").await;
    browser.presses("Enter").await;
    browser.sees(TALK, vec!["you: hello", "pudu: echo: hello"]).await;
}
