//! E-mails: subject, sender, recipients, date, text, and the names of attachments.

use crate::{DocumentLimits, Error, draft::DocumentDraft, html::HtmlPage, html::seems_deep, text};
use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};
use msg_parser::{Outlook, Person};
use std::borrow::Cow;

/// Maximum size of a head that is repaired, in bytes.
const MAX_HEAD_BYTES: usize = 1024 * 1024;
/// Maximum depth of e-mails attached to e-mails.
const MAX_MAIL_DEPTH: usize = 4;
/// HTML elements that are dropped from the text.
const SKIPPED: [&str; 9] =
    ["script", "style", "meta", "head", "noscript", "template", "svg", "iframe", "img"];
/// Reads an e-mail in its transmitted form (.eml).
pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let bytes = with_readable_head(bytes);
    let message = MessageParser::default().parse(&*bytes);
    let message = message.ok_or_else(|| Error::Damaged("it has no headers".to_owned()))?;
    let mut mail = Mail { draft: DocumentDraft::new(limits.output), limits, unread: 0 };
    mail.draft.set_title(message.subject());
    mail.message(&message, 0);
    Ok(mail.finish())
}

/// Reads an e-mail stored by Outlook (.msg).
pub(crate) fn read_outlook(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let message = Outlook::from_slice(bytes).map_err(|error| Error::Damaged(error.to_string()))?;
    let mut mail = Mail { draft: DocumentDraft::new(limits.output), limits, unread: 0 };
    mail.draft.set_title(Some(&message.subject));
    mail.add_outlook(&message, 0);
    Ok(mail.finish())
}

/// Repairs a head that the library cannot parse because its encoding is not declared or because characters are split
/// between encoded words.
fn with_readable_head(bytes: &[u8]) -> Cow<'_, [u8]> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n" || pair == b"\n\r").unwrap_or(bytes.len());
    let (head, body) = bytes.split_at(end);
    if head.len() > MAX_HEAD_BYTES {
        return bytes.into();
    }
    let text = text::decode(head);
    let joined = with_joined_words(&text);
    if joined.as_bytes() == head { bytes.into() } else { [joined.as_bytes(), body].concat().into() }
}

/// Joins consecutive encoded words with the same encoding, and adds missing padding.
fn with_joined_words(head: &str) -> String {
    let (mut joined, mut rest) = (String::new(), head);
    // Encoding of the last encoded word, and the start of its data.
    let mut last: Option<(&str, usize)> = None;
    while let Some(at) = rest.find("=?") {
        let (between, word) = rest.split_at(at);
        let found = encoded_word(word);
        let follows = !between.is_empty() && between.trim().is_empty();
        match (last, found) {
            (Some((how, start)), Some((next, data)))
                if follows && how.eq_ignore_ascii_case(next) && is_whole(how, joined.get(start..)) =>
            {
                joined.truncate(joined.len() - 2);
                joined.extend([data, "?="]);
            }
            (_, found) => {
                pad(&mut joined, last);
                joined.push_str(between);
                let (how, data) = found.unwrap_or_default();
                joined.push_str("=?");
                if found.is_some() {
                    joined.extend([how, "?"]);
                    last = Some((how, joined.len()));
                    joined.extend([data, "?="]);
                } else {
                    last = None;
                }
            }
        }
        let length = found.map_or(2, |(how, data)| how.len() + data.len() + 5);
        rest = word.get(length..).unwrap_or_default();
    }
    pad(&mut joined, last);
    joined + rest
}

/// Splits an encoded word into its encodings and its data.
fn encoded_word(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("=?")?;
    let charset = text.find('?')?;
    let how = text.get(..charset + 2)?;
    let data = text.get(charset + 2..)?.strip_prefix('?')?;
    let data = data.get(..data.find("?=")?)?;
    (charset < 60 && !how.contains(char::is_whitespace) && how.ends_with(['b', 'B', 'q', 'Q']))
        .then_some((how, data))
}

/// Returns whether more data can be appended to a word that ends here.
fn is_whole(how: &str, data: Option<&str>) -> bool {
    let data = data.and_then(|data| data.strip_suffix("?=")).unwrap_or_default();
    how.ends_with(['q', 'Q']) || (data.len().is_multiple_of(4) && !data.ends_with('='))
}

fn pad(joined: &mut String, last: Option<(&str, usize)>) {
    let Some((how, start)) = last else { return };
    let missing = (joined.len() - 2).saturating_sub(start).wrapping_neg() % 4;
    if how.ends_with(['b', 'B']) && (1..3).contains(&missing) && joined.ends_with("?=") {
        joined.insert_str(joined.len() - 2, &"=".repeat(missing));
    }
}

struct Mail<'a> {
    draft: DocumentDraft,
    limits: &'a DocumentLimits,
    /// Number of unread attachments.
    unread: usize,
}

impl Mail<'_> {
    fn finish(mut self) -> DocumentDraft {
        if self.unread > 0 {
            self.draft
                .warn(format!("{} attachments are named but not read: ask for them as files", self.unread));
        }
        self.draft
    }

    fn head(&mut self, depth: usize, subject: &str, fields: &[(&str, String)]) {
        let subject = if subject.trim().is_empty() { "(no subject)" } else { subject };
        let marks = "#".repeat((depth + 1).min(6));
        self.draft.push(&format!("{marks} {}\n\n", one_line(subject)));
        for (name, value) in fields.iter().filter(|(_, value)| !value.trim().is_empty()) {
            self.draft.push(&format!("- {name}: {}\n", one_line(value)));
        }
        self.draft.push("\n");
    }

    fn message(&mut self, message: &Message<'_>, depth: usize) {
        let attachments: Vec<&MessagePart<'_>> = message.attachments().collect();
        self.head(
            depth,
            message.subject().unwrap_or_default(),
            &[
                ("From", addresses(message.from())),
                ("To", addresses(message.to())),
                ("Cc", addresses(message.cc())),
                ("Date", message.date().map(|date| date.to_rfc3339()).unwrap_or_default()),
                (
                    "Attachments",
                    attachments.iter().map(|part| attachment(part)).collect::<Vec<_>>().join(", "),
                ),
            ],
        );
        let texts = message.text_bodies().map(|part| self.body(message, part)).collect::<Vec<_>>();
        let mut text = texts.join("\n\n");
        if text.trim().is_empty() {
            text =
                message.html_bodies().map(|part| self.body(message, part)).collect::<Vec<_>>().join("\n\n");
        }
        self.draft.push(&format!("{text}\n\n"));
        for part in attachments {
            match &part.body {
                PartType::Message(attached) if depth < MAX_MAIL_DEPTH => self.message(attached, depth + 1),
                _ => self.unread += 1,
            }
        }
    }

    fn body(&mut self, message: &Message<'_>, part: &MessagePart<'_>) -> String {
        match &part.body {
            PartType::Html(html) => self.markdown(html),
            // Old programs do not declare the encoding of a text.
            PartType::Text(said) if part.is_encoding_problem || said.contains('\u{FFFD}') => {
                let raw = message.raw_message.get(part.offset_body as usize..part.offset_end as usize);
                let is_plain = part
                    .content_transfer_encoding()
                    .is_none_or(|how| how.to_ascii_lowercase().ends_with("bit"));
                raw.filter(|_| is_plain).map_or_else(|| said.to_string(), text::decode)
            }
            PartType::Text(text) => text.to_string(),
            _ => String::new(),
        }
    }

    fn add_outlook(&mut self, message: &Outlook, depth: usize) {
        let names = message.attachments.iter().map(|file| {
            let names = [&file.long_file_name, &file.file_name, &file.display_name];
            let name = names.into_iter().find(|name| !name.is_empty()).map_or("(no name)", String::as_str);
            format!("{name} ({} bytes)", file.payload_bytes.len())
        });
        let dates = [&message.headers.date, &message.client_submit_time, &message.message_delivery_time];
        let date = dates.into_iter().find(|date| !date.is_empty()).cloned().unwrap_or_default();
        self.head(
            depth,
            &message.subject,
            &[
                ("From", person(&message.sender)),
                ("To", message.to.iter().map(person).collect::<Vec<_>>().join(", ")),
                ("Cc", message.cc.iter().map(person).collect::<Vec<_>>().join(", ")),
                ("Date", date),
                ("Attachments", names.collect::<Vec<_>>().join(", ")),
            ],
        );
        let text = if message.body.trim().is_empty() {
            let html =
                if message.html.is_empty() { message.html_from_rtf() } else { Some(message.html.clone()) };
            html.map(|html| self.markdown(&html)).unwrap_or_default()
        } else {
            message.body.clone()
        };
        self.draft.push(&format!("{text}\n\n"));
        for file in &message.attachments {
            match file.as_message() {
                Some(Ok(attached)) if depth < MAX_MAIL_DEPTH => self.add_outlook(&attached, depth + 1),
                _ => self.unread += 1,
            }
        }
    }

    fn markdown(&mut self, html: &str) -> String {
        if seems_deep(html) {
            self.draft.warn("a text in HTML is nested too deeply to be read".to_owned());
            return String::new();
        }
        let (markdown, is_complete) = HtmlPage::parse(html).markdown(&SKIPPED, self.limits.depth);
        if !is_complete {
            self.draft.warn("a text in HTML is nested too deeply: only its text is included".to_owned());
        }
        markdown
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn addresses(addresses: Option<&Address<'_>>) -> String {
    let all = addresses.into_iter().flat_map(|addresses| addresses.iter());
    all.map(|one| named(one.name.as_deref(), one.address.as_deref())).collect::<Vec<_>>().join(", ")
}

fn person(person: &Person) -> String {
    named(Some(&person.name), Some(&person.email))
}

fn named(name: Option<&str>, address: Option<&str>) -> String {
    match (name.unwrap_or_default().trim(), address.unwrap_or_default().trim()) {
        ("", address) => address.to_owned(),
        (name, "") => name.to_owned(),
        (name, address) if name == address => address.to_owned(),
        (name, address) => format!("{name} <{address}>"),
    }
}

fn attachment(part: &MessagePart<'_>) -> String {
    let kind = part.content_type().map(|kind| match kind.subtype() {
        Some(subtype) => format!("{}/{subtype}", kind.ctype()),
        None => kind.ctype().to_owned(),
    });
    let name = match &part.body {
        PartType::Message(message) => format!("mail \"{}\"", message.subject().unwrap_or("(no subject)")),
        _ => part.attachment_name().unwrap_or("(no name)").to_owned(),
    };
    format!("{name} ({}, {} bytes)", kind.as_deref().unwrap_or("unknown type"), part.len())
}
