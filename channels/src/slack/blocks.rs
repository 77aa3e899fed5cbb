//! Text of Block Kit blocks, of users' messages and of other apps, as mrkdwn.

use serde_json::Value;

/// Maximum depth of nested elements to read.
const MAX_DEPTH: usize = 8;

/// Returns the text of blocks, with at least one line for each block that has text.
pub(super) fn text(blocks: &[Value]) -> String {
    let blocks = blocks.iter().map(|block| self::block(block, MAX_DEPTH));
    let blocks: Vec<String> = blocks.filter(|block| !block.trim().is_empty()).collect();
    blocks.join("\n")
}

fn block(block: &Value, depth: usize) -> String {
    let Some(depth) = depth.checked_sub(1) else { return String::new() };
    let list = |name: &str| block[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = |name: &str| list(name).iter().map(|one| self::block(one, depth));
    match block["type"].as_str().unwrap_or_default() {
        "rich_text" => all("elements").filter(|one| !one.trim().is_empty()).collect::<Vec<_>>().join("\n"),
        "rich_text_section" => inline(list("elements")),
        "rich_text_quote" => prefixed("> ", &inline(list("elements"))),
        "rich_text_preformatted" => format!("```\n{}\n```", inline(list("elements"))),
        "rich_text_list" => {
            let indent = "  ".repeat(block["indent"].as_u64().map_or(0, |indent| indent.min(8) as usize));
            let item = |item: String| prefixed(&format!("{indent}• "), &item);
            all("elements").map(item).collect::<Vec<_>>().join("\n")
        }
        "context" | "actions" => all("elements").filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" "),
        "button" => format!("[{}]", object(&block["text"])),
        "image" => format!("[image: {}]", object(&block["alt_text"])),
        "table" => {
            let row = |row: &Value| {
                let cells = row.as_array().map(Vec::as_slice).unwrap_or_default();
                cells.iter().map(|cell| self::block(cell, depth)).collect::<Vec<_>>().join(" | ")
            };
            crate::pointed::lines(list("rows").iter().map(row))
        }
        "video" => crate::pointed::lines([object(&block["title"]), object(&block["title_url"])]),
        _ => {
            let fields = list("fields").iter().map(object);
            crate::pointed::lines(std::iter::once(object(&block["text"])).chain(fields))
        }
    }
}

/// Returns the text of a text object, or of a plain string.
fn object(text: &Value) -> String {
    text.as_str().or_else(|| text["text"].as_str()).unwrap_or_default().to_owned()
}

/// Returns the text of the elements of a line of rich text.
fn inline(elements: &[Value]) -> String {
    let element = |element: &Value| {
        let text = |name: &str| element[name].as_str().unwrap_or_default();
        match text("type") {
            "link" if text("text").is_empty() => format!("<{}>", text("url")),
            "link" => format!("<{}|{}>", text("url"), escape(text("text"))),
            "user" => format!("<@{}>", text("user_id")),
            "channel" => format!("<#{}>", text("channel_id")),
            "emoji" => format!(":{}:", text("name")),
            "broadcast" => format!("@{}", text("range")),
            "date" => text("fallback").to_owned(),
            _ => escape(text("text")),
        }
    };
    elements.iter().map(element).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn prefixed(sign: &str, text: &str) -> String {
    text.lines().map(|line| format!("{sign}{line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_block_with_text_is_read() {
        let words = |blocks: Value| text(blocks.as_array().unwrap());
        let rich = json!([{"type": "rich_text", "elements": [
            {"type": "rich_text_section", "elements": [
                {"type": "text", "text": "a < b "}, {"type": "user", "user_id": "U1"},
                {"type": "link", "url": "https://x.example", "text": "page"}, {"type": "emoji", "name": "wave"}]},
            {"type": "rich_text_list", "style": "bullet", "indent": 1, "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]},
                {"type": "rich_text_section", "elements": [{"type": "text", "text": "two"}]}]},
            {"type": "rich_text_quote", "elements": [{"type": "text", "text": "said"}]},
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "let a;"}]}]}]);
        let expected =
            "a &lt; b <@U1><https://x.example|page>:wave:\n  • one\n  • two\n> said\n```\nlet a;\n```";
        assert_eq!(words(rich), expected);
        let card = json!([
            {"type": "header", "text": {"type": "plain_text", "text": "Disk full"}},
            {"type": "section", "text": {"type": "mrkdwn", "text": "*db1*"}, "fields": [{"type": "mrkdwn", "text": "98 %"}]},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": "now"}, {"type": "image", "alt_text": "graph"}]},
            {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Mute"}}]},
            {"type": "markdown", "text": "**x**"},
            {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}, {"type": "raw_text", "text": "b"}]]},
            {"type": "divider"}, {"type": "new_kind", "text": 5}, 7, null,
        ]);
        assert_eq!(words(card), "Disk full\n*db1*\n98 %\nnow [image: graph]\n[Mute]\n**x**\na | b");
        let mut deep = json!({"type": "rich_text", "elements": []});
        for _ in 0..50 {
            deep = json!({"type": "rich_text", "elements": [deep]});
        }
        assert_eq!(words(json!([deep])), "");
    }
}
