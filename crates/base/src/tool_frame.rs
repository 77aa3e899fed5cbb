//! Tags around a tool's result that show a model where foreign text begins and ends. API clients and people see the
//! result without them.

use crate::{MessageId, foreign};
use std::borrow::Cow;

/// Length of a tag's key, in characters.
const KEY_CHARS: usize = 8;
/// Maximum length of a tool's name in a tag, in characters.
const MAX_NAME_CHARS: usize = 100;

/// Returns a result between tags. Their key is generated after the result, so that the result cannot close them.
#[must_use]
pub fn frame(tool: &str, result: &str) -> String {
    let id = MessageId::fresh();
    let key = id.as_str().get(id.as_str().len().saturating_sub(KEY_CHARS)..).unwrap_or_default();
    let end = if result.ends_with('\n') { "" } else { "\n" };
    let name = foreign::line(tool, MAX_NAME_CHARS);
    format!("<tool_output tool=\"{name}\" key=\"{key}\">\n{result}{end}{}", closing(key))
}

/// Returns a result without the tags of [`frame`] and of web pages. Text after the tags, such as a note by pudu, is
/// kept.
#[must_use]
pub fn unframed(result: &str) -> Cow<'_, str> {
    tool_output(result).or_else(|| web_page(result)).map_or(Cow::Borrowed(result), Cow::Owned)
}

fn closing(key: &str) -> String {
    format!("</tool_output key=\"{key}\">")
}

fn tool_output(result: &str) -> Option<String> {
    let (head, rest) = result.strip_prefix("<tool_output tool=\"")?.split_once("\">\n")?;
    let (_, key) = head.split_once("\" key=\"")?;
    // A cut result has no closing tag.
    let (words, after) = rest.rsplit_once(&closing(key)).unwrap_or((rest, ""));
    Some(format!("{}{after}", words.strip_suffix('\n').unwrap_or(words)))
}

/// Removes the tags of `web_fetch`. No page contains such a tag, because [`foreign::text`] escapes them.
fn web_page(result: &str) -> Option<String> {
    let (title, rest) = result.split_once("\n\n<web_page url=\"")?;
    let (_, rest) = rest.split_once("\">\n").filter(|_| title.starts_with("# ") && !title.contains('\n'))?;
    let (words, after) = rest.rsplit_once("\n</web_page>").unwrap_or((rest, ""));
    Some(format!("{title}\n\n{words}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_returned_without_its_tags() {
        for result in ["a", "a\nb", "", "<tool_output tool=\"x\" key=\"y\">\nz\n</tool_output key=\"y\">"] {
            assert_eq!(unframed(&frame("ls", result)), result);
            let noted = format!("{}\n\n[note]", frame("ls", result));
            assert_eq!(unframed(&noted), format!("{result}\n\n[note]"));
        }
        assert_eq!(unframed(&frame("ls", "a\n")), "a");
        let cut = frame("ls", "one\ntwo");
        assert_eq!(unframed(cut.split_once("two").unwrap().0), "one", "a cut result");
        assert_eq!(
            unframed("# T\n\n<web_page url=\"https://a/\">\nwords\n</web_page>\n(more)"),
            "# T\n\nwords\n(more)"
        );
        for plain in
            ["a", "<tool_output>", "x <tool_output tool=\"a\" key=\"b\">\nc", "a\n\n<web_page url=\"u\">\nb"]
        {
            assert_eq!(unframed(plain), plain);
        }
    }
}
