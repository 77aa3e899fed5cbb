//! Parses the text of messages: replaces ids with names, and detects mentions of the bot.

use super::{guild_cache::GuildCache, wire::DiscordUser};

/// Parsed message text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DiscordText {
    /// The text, without mentions of the bot.
    pub(super) text: String,
    /// Whether the bot is mentioned.
    pub(super) mentions_bot: bool,
}

/// Parses message text. `me` is the bot's user, `people` are the mentioned users according to Discord.
pub(super) fn parse_text(
    content: &str,
    me: &str,
    people: &[DiscordUser],
    places: &GuildCache,
) -> DiscordText {
    let mut words = DiscordText::default();
    let mut rest = content;
    while let Some((before, tag)) = rest.split_once('<') {
        words.text.push_str(before);
        let resolved =
            tag.split_once('>').map(|(inside, after)| (resolve(inside, me, people, places), after));
        match resolved {
            Some((Some(TextMention::Bot), after)) => {
                words.mentions_bot = true;
                // Removing the mention must not leave two spaces.
                let after = if words.text.is_empty() || words.text.ends_with(char::is_whitespace) {
                    after.strip_prefix(' ').unwrap_or(after)
                } else {
                    after
                };
                rest = after;
            }
            Some((Some(TextMention::Other(name)), after)) => {
                words.text.push_str(&name);
                rest = after;
            }
            _ => {
                words.text.push('<');
                rest = tag;
            }
        }
    }
    words.text.push_str(rest);
    words.text = words.text.trim().to_owned();
    words
}

enum TextMention {
    Bot,
    Other(String),
}

/// Resolves the content of angle brackets; `None` if it is ordinary text.
fn resolve(inside: &str, me: &str, people: &[DiscordUser], places: &GuildCache) -> Option<TextMention> {
    let digits = |id: &str| !id.is_empty() && id.len() <= 20 && id.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(id) = inside.strip_prefix("@&").filter(|id| digits(id)) {
        if places.is_own_role(id) {
            return Some(TextMention::Bot);
        }
        return Some(TextMention::Other(format!(
            "@{}",
            places.role_name(id).unwrap_or_else(|| "role".to_owned())
        )));
    }
    if let Some(id) =
        inside.strip_prefix('@').map(|id| id.strip_prefix('!').unwrap_or(id)).filter(|id| digits(id))
    {
        if id == me {
            return Some(TextMention::Bot);
        }
        let name = people.iter().find(|person| person.id == id).map(name);
        return Some(TextMention::Other(format!("@{}", name.unwrap_or("unknown-user"))));
    }
    if let Some(id) = inside.strip_prefix('#').filter(|id| digits(id)) {
        return Some(TextMention::Other(format!(
            "#{}",
            places.name(id).unwrap_or_else(|| "channel".to_owned())
        )));
    }
    // A server's own emoji: <:name:id>, animated <a:name:id>. A command: </name:id>.
    let mut parts = inside.split(':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("" | "a"), Some(name), Some(id), None) if digits(id) => {
            Some(TextMention::Other(format!(":{name}:")))
        }
        (Some(command), Some(id), None, None) if command.starts_with('/') && digits(id) => {
            Some(TextMention::Other(command.to_owned()))
        }
        _ => None,
    }
}

/// Returns a user's display name.
pub(super) fn name(person: &DiscordUser) -> &str {
    let nick = person.member.as_ref().and_then(|member| member.nick.as_deref());
    nick.or(person.global_name.as_deref()).unwrap_or(&person.username)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_become_names_and_mentions_of_the_bot_are_detected() {
        let places = GuildCache::default();
        let guild = json!({
            "id": "1", "channels": [{"id": "2", "type": 0, "name": "team"}],
            "roles": [{"id": "5", "name": "pudu", "tags": {"bot_id": "7"}}, {"id": "6", "name": "admins"}],
        });
        places.guild(serde_json::from_value(guild).unwrap(), "7");
        let ada = DiscordUser {
            id: "8".into(),
            username: "ada".into(),
            global_name: Some("Ada".into()),
            ..DiscordUser::default()
        };
        let cases = [
            ("<@7> hello", "hello", true),
            ("hello <@!7>", "hello", true),
            ("hey <@7>, you", "hey , you", true),
            ("a <@7> b", "a b", true),
            ("<@&5> hello", "hello", true),
            ("<@7>", "", true),
            (
                "<@8> and <@9> of <@&6> in <#2> or <#3>",
                "@Ada and @unknown-user of @admins in #team or #channel",
                false,
            ),
            ("<:deer:12> <a:run:13> </status:14>", ":deer: :run: /status", false),
            ("a < b > c <", "a < b > c <", false),
            ("<@x> <@> <#> <t:1:R> <https://x.y>", "<@x> <@> <#> <t:1:R> <https://x.y>", false),
            ("@everyone", "@everyone", false),
        ];
        for (content, text, mentions_bot) in cases {
            let expected = DiscordText { text: text.into(), mentions_bot };
            assert_eq!(parse_text(content, "7", std::slice::from_ref(&ada), &places), expected, "{content}");
        }
    }
}
