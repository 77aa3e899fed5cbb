//! Rendered content on the page: highlighted code, formulas, diagrams; and files in frames.

use super::{IDLE, browser::Browser, house, looks::audits, open};
use crate::house::{House, http};
use pudu_sim::model::Reply;
use serde_json::json;

async fn answers(browser: &mut Browser, house: &House, text: &str) {
    house.model.next(Reply::text("x").chunks([text.to_owned()]));
    browser.eval("document.getElementById('box').focus()").await;
    browser.types("go").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelectorAll('.words').length > 0", true).await;
    browser.sees(IDLE, true).await;
}

fn texts(selector: &str) -> String {
    format!("[...document.querySelectorAll('.words {selector}')].map(node => node.textContent)")
}

/// Records violations of the page's content security policy.
const WATCH: &str = "(window.refused = [], addEventListener('securitypolicyviolation', event => refused.push(event.violatedDirective + ' ' + event.blockedURI)), 1)";

#[tokio::test]
async fn code_has_colours_and_stays_the_same_text() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.eval(WATCH).await;
    browser
        .sees("performance.getEntriesByType('resource').some(one => one.name.includes('/vendor/'))", false)
        .await;
    let code = "let x = \"<b>&amp;</b>\"; // <span class=\"evil\">\n";
    let text = format!(
        "```rust\n{code}```\n\n```Dockerfile\nFROM a\n```\n\n```nonsense\nlet x\n```\n\n```\nplain\n```"
    );
    answers(&mut browser, &house, &text).await;
    browser.sees(&texts(".code .hljs-keyword"), vec!["let", "FROM"]).await;
    browser.sees(&texts(".code .hljs-comment"), vec!["// <span class=\"evil\">"]).await;
    browser.sees("document.querySelector('.code code').textContent", code.trim_end()).await;
    browser.sees("document.querySelectorAll('.evil, .words b').length", 0).await;
    audits(&mut browser, "code with colours").await;
    browser.sees("refused", json!([])).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn formulas_are_set_and_amounts_of_money_are_not() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.eval(WATCH).await;
    let text = "\\(e^{i\\pi}\\), $x_1 + y$, 其中$n$是。 From $5 to $6, $HOME/$USER, $/PR and $/session, US$5.\n\n$$\na\n=\n\\sqrt{b}\n$$\n\n\\[ \\frac{1}{2} \\]\n\n\
        \\begin{align}\nc &= d\n\\end{align}\n\n$$ \\broken{ $$\n\n```math\nz^2\n```";
    answers(&mut browser, &house, text).await;
    let sources = "[...document.querySelectorAll('.words annotation')].map(node => node.textContent)";
    let set = [
        "e^{i\\pi}",
        "x_1 + y",
        "n",
        "a\n=\n\\sqrt{b}",
        "\\frac{1}{2}",
        "\\begin{align}\nc &= d\n\\end{align}",
        "z^2",
    ];
    browser.sees(sources, set.to_vec()).await;
    browser.sees("document.querySelectorAll('.words .katex-display').length", 4).await;
    // A short formula is not wider than its container: it needs no scroll bar.
    let wide = "[...document.querySelectorAll('.words .formula.display')].filter(node => node.scrollWidth > node.clientWidth).length";
    browser.sees(wide, 0).await;
    let money = "document.querySelector('.words p').textContent.includes('$5 to $6, $HOME/$USER, $/PR and $/session, US$5')";
    browser.sees(money, true).await;
    // An invalid formula stays unchanged.
    browser.sees(&texts("code.formula"), vec!["\\broken{"]).await;
    // The library's styles apply: its fonts are loaded, and a root has its size.
    browser.sees("document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Main'))", true).await;
    browser
        .sees("document.querySelector('.words .sqrt svg').getBoundingClientRect().width < 200", true)
        .await;
    browser.sees("document.querySelector('.words .vlist > span').style.top !== ''", true).await;
    audits(&mut browser, "formulas").await;
    browser.sees("refused.filter(one => !one.startsWith('style-src-attr'))", json!([])).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn diagrams_are_pictures_and_those_with_faults_stay_text() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.eval(WATCH).await;
    let harm = "flowchart TD\n  A[\"<img src=x onerror=alert(1)>\"] --> B[好的]\n  click A href \"javascript:alert(1)\"";
    let text = format!("```mermaid\n{harm}\n```\n\n```mermaid\nflowchart TD\n  A[Start -->\n```");
    answers(&mut browser, &house, &text).await;
    browser.sees("document.querySelectorAll('.words .diagram').length", 1).await;
    let picture = "document.querySelector('.diagram img')";
    browser
        .sees(
            &format!(
                "{picture}.complete && {picture}.naturalWidth > 50 && {picture}.src.startsWith('blob:')"
            ),
            true,
        )
        .await;
    let hint = "document.querySelector('.diagram-hint')?.textContent.startsWith('This diagram could not be drawn: Parse error')";
    browser.sees(hint, true).await;
    browser.sees("document.querySelectorAll('.words svg.flowchart, .words foreignObject').length", 0).await;
    // The frame has no origin: page and frame cannot access each other.
    browser.sees("[document.querySelector('.renderer').sandbox.value, document.querySelector('.renderer').contentDocument]", json!(["allow-scripts", null])).await;
    let visible = "[...document.querySelectorAll('.code pre')].map(node => node.checkVisibility())";
    browser.sees(visible, json!([false, true])).await;
    browser.clicks("[aria-label='Show the text']").await;
    browser.sees(visible, json!([true, true])).await;
    browser.clicks("[aria-label='Show the diagram']").await;
    audits(&mut browser, "diagrams").await;
    let before = browser.eval("document.querySelector('.diagram img').src").await;
    browser.prefers("dark").await;
    browser
        .sees(
            &format!("{picture}.src !== {before} && {picture}.complete && {picture}.naturalWidth > 50"),
            true,
        )
        .await;
    browser.clicks(".diagram").await;
    browser.sees("document.querySelector('dialog img')?.naturalWidth > 50", true).await;
    browser.presses("Escape").await;
    browser.sees("refused", json!([])).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn an_empty_diagram_and_a_damaged_picture_say_why_they_are_not_shown() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    answers(&mut browser, &house, "```mermaid\n\n```").await;
    let hint = "document.querySelector('.diagram-hint')?.textContent";
    browser.sees(hint, "This diagram could not be drawn: it is empty").await;
    hands_over(&mut browser, &house, "broken.svg", "<svg><rect").await;
    browser.eval(&format!("{OPEN_NEWEST} ?? 1")).await;
    let why = "document.querySelector('dialog .hint')?.textContent.startsWith('The browser cannot show this image')";
    browser.sees(why, true).await;
}

#[tokio::test]
async fn a_diagram_that_takes_too_long_does_not_hold_up_the_next_one() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    // Only diagrams have a timeout of 20 s here: it is over immediately.
    browser
        .eval("(window.later = setTimeout, window.setTimeout = (work, time) => later(work, time === 20_000 ? 0 : time), 1)")
        .await;
    answers(&mut browser, &house, "```mermaid\nflowchart TD\n  A --> B\n```").await;
    let hint = "document.querySelector('.diagram-hint')?.textContent";
    browser.sees(hint, "This diagram could not be drawn: it took too long").await;
    browser.sees("document.querySelectorAll('.renderer').length", 0).await;
    browser.eval("(window.setTimeout = later, 1)").await;
    answers(&mut browser, &house, "```mermaid\nflowchart TD\n  C --> D\n```").await;
    browser.sees("document.querySelectorAll('.words .diagram').length", 1).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn libraries_are_sent_compressed_to_those_who_read_that() {
    let house = house("").await;
    let client = reqwest::Client::builder().no_gzip().no_proxy().build().unwrap();
    let get = async |path: &str, accepts: &str| {
        let address = format!("http://{}/page/any/{path}", house.address);
        // A sandboxed frame sends no origin.
        let asked = client.get(address).header("accept-encoding", accepts).header("origin", "null");
        let answer = asked.send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let headers = ["content-encoding", "content-type", "vary"].map(header);
        (answer.status().as_u16(), headers, answer.bytes().await.unwrap())
    };
    let (status, [coding, kind, vary], packed) = get("vendor/katex/katex.min.js", "gzip, br").await;
    assert_eq!((status, coding.as_deref(), vary.as_deref()), (200, Some("gzip"), Some("accept-encoding")));
    assert_eq!(kind.as_deref(), Some("text/javascript; charset=utf-8"));
    let (_, [coding, ..], plain) = get("vendor/katex/katex.min.js", "identity").await;
    assert_eq!(coding, None);
    assert!(packed.len() * 2 < plain.len() && plain.starts_with(b"!function"), "{}", packed.len());
    let (_, [coding, kind, _], _) = get("vendor/katex/fonts/KaTeX_Main-Regular.woff2", "gzip").await;
    assert_eq!((coding, kind.as_deref()), (None, Some("font/woff2")));
    assert_eq!(get("vendor/katex/LICENSE", "gzip").await.0, 200);
    for path in
        ["vendor/none.js", "vendor/../page.html", "vendor/manifest.json", "frame/none.html", "vendor/katex"]
    {
        assert_eq!(get(path, "gzip").await.0, 404, "{path}");
    }
    let frame =
        http().get(format!("http://{}/page/any/frame/diagram.html", house.address)).send().await.unwrap();
    let policy = frame.headers()["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("sandbox allow-scripts; default-src 'none'") && !policy.contains("same-origin"),
        "{policy}"
    );
}

/// Presents a file and waits for its card.
async fn hands_over(browser: &mut Browser, house: &House, name: &str, content: &str) {
    let path = format!("/mnt/user-data/outputs/{name}");
    house.model.next(Reply::tool("write_file", &json!({"path": path, "content": content})));
    house.model.next(Reply::tool("present_files", &json!({"filepaths": [path]})));
    answers(browser, house, "Here.").await;
    let cards = "[...document.querySelectorAll('.handed :is(.file, .picture)')].at(-1)?.title ?? ''";
    browser.sees(cards, name).await;
}

const OPEN_NEWEST: &str = "[...document.querySelectorAll('.handed :is(.file, .picture)')].at(-1).click()";

#[tokio::test]
async fn a_page_that_the_agent_made_runs_in_a_frame_and_reaches_nothing() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.eval("(window.told = [], addEventListener('message', event => event.data.probe && told.push([event.origin, ...event.data.probe])), 1)").await;
    let probe = "<style>b{color:red}</style><b>hi</b><script>(async () => {
        const tries = [() => document.cookie, () => localStorage.length, () => parent.document.title, () => fetch('/api/threads')];
        const ends = [];
        for (const one of tries) { try { await one(); ends.push('reached'); } catch { ends.push('refused'); } }
        parent.postMessage({ probe: ends }, '*');
        })()</script>";
    hands_over(&mut browser, &house, "page.html", probe).await;
    browser.eval(&format!("{OPEN_NEWEST} ?? 1")).await;
    browser.sees("told", json!([["null", "refused", "refused", "refused", "refused"]])).await;
    audits(&mut browser, "a page in a frame").await;
    // Its highlighted text is next to it.
    browser
        .sees("[...document.querySelectorAll('.tab')].map(tab => tab.innerText)", json!(["Preview", "Text"]))
        .await;
    browser.eval("document.querySelectorAll('.tab')[1].click() ?? 1").await;
    browser
        .sees("document.querySelector('dialog pre')?.textContent.startsWith('<style>b{color:red}')", true)
        .await;
    browser.sees("document.querySelectorAll('dialog iframe').length", 0).await;
    browser.presses("Escape").await;
    // Opened outside of a frame, it is a download.
    let path = browser.eval("location.hash").await.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let address = format!(
        "http://{}/api/threads/{path}/artifacts/mnt/user-data/outputs/page.html?preview=true",
        house.address
    );
    let top = http().get(&address).header("sec-fetch-dest", "document").send().await.unwrap();
    assert!(top.headers()["content-disposition"].to_str().unwrap().starts_with("attachment"), "{top:?}");
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn drawings_are_pictures_and_documents_have_their_text() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    browser.eval("(window.ran = 0, 1)").await;
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"80\" height=\"40\"><style>rect{fill:red}</style><rect width=\"80\" height=\"40\"/>\
        <script>parent.ran = 1</script></svg>";
    hands_over(&mut browser, &house, "drawing.svg", svg).await;
    browser.eval(&format!("{OPEN_NEWEST} ?? 1")).await;
    browser.sees("document.querySelector('dialog img')?.naturalWidth", 80).await;
    browser.sees("ran", 0).await;
    browser.presses("Escape").await;
    hands_over(
        &mut browser,
        &house,
        "mail.eml",
        "From: ada@example.org\nSubject: Plan\nContent-Type: text/plain\n\nThe plan is good.\n",
    )
    .await;
    browser.eval(&format!("{OPEN_NEWEST} ?? 1")).await;
    browser
        .sees("document.querySelector('dialog .words')?.textContent.includes('The plan is good.')", true)
        .await;
    browser.presses("Escape").await;
    let pdf = include_str!("plain.pdf");
    hands_over(&mut browser, &house, "report.pdf", pdf).await;
    browser.eval(&format!("{OPEN_NEWEST} ?? 1")).await;
    browser.sees("document.querySelectorAll('dialog iframe.framed').length", json!(1)).await;
    browser.eval("[...document.querySelectorAll('.tab')].at(-1).click() ?? 1").await;
    browser.sees("document.querySelector('dialog .words')?.textContent.includes('Hello PDF')", true).await;
    browser.presses("Escape").await;
    // If the browser cannot show PDFs, the text is shown immediately.
    browser.eval("(Object.defineProperty(navigator, 'pdfViewerEnabled', { value: false }), 1)").await;
    browser.eval(&format!("{OPEN_NEWEST} ?? 1")).await;
    browser.sees("document.querySelector('dialog .words')?.textContent.includes('Hello PDF')", true).await;
    browser.sees("[document.querySelectorAll('dialog iframe').length, document.querySelector('dialog a.button').innerText]", json!([0, "Download"])).await;
    assert_eq!(browser.failures, [""; 0]);
}

#[tokio::test]
async fn an_image_that_the_model_made_is_shown() {
    let house = house("").await;
    let Some(mut browser) = open(&house).await else { return };
    let png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    house.model.next(Reply::text("").image(png));
    browser.types("draw a dot").await;
    browser.presses("Enter").await;
    browser.sees("document.querySelector('.words .picture img')?.naturalWidth", 1).await;
    browser.sees(IDLE, true).await;
    browser.clicks("#files").await;
    browser.sees("document.querySelectorAll('dialog .picture').length", 1).await;
}
