//! Web pages: their words, headings, lists and tables, without what is there for browsers only.

use crate::{DocumentLimits, Error, draft::DocumentDraft, text};
use dom_query::{Document, NodeRef};

/// Elements that are left out of the text.
const SKIPPED: [&str; 8] = ["script", "style", "meta", "head", "noscript", "template", "svg", "iframe"];

/// Elements that have no end, end by themselves when the next begins, or are no depth for a parser.
const FLAT: [&str; 46] = [
    "a", "area", "b", "base", "big", "br", "code", "col", "colgroup", "dd", "dt", "em", "embed", "font",
    "hr", "i", "img", "input", "li", "link", "meta", "nobr", "optgroup", "option", "p", "param", "rb", "rp",
    "rt", "rtc", "s", "small", "source", "strike", "strong", "tbody", "td", "tfoot", "th", "thead", "tr",
    "track", "tt", "u", "wbr", "!doctype",
];
/// Maximum depth of elements. Parsers take time with the square of depth: what seems deeper is not parsed.
const MAX_NESTING_DEPTH: usize = 4_096;

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let html = text::decode(bytes);
    if seems_deep(&html) {
        return Err(Error::TooLarge(format!("its elements are nested more than {MAX_NESTING_DEPTH} deep")));
    }
    let page = HtmlPage::parse(&html);
    let mut draft = DocumentDraft::new(limits.output);
    draft.set_title(page.title().as_deref());
    let (markdown, whole) = page.markdown(&SKIPPED, limits.depth);
    draft.push(&markdown);
    if !whole {
        draft.warn("the page is nested too deeply: only its words are here, without their form".to_owned());
    }
    Ok(draft)
}

/// A page in memory.
pub(crate) struct HtmlPage(Document);

impl HtmlPage {
    pub(crate) fn parse(html: &str) -> Self {
        let page = Document::from(html);
        // What is within an address is no text for anybody.
        page.select("img[src^='data:']").remove();
        // An anchor that leads nowhere is a place in the text.
        page.select("a:not([href])").rename("span");
        Self(page)
    }

    pub(crate) fn title(&self) -> Option<String> {
        let title = self.0.select_single("title");
        title.exists().then(|| title.text().to_string())
    }

    /// The page as Markdown; as mere words where it is nested deeper than anybody writes. Says whether it is
    /// the whole.
    pub(crate) fn markdown(&self, skipped: &[&str], depth: usize) -> (String, bool) {
        if deepest(&self.0.root()) > depth {
            return (self.0.text().to_string(), false);
        }
        (self.0.md(Some(skipped)).to_string(), true)
    }
}

/// Whether more elements seem to be open at once than anybody writes, by tags that begin and end them.
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

/// How deep a tree is, walked without calling itself.
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
