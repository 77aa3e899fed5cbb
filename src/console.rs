//! The files of the web page, and Markdown as HTML that is safe to put into a page.

#[cfg(test)]
mod words;

use pudu_channels::render::citation_title;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The page's document. `{version}` stands for the version of its files, `{links}` for the links to them.
pub(crate) const PAGE: &str = include_str!("console/page/page.html");

macro_rules! page_files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("console/page/", $name)))),*] };
}

/// The files of which the page is made, by their names. It loads nothing else.
pub(crate) const PAGE_FILES: &[(&str, &str)] = page_files![
    "base.css" "layout.css" "talk.css" "dialogs.css" "deer.svg"
    "main.js" "account.js" "api.js" "approval.js" "changes.js" "commands.js" "composer.js" "conversation.js" "dialogs.js"
    "dom.js" "files.js" "help.js" "inline.js" "markdown.js" "markup.js" "notices.js" "sidebar.js" "signin.js" "step.js"
    "stream.js" "theme.js" "thread.js" "transcript.js" "turn.js" "words.js" "zh-hans.js"
];

/// Renders Markdown. HTML in it is shown as text, links lead to web and mail addresses only, and images
/// become links, so that a text can neither run nor fetch anything.
pub(crate) fn html(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut out = String::new();
    html::push_html(&mut out, Parser::new_ext(markdown, options).map(tame).scan(false, titled));
    out
}

fn tame(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(
            Tag::Link { link_type, dest_url, title, id } | Tag::Image { link_type, dest_url, title, id },
        ) => Event::Start(Tag::Link { link_type, dest_url: target(dest_url), title, id }),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        Event::SoftBreak => Event::HardBreak,
        other => other,
    }
}

/// Shows the title of a page that a link cites, without the mark of a citation.
fn titled<'a>(in_link: &mut bool, event: Event<'a>) -> Option<Event<'a>> {
    match &event {
        Event::Start(Tag::Link { .. }) => *in_link = true,
        Event::End(TagEnd::Link) => *in_link = false,
        Event::Text(text) if *in_link => {
            return Some(Event::Text(citation_title(text).to_owned().into()));
        }
        _ => {}
    }
    Some(event)
}

fn target(url: CowStr<'_>) -> CowStr<'_> {
    let safe = ["http://", "https://", "mailto:"];
    let lower = url.to_ascii_lowercase();
    if safe.iter().any(|scheme| lower.starts_with(scheme)) { url } else { CowStr::Borrowed("") }
}

#[cfg(test)]
mod tests {
    use super::html;

    #[test]
    fn markdown_becomes_html_that_can_do_nothing() {
        let check = |markdown: &str, expect: &str| assert_eq!(html(markdown).trim(), expect, "{markdown}");
        check("**a** `b`", "<p><strong>a</strong> <code>b</code></p>");
        check("one\ntwo", "<p>one<br />\ntwo</p>");
        check("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;");
        check("a <img src=x onerror=alert(1)>", "<p>a &lt;img src=x onerror=alert(1)&gt;</p>");
        check("[x](javascript:alert(1))", "<p><a href=\"\">x</a></p>");
        check("[x](JAVASCRIPT:alert(1))", "<p><a href=\"\">x</a></p>");
        check("[x](https://example.org)", "<p><a href=\"https://example.org\">x</a></p>");
        check("[citation:x](https://example.org)", "<p><a href=\"https://example.org\">x</a></p>");
        check("![x](https://example.org/p.png)", "<p><a href=\"https://example.org/p.png\">x</a></p>");
    }
}
