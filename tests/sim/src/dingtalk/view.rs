//! The bot's messages as users see them, with markup rendered like in the platform's clients.

use super::{
    cards::State,
    world::{Body, Post, World},
};
use crate::platform::Shown;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Returns the bot's messages in a chat.
pub(crate) fn shown(world: &World, chat: &str) -> Vec<Shown> {
    let posts = world.chats.get(chat).map(|chat| chat.posts.as_slice()).unwrap_or_default();
    posts.iter().filter(|post| !post.recalled).map(|post| one(world, post)).collect()
}

fn one(world: &World, post: &Post) -> Shown {
    let mut shown = Shown { id: post.id.clone(), pings: post.pings, ..Shown::default() };
    match &post.body {
        Body::Text(text) => shown.text.clone_from(text),
        Body::Markdown(text) => shown.text = visible(text),
        Body::File(name, bytes) => shown.files.push((name.clone(), bytes.clone())),
        Body::Card => {
            let Some(card) = world.cards.get(&post.id) else { return shown };
            shown.text = visible(card.text(&world.options.content_key));
            shown.growing = card.state == State::Growing;
            shown.buttons =
                card.buttons(&world.options.buttons_key).into_iter().map(|(text, _)| text).collect();
        }
    }
    shown
}

/// Returns every text that a message has shown.
pub(crate) fn history(world: &World, chat: &str, message: &str) -> Vec<String> {
    if let Some(card) = world.cards.get(message) {
        return card.shown.iter().map(|text| visible(text)).collect();
    }
    let posts = world.chats.get(chat).map(|chat| chat.posts.as_slice()).unwrap_or_default();
    posts.iter().filter(|post| post.id == message).map(|post| one(world, post).text).collect()
}

/// Renders Markdown: a line break needs two spaces before it or an empty line; there are no tables.
fn visible(markdown: &str) -> String {
    let mut text = String::new();
    let block = |text: &mut String, gap: &str| {
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            text.push_str(gap);
        }
    };
    let mut numbers: Vec<Option<u64>> = Vec::new();
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::List(first)) => numbers.push(first),
            Event::Start(Tag::Item) => match numbers.last_mut() {
                Some(Some(number)) => {
                    text.push_str(&format!("{number}. "));
                    *number += 1;
                }
                _ => text.push_str("• "),
            },
            Event::End(TagEnd::List(_)) => {
                numbers.pop();
                block(&mut text, "\n\n");
            }
            Event::Text(words) | Event::Code(words) | Event::Html(words) | Event::InlineHtml(words) => {
                text.push_str(&words);
            }
            Event::SoftBreak => text.push(' '),
            Event::HardBreak => text.push('\n'),
            Event::Rule => text.push_str("———\n\n"),
            Event::End(TagEnd::Item) => block(&mut text, "\n"),
            Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::BlockQuote(_),
            ) => block(&mut text, "\n\n"),
            _ => {}
        }
    }
    text.truncate(text.trim_end().len());
    text
}
