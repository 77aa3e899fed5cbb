//! Web pages: their text, headings, lists and tables, without parts that are only for browsers.

use crate::{DocumentLimits, Error, draft::DocumentDraft, text};
use dom_query::{Document, NodeRef};

/// Elements that are dropped from the text.
const SKIPPED: [&str; 8] = ["script", "style", "meta", "head", "noscript", "template", "svg", "iframe"];

/// Elements that do not count as nested, because their end tag is missing or optional, or because parsers keep them
/// flat.
const FLAT: [&str; 46] = [
    "a", "area", "b", "base", "big", "br", "code", "col", "colgroup", "dd", "dt", "em", "embed", "font",
    "hr", "i", "img", "input", "li", "link", "meta", "nobr", "optgroup", "option", "p", "param", "rb", "rp",
    "rt", "rtc", "s", "small", "source", "strike", "strong", "tbody", "td", "tfoot", "th", "thead", "tr",
    "track", "tt", "u", "wbr", "!doctype",
];
/// Maximum depth of elements. Deeper pages are not parsed, because parsers take time quadratic in the depth.
const MAX_NESTING_DEPTH: usize = 4_096;

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let html = text::decode(bytes);
    if seems_deep(&html) {
        return Err(Error::TooLarge(format!("its elements are nested more than {MAX_NESTING_DEPTH} deep")));
    }
    let page = HtmlPage::parse(&html);
    let mut draft = DocumentDraft::new(limits.output);
    draft.set_title(page.title().as_deref());
    let (markdown, is_complete) = page.markdown(&SKIPPED, limits.depth);
    draft.push(&markdown);
    if !is_complete {
        draft.warn("the page is nested too deeply: only its text is included, without formatting".to_owned());
    }
    Ok(draft)
}

/// A parsed page.
pub(crate) struct HtmlPage(Document);

impl HtmlPage {
    pub(crate) fn parse(html: &str) -> Self {
        let page = Document::from(html);
        // Data URLs are not useful as text.
        page.select("img[src^='data:']").remove();
        // An anchor without a target is only a position in the text.
        page.select("a:not([href])").rename("span");
        Self(page)
    }

    pub(crate) fn title(&self) -> Option<String> {
        let title = self.0.select_single("title");
        title.exists().then(|| title.text().to_string())
    }

    /// Returns the page as Markdown, or as plain text if it is nested deeper than `depth`, and whether it is Markdown.
    pub(crate) fn markdown(&self, skipped: &[&str], depth: usize) -> (String, bool) {
        if deepest(&self.0.root()) > depth {
            return (self.0.text().to_string(), false);
        }
        (self.0.md(Some(skipped)).to_string(), true)
    }
}

/// Returns whether the number of open elements, judging by the tags, seems to exceed the maximum depth.
pub(crate) fn seems_deep(html: &str) -> bool {
    let (mut depth, mut rest) = (0_usize, html);
    while let Some((_, tag)) = rest.split_once('<') {
        rest = tag;
        let (ends, name) = tag.strip_prefix('/').map_or((false, tag), |name| (true, name));
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len()).min(32);
        let name = name.get(..end).unwrap_or_default().to_ascii_lowercase();
        if name.is_empty() || FLAT.contains(&name.as_str()) {
            continue;
        }
        depth = if ends { depth.saturating_sub(1) } else { depth + 1 };
        if depth > MAX_NESTING_DEPTH {
            return true;
        }
    }
    false
}

/// Returns the depth of a tree, computed without recursion.
fn deepest(root: &NodeRef<'_>) -> usize {
    let (mut deepest, mut depth) = (0, 0);
    let mut at = root.first_child();
    while let Some(node) = at {
        deepest = deepest.max(depth + 1);
        at = node.first_child();
        if at.is_some() {
            depth += 1;
            continue;
        }
        let mut back = Some(node);
        while let Some(node) = back {
            at = node.next_sibling();
            if at.is_some() || depth == 0 {
                break;
            }
            depth -= 1;
            back = node.parent();
        }
    }
    deepest
}
