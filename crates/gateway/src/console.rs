//! The files of the web page, and Markdown as HTML that is safe to put into a page.

pub(crate) mod vendor;
#[cfg(test)]
mod words;

use comrak::{
    Arena, Node, format_html,
    nodes::{Ast, LineColumn, NodeValue},
    parse_document,
};
use pudu_channels::render::{citation_title, markdown::options};

/// The page's document. `{version}` is replaced by the version of its files, `{links}` by the links to them.
pub(crate) const PAGE: &str = include_str!("console/page/page.html");

macro_rules! page_files {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("console/page/", $name)))),*] };
}

/// Files of the page by their names. The page also loads libraries ([`vendor`]) when it needs them.
pub(crate) const PAGE_FILES: &[(&str, &str)] = page_files![
    "base.css" "layout.css" "talk.css" "dialogs.css" "deer.svg"
    "main.js" "account.js" "api.js" "approval.js" "changes.js" "commands.js" "composer.js" "conversation.js" "dialogs.js"
    "dom.js" "draw.js" "files.js" "help.js" "inline.js" "markdown.js" "markup.js" "notices.js" "sidebar.js" "signin.js" "step.js"
    "stream.js" "theme.js" "thread.js" "transcript.js" "turn.js" "words.js" "zh-hans.js"
];

/// The documents of sandboxed frames and their scripts. Each frame has an origin of its own.
pub(crate) const FRAME_FILES: &[(&str, &str)] = &[
    ("frame/diagram.html", include_str!("console/frame/diagram.html")),
    ("frame/diagram.js", include_str!("console/frame/diagram.js")),
];

/// Renders Markdown. HTML in it is shown as text, links lead to web and mail addresses only, and images
/// become links, so that a text can neither run nor fetch anything.
pub(crate) fn html(markdown: &str) -> String {
    let mut options = options(markdown);
    (options.extension.math_dollars, options.extension.math_latex) = (false, false);
    options.extension.footnotes = false;
    (options.render.escape, options.render.hardbreaks) = (true, true);
    let arena = Arena::new();
    let root = parse_document(&arena, markdown, &options);
    let nodes: Vec<Node<'_>> = root.descendants().collect();
    for node in nodes {
        tame(&arena, node);
    }
    let mut out = String::new();
    if format_html(root, &options, &mut out).is_err() {
        out.clear();
    }
    out
}

/// Changes a node so that it can neither run nor fetch anything.
fn tame<'a>(arena: &'a Arena<'a>, node: Node<'a>) {
    if node.data().value == NodeValue::Subscript {
        return spell_tildes(arena, node);
    }
    let in_link = node.ancestors().skip(1).any(|above| matches!(above.data().value, NodeValue::Link(_)));
    let mut data = node.data_mut();
    let tamed = match &data.value {
        NodeValue::Link(link) | NodeValue::Image(link) => {
            let mut link = link.clone();
            link.url = target(&link.url).to_owned();
            NodeValue::Link(link)
        }
        NodeValue::Text(text) if in_link => NodeValue::Text(citation_title(text).to_owned().into()),
        _ => return,
    };
    data.value = tamed;
}

/// Puts a text between single tildes, which mark nothing, in the place of its node.
fn spell_tildes<'a>(arena: &'a Arena<'a>, node: Node<'a>) {
    let tilde = || -> Node<'a> {
        arena.alloc(Ast::new(NodeValue::Text("~".into()), LineColumn::from((1, 1))).into())
    };
    node.insert_before(tilde());
    let children: Vec<Node<'a>> = node.children().collect();
    children.into_iter().for_each(|child| node.insert_before(child));
    node.insert_before(tilde());
    node.detach();
}

fn target(url: &str) -> &str {
    let safe = ["http://", "https://", "mailto:"];
    let lower = url.to_ascii_lowercase();
    if safe.iter().any(|scheme| lower.starts_with(scheme)) { url } else { "" }
}

#[cfg(test)]
mod tests {
    use super::html;

    #[test]
    fn markdown_becomes_html_that_can_do_nothing() {
        let check = |markdown: &str, expect: &str| assert_eq!(html(markdown).trim(), expect, "{markdown}");
        check("**注意：**请先 ~5~ ~~6~~", "<p><strong>注意：</strong>请先 ~5~ <del>6</del></p>");
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
