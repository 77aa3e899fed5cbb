//! Sanitizes any HTML in one pass, before a parser sees it.
//!
//! HTML parsers keep stacks: a page of nothing but `<b>` overflows the stack of the code that uses the parser, and one
//! of nothing but `<div>` takes minutes. The output of this module is well nested and shallow. It has few attributes,
//! and no scripts, styles, drawings or hidden parts. It need not match a browser's interpretation: taking a tag for
//! text, or text for a tag, costs a word but not the process.

use std::ops::ControlFlow;

/// Maximum depth of elements. Deeper ones lose their tags but keep their text.
const MAX_ELEMENT_DEPTH: usize = 96;
/// Maximum nesting of formatting elements of one kind. Deeper nesting most likely comes from unclosed elements.
const MAX_SAME_INLINE_DEPTH: usize = 3;
/// Maximum number of tags. Further tags are dropped, but not their text.
const TAGS: usize = 20_000;
/// Maximum number of entities; each is a separate node for a parser. Further ones are broken up.
const ENTITIES: usize = 50_000;
/// Maximum length of the sanitized HTML, in bytes. Anything beyond it is cut.
const MAX_STRIPPED_BYTES: usize = 1024 * 1024;
/// Maximum number of attributes that are read, and maximum length of a kept value, in bytes.
const ATTRIBUTES: (usize, usize) = (32, 2_048);

/// Elements that are dropped with their content.
const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "embed", "canvas",
    "select", "textarea", "noembed", "noframes", "xmp", "audio", "video", "datalist", "dialog", "map",
    "frameset",
];
/// Elements without content.
const VOID: &[&str] = &["br", "hr", "img", "meta", "wbr"];
/// Block elements, which end a paragraph.
const BLOCKS: &[&str] = &[
    "article",
    "main",
    "section",
    "div",
    "header",
    "footer",
    "nav",
    "aside",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "p",
    "ul",
    "ol",
    "dl",
    "table",
    "pre",
    "blockquote",
    "figure",
    "figcaption",
    "details",
    "summary",
    "address",
];
/// Parts of lists and tables. A new part ends the previous ones, up to the beginning of its list or table.
const PARTS: &[(&str, &[&str], &[&str])] = &[
    ("li", &["li"], &["ul", "ol"]),
    ("dt", &["dt", "dd"], &["dl"]),
    ("dd", &["dt", "dd"], &["dl"]),
    ("td", &["td", "th"], &["tr", "table"]),
    ("th", &["td", "th"], &["tr", "table"]),
    ("tr", &["tr"], &["table"]),
    ("thead", &["thead", "tbody", "tfoot"], &["table"]),
    ("tbody", &["thead", "tbody", "tfoot"], &["table"]),
    ("tfoot", &["thead", "tbody", "tfoot"], &["table"]),
    ("caption", &["caption"], &["table"]),
];
/// Elements that only change formatting.
const INLINE: &[&str] = &[
    "a", "b", "strong", "i", "em", "u", "s", "del", "ins", "sub", "sup", "code", "kbd", "samp", "q", "cite",
    "mark", "small", "abbr", "time", "span", "label", "var",
];
/// Elements that a closing tag cannot reach beyond, unless it closes such an element.
const WALLS: &[&str] = &["td", "th", "caption", "table"];
/// Attributes that are kept, which describe an element's target, text or purpose.
const KEPT_ATTRIBUTES: &[&str] = &[
    "href", "src", "alt", "title", "class", "id", "role", "name", "property", "content", "itemprop", "lang",
    "datetime",
];

/// Returns sanitized HTML.
pub(crate) fn strip(html: &str) -> String {
    let mut strip = Strip { out: String::new(), open: Vec::new(), hidden: 0, tags: 0, entities: 0 };
    let mut rest = html;
    while let ControlFlow::Continue(next) = strip.step(rest) {
        if strip.out.len() > MAX_STRIPPED_BYTES {
            break;
        }
        rest = next;
    }
    strip.close_to(0);
    strip.out
}

struct Strip {
    out: String,
    open: Vec<OpenElement>,
    /// Number of open elements that hide their content.
    hidden: usize,
    tags: usize,
    entities: usize,
}

struct OpenElement {
    name: &'static str,
    hides: bool,
}

/// A parsed tag.
struct Tag<'h> {
    name: String,
    closes: bool,
    attributes: Vec<(String, &'h str)>,
}

impl Strip {
    /// Consumes text up to and including the next tag. Returns the remaining text.
    fn step<'h>(&mut self, html: &'h str) -> ControlFlow<(), &'h str> {
        let Some((text, after)) = html.split_once('<') else {
            self.text(html);
            return ControlFlow::Break(());
        };
        self.text(text);
        if let Some(comment) = after.strip_prefix("!--") {
            return rest(comment.split_once("-->"));
        }
        if after.starts_with(['!', '?']) {
            return rest(after.split_once('>'));
        }
        let begins = after.strip_prefix('/').unwrap_or(after).starts_with(|c: char| c.is_ascii_alphabetic());
        if !begins {
            self.text("&lt;");
            return ControlFlow::Continue(after);
        }
        let (tag, after) = tag(after);
        match tag.name.as_str() {
            name if tag.closes => {
                self.close(name);
                ControlFlow::Continue(after)
            }
            name if SKIPPED.contains(&name) => skip(after, name),
            "title" => self.title(after),
            "plaintext" => ControlFlow::Break(()),
            _ => {
                self.open(&tag);
                ControlFlow::Continue(after)
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.hidden > 0 {
            return;
        }
        let (text, _) = text.split_at(text.floor_char_boundary(MAX_STRIPPED_BYTES));
        self.entities += text.matches('&').count();
        if self.entities <= ENTITIES {
            self.out.push_str(text);
        } else {
            self.out.push_str(&text.replace('&', " "));
        }
    }

    fn title<'h>(&mut self, after: &'h str) -> ControlFlow<(), &'h str> {
        let Some((title, after)) = until(after, "title") else { return ControlFlow::Break(()) };
        if self.open.is_empty() {
            self.out.push_str("<title>");
            self.out.push_str(&title.replace('<', "&lt;"));
            self.out.push_str("</title>");
        }
        ControlFlow::Continue(after)
    }

    fn open(&mut self, tag: &Tag<'_>) {
        let Some(name) = known(&tag.name) else { return };
        let hides = tag.attributes.iter().any(|(key, value)| hides(key, value));
        if VOID.contains(&name) {
            if !hides {
                self.write(name, &tag.attributes);
            }
            return;
        }
        self.end_implied(name);
        let same = self.open.iter().filter(|open| open.name == name).count();
        if self.open.len() >= MAX_ELEMENT_DEPTH
            || self.tags >= TAGS
            || (INLINE.contains(&name) && same >= MAX_SAME_INLINE_DEPTH)
        {
            return;
        }
        self.hidden += usize::from(hides);
        self.write(name, &tag.attributes);
        self.open.push(OpenElement { name, hides });
    }

    /// Closes the elements that end where a new element begins.
    fn end_implied(&mut self, name: &str) {
        if let Some((_, ends, within)) = PARTS.iter().find(|(part, ..)| *part == name) {
            self.close_within(ends, within);
        } else if BLOCKS.contains(&name) {
            self.close_within(&["p"], &["td", "th", "caption", "table", "li", "div", "blockquote"]);
        } else if name == "a" {
            self.close_within(&["a"], WALLS);
        }
    }

    /// Closes the innermost element with one of these names, unless a wall comes first.
    fn close_within(&mut self, names: &[&str], walls: &[&str]) {
        for (at, open) in self.open.iter().enumerate().rev() {
            if names.contains(&open.name) {
                return self.close_to(at);
            }
            if walls.contains(&open.name) {
                return;
            }
        }
    }

    fn close(&mut self, name: &str) {
        match known(name) {
            Some(name) if WALLS.contains(&name) || matches!(name, "tr" | "thead" | "tbody" | "tfoot") => {
                self.close_within(&[name], if name == "table" { &[] } else { &["table"] });
            }
            Some(name) => self.close_within(&[name], WALLS),
            None => {}
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(OpenElement { name, hides }) = self.open.pop() {
                self.hidden -= usize::from(hides);
                if self.hidden == 0 && !hides {
                    self.out.push_str("</");
                    self.out.push_str(name);
                    self.out.push('>');
                }
            }
        }
    }

    fn write(&mut self, name: &str, attributes: &[(String, &str)]) {
        if self.hidden > 0 || self.tags >= TAGS {
            return;
        }
        self.tags += 1;
        self.out.push('<');
        self.out.push_str(name);
        for (key, value) in attributes {
            let data = value.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
            if KEPT_ATTRIBUTES.contains(&key.as_str()) && value.len() <= ATTRIBUTES.1 && !data {
                self.out
                    .push_str(&format!(" {key}=\"{}\"", value.replace('"', "&quot;").replace('<', "&lt;")));
            }
        }
        self.out.push('>');
    }
}

/// Returns whether an attribute hides its element.
fn hides(key: &str, value: &str) -> bool {
    match key {
        "hidden" => true,
        "style" => value.to_ascii_lowercase().replace(char::is_whitespace, "").contains("display:none"),
        _ => false,
    }
}

/// Returns the element that a name is treated as; `None` if only the content is kept.
fn known(name: &str) -> Option<&'static str> {
    let parts = PARTS.iter().map(|(name, ..)| *name);
    let mut all = BLOCKS.iter().chain(INLINE).chain(VOID).copied().chain(parts);
    all.find(|known| *known == name).or(match name {
        "html" | "head" | "body" | "font" | "tt" | "nobr" | "picture" | "source" | "link" | "base"
        | "input" | "col" | "colgroup" | "area" | "param" | "track" | "bdi" | "bdo" | "wbr" | "center"
        | "big" => None,
        // Forms, and custom elements.
        _ => Some("div"),
    })
}

fn rest<'h>(split: Option<(&'h str, &'h str)>) -> ControlFlow<(), &'h str> {
    split.map_or(ControlFlow::Break(()), |(_, rest)| ControlFlow::Continue(rest))
}

fn skip<'h>(after: &'h str, name: &str) -> ControlFlow<(), &'h str> {
    if name == "embed" {
        return ControlFlow::Continue(after);
    }
    rest(until(after, name))
}

/// Splits at the tag that closes an element, and drops that tag.
fn until<'h>(html: &'h str, name: &str) -> Option<(&'h str, &'h str)> {
    let closes = |at: &usize| {
        let tail = html.as_bytes().get(at + 2..at + 2 + name.len());
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(name.as_bytes()))
    };
    let at = html.match_indices("</").map(|(at, _)| at).find(closes)?;
    let (inside, after) = html.split_at(at);
    Some((inside, after.split_once('>').map_or("", |(_, after)| after)))
}

/// Parses a tag after its `<`. Also returns the text after its `>`.
fn tag(html: &str) -> (Tag<'_>, &str) {
    let (closes, html) = html.strip_prefix('/').map_or((false, html), |html| (true, html));
    let (name, mut html) = cut(html, |c| c.is_ascii_whitespace() || matches!(c, '>' | '/'));
    let mut tag = Tag { name: name.to_ascii_lowercase(), closes, attributes: Vec::new() };
    loop {
        html = html.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if let Some(after) = html.strip_prefix('>') {
            return (tag, after);
        }
        if html.is_empty() {
            return (tag, html);
        }
        let (key, after) = cut(html, |c| c.is_ascii_whitespace() || matches!(c, '>' | '/' | '='));
        let (value, after) = value(after);
        // A lone `=` is not a name and is skipped.
        html = if key.is_empty() && after.len() == html.len() { html.split_at(1).1 } else { after };
        if tag.attributes.len() < ATTRIBUTES.0 {
            tag.attributes.push((key.to_ascii_lowercase(), value));
        }
    }
}

/// Parses the value after an attribute's name. Also returns the text after the value.
fn value(html: &str) -> (&str, &str) {
    let Some(value) = html.trim_start().strip_prefix('=').map(str::trim_start) else { return ("", html) };
    for quote in ['"', '\''] {
        if let Some(value) = value.strip_prefix(quote) {
            return value.split_once(quote).unwrap_or((value, ""));
        }
    }
    cut(value, |c| c.is_ascii_whitespace() || c == '>')
}

fn cut(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_output_is_well_nested_and_harmless() {
        for (html, expect) in [
            ("<p>a<p>b", "<p>a</p><p>b</p>"),
            ("<ul><li>a<li>b<ul><li>c</ul></ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
            (
                "<table><tr><td>a<td>b<tr><td>c</table>d",
                "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>d",
            ),
            ("<b><i>a</b>b</i>", "<b><i>a</i></b>b"),
            ("</p></x>a", "a"),
            ("<div><table></div></table>a", "<div><table></table>a</div>"),
            ("<a href=x>1<a href='y\"'>2", "<a href=\"x\">1</a><a href=\"y&quot;\">2</a>"),
            ("a < b <3 <", "a &lt; b &lt;3 &lt;"),
            ("<SCRIPT>if (a</b) <p></SCRIPT >c", "c"),
            ("<style>p{}</style><svg><title>x</title></svg><!-- <p> -->c<!doctype html><?x?>", "c"),
            ("<script>never ends", ""),
            ("<title>A <b> & B</title>c", "<title>A &lt;b> & B</title>c"),
            ("<p onclick=evil() style='color:red' id=k>a", "<p id=\"k\">a</p>"),
            ("a<p hidden>obey<b>me</b></p>b<div style=\"Display : None\">x</div>c", "abc"),
            ("<img src='data:image/png;base64,AAAA' alt=x><br/>", "<img alt=\"x\"><br>"),
            ("<my-card>a</my-card><font>b</font>", "<div>a</div>b"),
            ("<p ==== a=1 =b>x", "<p>x</p>"),
            ("<p", "<p></p>"),
        ] {
            assert_eq!(strip(html), expect, "{html}");
        }
    }

    #[test]
    fn deep_and_wide_pages_have_shallow_and_small_output() {
        for (tag, most) in [
            ("<div>", MAX_ELEMENT_DEPTH),
            ("<b>", MAX_SAME_INLINE_DEPTH),
            ("<ul><li>", MAX_ELEMENT_DEPTH),
            ("<table><tr><td>", MAX_ELEMENT_DEPTH),
            ("<dl><dd>", MAX_ELEMENT_DEPTH),
        ] {
            assert_eq!(depth(&strip(&tag.repeat(100_000))), Some(most), "{tag}");
        }
        let wide = strip(&"<hr><p>x</p>".repeat(100_000));
        assert_eq!(wide.matches("<hr>").count() + wide.matches("<p>").count(), TAGS);
        for text in ["&", "< ", "x", "<p>&amp;"] {
            assert!(strip(&text.repeat(2_000_000)).len() <= MAX_STRIPPED_BYTES + 1_000, "{text}");
        }
        let many = format!("<p {}>x", "class=a ".repeat(100_000));
        assert_eq!(strip(&many).matches("class").count(), ATTRIBUTES.0);
    }

    /// Returns the nesting depth, if all tags are properly nested.
    fn depth(html: &str) -> Option<usize> {
        let (mut open, mut deepest) = (Vec::new(), 0);
        for piece in html.split('<').skip(1) {
            let name: String = piece.chars().take_while(|c| !matches!(c, '>' | ' ')).collect();
            match name.strip_prefix('/') {
                Some(name) if open.pop().as_deref() != Some(name) => return None,
                Some(_) => {}
                None if VOID.contains(&name.as_str()) => {}
                None => open.push(name),
            }
            deepest = deepest.max(open.len());
        }
        open.is_empty().then_some(deepest)
    }

    proptest! {
        #[test]
        fn any_input_gets_well_nested(html in "(</?(p|div|b|table|td|tr|li|a|script|title|x)( hidden| a=[\"'] ?|=)?>?|<!--|-->|[a-z\"'<>=/ é]){0,60}") {
            let harmless = strip(&html);
            prop_assert!(depth(&harmless).is_some(), "{}", harmless);
        }
    }
}
