//! Parses messages of all kinds into text and files.

use super::chat_cache::plain;
use crate::{
    Attachment,
    lenient::{from_bytes, lenient},
    name::clean_file_name,
    pointed::card_words,
};
use serde::Deserialize;
use serde_json::Value;

/// Maximum length of a text, in bytes; longer text is cut. The platform accepts 150 KB.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Placeholder text of a card that Feishu does not show to bots.
const STAND_IN: &str = "请升级至最新版本客户端";
/// Keys of cards, votes, tasks and meetings whose values are visible text.
const WORDS: [&str; 9] =
    ["title", "topic", "summary", "name", "file_name", "text", "content", "alt", "options"];

/// A mention of a user or bot in a message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Mention {
    /// Placeholder of the name in the text.
    #[serde(deserialize_with = "lenient")]
    pub(super) key: String,
    #[serde(deserialize_with = "lenient")]
    id: MentionId,
    #[serde(deserialize_with = "lenient")]
    pub(super) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
enum MentionId {
    Ids {
        open_id: Option<String>,
    },
    /// The form in fetched messages.
    Open(String),
    #[default]
    None,
}

impl Mention {
    /// Returns the id of the user or bot.
    pub(super) fn open_id(&self) -> Option<&str> {
        match &self.id {
            MentionId::Ids { open_id } => open_id.as_deref(),
            MentionId::Open(id) => Some(id),
            MentionId::None => None,
        }
    }
}

/// Content of a received message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageContent {
    pub(super) text: String,
    pub(super) files: Vec<Attachment>,
}

/// Parses the content of a message. `message` is its id, needed to download its files. `me` is the bot's id, whose
/// mention is removed from the text.
pub(super) fn read(
    kind: &str,
    content: &str,
    message: &str,
    mentions: &[Mention],
    me: &str,
) -> MessageContent {
    let json: Value = from_bytes(content.as_bytes()).unwrap_or_default();
    let reader = ContentReader { message, mentions, me };
    let mut said = match kind {
        "text" => MessageContent {
            text: reader.replace_placeholders(json["text"].as_str().unwrap_or_default()),
            files: Vec::new(),
        },
        "post" => reader.post(locale(&json)),
        "interactive" => reader.card(&json),
        "image" => reader.file(&json, "image_key", "image", "png"),
        "file" => reader.file(&json, "file_key", "file", "bin"),
        "audio" => reader.file(&json, "file_key", "audio", "opus"),
        "media" => reader.file(&json, "file_key", "video", "mp4"),
        "location" => MessageContent { text: location(&json), files: Vec::new() },
        "" | "merge_forward" => MessageContent::default(),
        "sticker" => MessageContent { text: "[sticker]".to_owned(), files: Vec::new() },
        other => MessageContent { text: described(other, &json), files: Vec::new() },
    };
    said.text = shorten(&said.text);
    said
}

struct ContentReader<'a> {
    message: &'a str,
    mentions: &'a [Mention],
    me: &'a str,
}

impl ContentReader<'_> {
    /// Replaces placeholders with names, in one pass, because `@_user_1` is a prefix of `@_user_10`.
    fn replace_placeholders(&self, text: &str) -> String {
        let mut keys: Vec<(&str, String)> =
            self.mentions.iter().map(|one| (one.key.as_str(), self.render_mention(one))).collect();
        keys.push(("@_all", "@all".to_owned()));
        keys.retain(|(key, _)| !key.is_empty());
        keys.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            match keys.iter().find_map(|(key, name)| Some((rest.strip_prefix(key)?, name))) {
                Some((after, name)) => {
                    out.push_str(name);
                    // The bot's name is removed with the space after it.
                    rest = if name.is_empty() { after.strip_prefix(' ').unwrap_or(after) } else { after };
                }
                None => {
                    out.push(c);
                    rest = rest.get(c.len_utf8()..).unwrap_or_default();
                }
            }
        }
        out
    }

    fn render_mention(&self, mention: &Mention) -> String {
        if mention.open_id() == Some(self.me) { String::new() } else { format!("@{}", mention.name) }
    }

    fn post(&self, post: &Value) -> MessageContent {
        let mut said = MessageContent::default();
        let title = post["title"].as_str().map(str::trim).filter(|title| !title.is_empty());
        let mut lines: Vec<String> = title.map(|title| format!("**{title}**")).into_iter().collect();
        let paragraphs = post["content"].as_array().or(post["elements"].as_array());
        for paragraph in paragraphs.into_iter().flatten() {
            let mut line = String::new();
            match paragraph.as_array() {
                Some(runs) => runs.iter().for_each(|run| self.run(run, &mut line, &mut said.files)),
                None => self.run(paragraph, &mut line, &mut said.files),
            }
            lines.push(line);
        }
        said.text = lines.join("\n");
        said
    }

    /// Parses a card. Feishu sends its text as lines, or the original card.
    fn card(&self, card: &Value) -> MessageContent {
        let source = ["user_dsl", "json_card"].iter().find_map(|key| card[*key].as_str());
        let source = source.and_then(|source| from_bytes::<Value>(source.as_bytes()).ok());
        let card = source.as_ref().unwrap_or(card);
        let mut said = self.post(locale(card));
        if said.text.contains(STAND_IN) {
            // The placeholder is accompanied by a picture with the same text.
            return MessageContent::default();
        }
        if !said.text.trim().is_empty() || !said.files.is_empty() {
            said.text = shorten(&said.text);
            return said;
        }
        MessageContent { text: self.replace_placeholders(&card_words(card, &WORDS)), files: Vec::new() }
    }

    fn run(&self, run: &Value, line: &mut String, files: &mut Vec<Attachment>) {
        let text = || run["text"].as_str().unwrap_or_default();
        match run["tag"].as_str().unwrap_or_default() {
            "a" => match run["href"].as_str().filter(|href| !href.is_empty() && *href != text()) {
                Some(href) => line.push_str(&format!("[{}]({href})", text())),
                None => line.push_str(text()),
            },
            "at" => line.push_str(&self.at(run)),
            "img" => files.extend(self.file(run, "image_key", "image", "png").files),
            "media" => files.extend(self.file(run, "file_key", "video", "mp4").files),
            "emotion" => line.push_str(&format!(":{}:", run["emoji_type"].as_str().unwrap_or_default())),
            "code_block" => {
                let language = run["language"].as_str().unwrap_or_default().to_ascii_lowercase();
                line.push_str(&format!("```{language}\n{}\n```", text().trim_end_matches('\n')));
            }
            "hr" => line.push_str("---"),
            _ => line.push_str(&self.replace_placeholders(text())),
        }
    }

    fn at(&self, run: &Value) -> String {
        let id = run["user_id"].as_str().unwrap_or_default();
        if id == self.me {
            return String::new();
        }
        if id == "all" || id == "@_all" {
            return "@all".to_owned();
        }
        let known = self.mentions.iter().find(|mention| mention.key == id);
        known.map_or_else(
            || format!("@{}", run["user_name"].as_str().unwrap_or(id)),
            |known| self.render_mention(known),
        )
    }

    fn file(&self, json: &Value, field: &str, kind: &str, extension: &str) -> MessageContent {
        let Some(key) = json[field].as_str().and_then(plain) else { return MessageContent::default() };
        let file_name = json["file_name"].as_str().map(clean_file_name).filter(|name| !name.is_empty());
        let tail: String = key.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
        let name = file_name.unwrap_or_else(|| format!("feishu-{kind}-{tail}.{extension}"));
        let way = if field == "image_key" { "image" } else { "file" };
        let handle = format!("{}/{way}/{key}", self.message);
        MessageContent { text: String::new(), files: vec![Attachment { handle, name, size: None }] }
    }
}

/// Returns the content of a post. Sent posts nest it by language, received ones do not.
fn locale(json: &Value) -> &Value {
    let is_complete = json.get("content").is_some() || json.get("elements").is_some();
    let one = json.as_object().and_then(|locales| locales.values().find(|one| one.get("content").is_some()));
    if is_complete { json } else { one.unwrap_or(json) }
}

/// Describes a message of a kind that has neither text nor a file.
fn described(kind: &str, json: &Value) -> String {
    let kind = kind.replace('_', " ");
    match card_words(json, &WORDS).replace('\n', " / ") {
        words if words.is_empty() => format!("[{kind}]"),
        words => format!("[{kind}: {words}]"),
    }
}

fn location(json: &Value) -> String {
    let text = |field: &str| json[field].as_str().unwrap_or_default();
    format!("[Location: {} ({}, {})]", text("name"), text("latitude"), text("longitude"))
}

fn shorten(text: &str) -> String {
    let text = text.trim();
    let end =
        text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_TEXT_BYTES).last().unwrap_or(0);
    if text.len() <= MAX_TEXT_BYTES {
        text.to_owned()
    } else {
        text.get(..end).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mention(key: &str, id: &str, name: &str) -> Mention {
        serde_json::from_value(json!({"key": key, "id": {"open_id": id}, "name": name})).unwrap()
    }

    fn read_content(kind: &str, content: &Value) -> (String, Vec<(String, String)>) {
        let mut mentions = vec![mention("@_user_1", "ou_me", "Pudu"), mention("@_user_2", "ou_b", "Bo")];
        mentions.push(mention("@_user_10", "ou_c", "Cy"));
        let said = read(kind, &content.to_string(), "om_1", &mentions, "ou_me");
        (said.text, said.files.into_iter().map(|file| (file.handle, file.name)).collect())
    }

    #[test]
    fn text_is_complete_and_users_have_names() {
        let cases = [
            ("text", json!({"text": "@_user_1 hi @_user_10, @_user_2 @_all"}), "hi @Cy, @Bo @all"),
            ("text", json!({"text": "  /new  "}), "/new"),
            ("text", json!({}), ""),
            ("text", json!("?"), ""),
            (
                "post",
                json!({"title": "T", "content": [
                    [{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": " see "},
                     {"tag": "a", "text": "this", "href": "https://a.example"}],
                    [{"tag": "code_block", "language": "RUST", "text": "let a;\n"}],
                    [{"tag": "at", "user_id": "@_user_2", "user_name": "x"}, {"tag": "emotion", "emoji_type": "OK"}],
                    [{"tag": "hr"}],
                ]}),
                "**T**\n see [this](https://a.example)\n```rust\nlet a;\n```\n@Bo:OK:\n---",
            ),
            ("post", json!({"zh_cn": {"title": "", "content": [[{"tag": "md", "text": "*x*"}]]}}), "*x*"),
            (
                "interactive",
                json!({"title": "Card", "elements": [[{"tag": "text", "text": "x"}]]}),
                "**Card**\nx",
            ),
            (
                "location",
                json!({"name": "Park", "latitude": "1", "longitude": "2"}),
                "[Location: Park (1, 2)]",
            ),
            ("sticker", json!({"file_key": "k"}), "[sticker]"),
            ("share_chat", json!({}), "[share chat]"),
        ];
        for (kind, content, expected) in cases {
            assert_eq!(read_content(kind, &content), (expected.to_owned(), Vec::new()), "{content}");
        }
    }

    #[test]
    fn files_are_named_and_found_under_their_message() {
        let file = |handle: &str, name: &str| (handle.to_owned(), name.to_owned());
        let cases = [
            (
                "image",
                json!({"image_key": "img_v3_1"}),
                vec![file("om_1/image/img_v3_1", "feishu-image-img_v3_1.png")],
            ),
            (
                "file",
                json!({"file_key": "file_1", "file_name": "../a.pdf"}),
                vec![file("om_1/file/file_1", "a.pdf")],
            ),
            ("audio", json!({"file_key": "f"}), vec![file("om_1/file/f", "feishu-audio-f.opus")]),
            ("media", json!({"file_key": "f", "file_name": "a.mp4"}), vec![file("om_1/file/f", "a.mp4")]),
        ];
        for (kind, content, expected) in cases {
            assert_eq!(read_content(kind, &content), (String::new(), expected), "{content}");
        }
        let post =
            json!({"content": [[{"tag": "text", "text": "see"}], [{"tag": "img", "image_key": "img_v3_1"}]]});
        let files = vec![file("om_1/image/img_v3_1", "feishu-image-img_v3_1.png")];
        assert_eq!(read_content("post", &post), ("see".to_owned(), files));
    }

    /// CVE-2026-22171: a key becomes part of an API path, so a key that is itself a path is refused.
    #[test]
    fn a_key_that_is_a_path_is_refused() {
        for key in ["../../token", "a/b", "..", "a?type=image", "a%2f..", "a b", ""] {
            for (kind, name) in [("file", "file_key"), ("image", "image_key"), ("media", "file_key")] {
                assert_eq!(read_content(kind, &json!({name: key})).1, vec![], "{kind} {key}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_content_never_panics(kind in "[a-z_]{0,12}", content in "\\PC{0,200}") {
            read(&kind, &content, "om_1", &[mention("@", "ou_1", "x")], "ou_me");
        }
    }
}
