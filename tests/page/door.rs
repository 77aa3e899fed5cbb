//! Sign-in on the page.

use super::{BOX, NOTICE, TALK, browser::Browser, build, house, open, says, shown, visit};
use crate::house::House;
use pudu_sim::{
    Oidc,
    oidc::{CLIENT_ID, CLIENT_SECRET},
};
use std::{
    io::Write,
    net::{IpAddr, UdpSocket},
};

const PASSWORD: &str = "correct horse";

/// A house with an account; `rest` is appended to its configuration.
async fn settled(email: &str, rest: &str) -> House {
    let mut house = build(rest).await;
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pudu"));
    command.args(["user", "add", email, "--admin"]).current_dir(house.path(""));
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    house.start();
    house
}

/// Fills in a field of the sign-in form.
async fn fills(browser: &mut Browser, name: &str, text: &str) {
    browser.sees(&format!("Boolean(document.querySelector('#door input[name={name}]'))"), true).await;
    browser.eval(&format!("document.querySelector('#door input[name={name}]').focus()")).await;
    browser.eval("document.activeElement.select()").await;
    browser.types(text).await;
}

const HEADING: &str = "document.querySelector('#door h2')?.innerText ?? ''";

#[tokio::test]
async fn a_page_that_is_not_let_in_asks_for_the_token() {
    let house = house("gateway:\n  token: open-sesame\n").await;
    let Some(mut browser) = Browser::start().await else { return };
    browser.open(&format!("http://{}/", house.address)).await;
    browser.sees(HEADING, "Enter the operator’s token").await;
    fills(&mut browser, "token", "wrong").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('#door .wrong').innerText", "The token is wrong.").await;
    fills(&mut browser, "token", "open-sesame").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('#door') === null && document.body.dataset.ready", "true").await;
    says(&mut browser, "hello", "echo: hello").await;
}

#[tokio::test]
async fn somebody_signs_in_loses_the_session_and_goes_on_where_they_were() {
    let house = settled("ada@example.org", "").await;
    let Some(mut browser) = Browser::start().await else { return };
    browser.open(&format!("http://{}/", house.address)).await;
    browser.sees(HEADING, "Sign in").await;
    fills(&mut browser, "email", "ada@example.org").await;
    fills(&mut browser, "password", "no idea").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('#door .wrong').innerText", "Incorrect email or password.").await;
    fills(&mut browser, "password", PASSWORD).await;
    browser.presses("Enter").await;
    browser.sees("document.body.dataset.ready ?? ''", "true").await;
    browser.sees("document.getElementById('who').innerText", "ada@example.org").await;
    says(&mut browser, "hello", "echo: hello").await;

    browser.forgets_cookies().await;
    browser.types("still here").await;
    browser.presses("Enter").await;
    browser.sees(HEADING, "Sign in").await;
    fills(&mut browser, "email", "ada@example.org").await;
    fills(&mut browser, "password", PASSWORD).await;
    browser.presses("Enter").await;
    browser.sees(&format!("{TALK}.at(-1)"), "pudu: echo: still here").await;
    browser.sees(NOTICE, "").await;
    assert_eq!(house.model.count(), 2);

    browser.clicks("#account").await;
    browser.eval("[...document.querySelectorAll('.menu button')].find(one => one.innerText.includes('Change password')).click()").await;
    fills(&mut browser, "password", PASSWORD).await;
    fills(&mut browser, "fresh", "another horse").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('#door') === null", true).await;
    browser.clicks("#account").await;
    browser.eval("[...document.querySelectorAll('.menu button')].find(one => one.innerText.includes('Sign out')).click()").await;
    browser.sees(HEADING, "Sign in").await;
    fills(&mut browser, "email", "ada@example.org").await;
    fills(&mut browser, "password", "another horse").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelectorAll('.turn').length", 2).await;
}

#[tokio::test]
async fn where_nobody_has_an_account_the_first_administrator_is_made_on_the_page() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.sees("document.getElementById('who').innerText", "This machine").await;
    browser.sees(&shown("composer"), true).await;
    says(&mut browser, "held before", "echo: held before").await;
    browser.clicks("#account").await;
    browser.sees("[...document.querySelectorAll('.menu button')].some(one => one.innerText.includes('Set up accounts'))", true).await;
    browser.eval("[...document.querySelectorAll('.menu button')].find(one => one.innerText.includes('Set up accounts')).click()").await;
    fills(&mut browser, "email", "ada@example.org").await;
    fills(&mut browser, "fresh", PASSWORD).await;
    browser.presses("Enter").await;
    browser.sees("document.getElementById('who')?.innerText ?? ''", "ada@example.org").await;
    let mut other = Browser::start().await.unwrap();
    other.open(&format!("http://{}/", house.address)).await;
    other.sees(HEADING, "Sign in").await;
    // Earlier conversations are hers.
    browser.sees(TALK, vec!["you: held before", "pudu: echo: held before"]).await;
    browser.sees("document.querySelectorAll('#threads a').length", 1).await;
    visit(&mut browser, &house).await;
    browser.sees(BOX, "").await;
}

/// Returns an address by which other machines reach this one.
fn own_address() -> IpAddr {
    // Connecting a datagram socket sends nothing; it only looks up the route.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("203.0.113.1:9").unwrap();
    let address = socket.local_addr().unwrap().ip();
    assert!(!address.is_loopback() && !address.is_unspecified(), "{address}");
    address
}

#[tokio::test]
async fn where_other_machines_come_the_first_administrator_is_made_with_the_operators_token() {
    let mut house = build("").await;
    house.bind = "0.0.0.0:0".to_owned();
    house.start();
    let port = house.address.rsplit_once(':').unwrap().1.to_owned();
    let page = format!("http://{}:{port}/", own_address());
    let Some(mut browser) = Browser::start().await else { return };
    browser.open(&page).await;
    browser.sees(HEADING, "Enter the operator’s token").await;
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    fills(&mut browser, "token", token.trim()).await;
    browser.presses("Enter").await;
    browser.sees("document.body.dataset.ready ?? ''", "true").await;
    says(&mut browser, "held before", "echo: held before").await;
    browser.clicks("#account").await;
    browser.sees("[...document.querySelectorAll('.menu button')].some(one => one.innerText.includes('Set up accounts'))", true).await;
    browser.eval("[...document.querySelectorAll('.menu button')].find(one => one.innerText.includes('Set up accounts')).click()").await;
    fills(&mut browser, "email", "ada@example.org").await;
    fills(&mut browser, "fresh", PASSWORD).await;
    browser.presses("Enter").await;
    browser.sees("document.getElementById('who')?.innerText ?? ''", "ada@example.org").await;
    browser.sees(TALK, vec!["you: held before", "pudu: echo: held before"]).await;
    says(&mut browser, "and after", "echo: and after").await;
    let mut other = Browser::start().await.unwrap();
    other.open(&page).await;
    other.sees(HEADING, "Sign in").await;
    fills(&mut other, "email", "ada@example.org").await;
    fills(&mut other, "password", PASSWORD).await;
    other.presses("Enter").await;
    other.sees("document.getElementById('who')?.innerText ?? ''", "ada@example.org").await;
    assert_eq!((&browser.failures, &other.failures), (&Vec::new(), &Vec::new()));
}

#[tokio::test]
async fn somebody_signs_in_by_a_provider_or_reads_why_not() {
    let provider = Oidc::start().await.unwrap();
    let rest = format!(
        "auth:\n  oidc:\n    enabled: true\n    providers:\n      acme:\n        display_name: Acme\n        issuer: {}\n        \
         client_id: {CLIENT_ID}\n        client_secret: \"{CLIENT_SECRET}\"\n",
        provider.issuer()
    );
    // The provider's user is Ada.
    let house = settled("bo@example.org", &rest).await;
    let Some(mut browser) = Browser::start().await else { return };
    browser.open(&format!("http://{}/login?error=sso_not_allowed", house.address)).await;
    browser
        .sees(
            "document.querySelector('#door .wrong')?.innerText ?? ''",
            "This account is not allowed to sign in here.",
        )
        .await;
    browser.sees("location.pathname + location.search", "/").await;
    browser.sees("document.querySelector('#door a').innerText", "Sign in with Acme").await;
    browser.clicks("#door a").await;
    browser.sees("document.body?.dataset.ready ?? ''", "true").await;
    browser.sees("document.getElementById('who').innerText.includes('@')", true).await;
    says(&mut browser, "hello", "echo: hello").await;
}
