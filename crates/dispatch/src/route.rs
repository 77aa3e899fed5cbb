//! Routes an arrival by access, kind and conversation. The decision depends only on the bot's rules, the event and
//! the facts about it. Nothing is read or changed here.
//!
//! A private chat is one conversation, and so is a topic. In a group without topics, each message to the bot begins a
//! chain, and a reply to any message of a chain continues it. A command or an edit concerns the chain that it belongs
//! to. Without one, it concerns the newest chain of the chat with an active run of this person, or else the most
//! recently active one. On platforms where each question begins a thread, a chat consists of threads, and a command
//! outside its threads concerns one of the threads in the same way.

use super::{access::AccessVerdict, account::AccountRules, approval::pressed, command::SlashCommand};
use pudu_channels::{Address, Inbound, InboundKind};

/// Facts about an arrival that the event does not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteFacts {
    /// Whether the sender has paired with the account by a code.
    pub(super) paired: bool,
    /// The command in the event; `None` if it starts a skill.
    pub(super) command: Option<SlashCommand>,
    /// Whether each question begins a thread on the platform.
    pub(super) threads: bool,
}

/// Decision about an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Give no answer.
    Ignore,
    /// The sender gets a refusal.
    RefuseStranger,
    /// The sender sent a code but is known already.
    GreetKnown,
    /// The sender redeems a code.
    RedeemCode(String),
    /// The sender decides an approval.
    Decide {
        /// The approval's id.
        approval: String,
        approve: bool,
    },
    /// It belongs to a conversation.
    Converse(Converse),
}

/// An event for a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Converse {
    /// Conversations to look up, in this order; the first that exists is used.
    pub(super) candidates: Vec<ConversationCandidate>,
    /// Whether to record the conversation of the message, so that later replies to the message find it.
    pub(super) remember: bool,
    pub(super) kind: EventKind,
}

/// Kind of an event for a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A message, a submitted form, or a press of a choice that is not a command.
    Say,
    /// A message was edited or deleted. The edit may turn it into a command.
    Change(Option<SlashCommand>),
    /// A command.
    Command(SlashCommand),
}

/// A conversation that an event may concern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConversationCandidate {
    /// The conversation that a message belongs to.
    ChainOf(String),
    /// A conversation in which a run answers the sender's question: `own` if it is such a conversation, or else the
    /// newest.
    AtWork { base: String, topics: bool, own: Option<String> },
    /// The chat's most recently active conversation.
    Latest { base: String, topics: bool },
    /// The conversation with this key.
    Key(String),
}

/// Routes an arrival.
pub(super) fn route(policy: &AccountRules, inbound: &Inbound, facts: RouteFacts) -> Route {
    let (access, paired) = (&policy.access, policy.access.pairing && facts.paired);
    let knows = access.knows(&inbound.sender.id, paired);
    // A known person may send a code to join another user.
    let joins = knows && facts.command.as_ref().is_some_and(|command| command.name == "connect");
    if let Some(code) = code(inbound, facts.command.as_ref()).filter(|_| access.pairing && !joins) {
        return match access.takes_code(inbound) {
            false => Route::Ignore,
            true if knows => Route::GreetKnown,
            true => Route::RedeemCode(code.to_owned()),
        };
    }
    match access.judge(inbound, paired) {
        AccessVerdict::Ignore => Route::Ignore,
        AccessVerdict::Refuse => Route::RefuseStranger,
        AccessVerdict::Welcome => match pressed(&inbound.kind) {
            Some((approval, approve)) => Route::Decide { approval: approval.to_owned(), approve },
            None => Route::Converse(converse(inbound, facts)),
        },
    }
}

/// Returns the code in a message.
fn code<'a>(inbound: &Inbound, command: Option<&'a SlashCommand>) -> Option<&'a str> {
    let shows = |command: &&SlashCommand| matches!(command.name.as_str(), "connect" | "start");
    let said = matches!(inbound.kind, InboundKind::Message { .. });
    command.filter(|_| said).filter(shows)?.argument.as_deref()
}

fn converse(inbound: &Inbound, RouteFacts { command, threads, .. }: RouteFacts) -> Converse {
    let said = matches!(inbound.kind, InboundKind::Message { .. });
    let given = command.as_ref().filter(|_| said || matches!(inbound.kind, InboundKind::Press { .. }));
    let (candidates, in_chain) = match inbound.private {
        true => (alone(inbound, given, threads), false),
        false => in_group(inbound, given.is_some(), threads),
    };
    let kind = match (&inbound.kind, command) {
        (InboundKind::Edit { .. } | InboundKind::Recall, command) => EventKind::Change(command),
        (_, Some(command)) => EventKind::Command(command),
        (_, None) => EventKind::Say,
    };
    Converse { candidates, remember: in_chain && said, kind }
}

/// Returns the candidates for an event in a private chat, which is one conversation. On some platforms people cannot
/// type commands in a thread there, so `/stop` outside of the threads stops a thread's run if the chat itself has none.
fn alone(inbound: &Inbound, command: Option<&SlashCommand>, threads: bool) -> Vec<ConversationCandidate> {
    let own = inbound.address.key();
    let typed = matches!(inbound.kind, InboundKind::Message { .. });
    let stops = command.is_some_and(|command| command.name == "stop");
    let mut candidates = vec![ConversationCandidate::Key(own.clone())];
    if threads && inbound.address.topic.is_none() && typed && stops {
        candidates
            .insert(0, ConversationCandidate::AtWork { base: own.clone(), topics: true, own: Some(own) });
    }
    candidates
}

/// Returns the candidates for an event in a group, and whether it belongs to a chain rather than to a topic.
fn in_group(inbound: &Inbound, command: bool, threads: bool) -> (Vec<ConversationCandidate>, bool) {
    let address = &inbound.address;
    let base = Address { topic: None, ..address.clone() }.key();
    if matches!(inbound.kind, InboundKind::Scheduled { .. }) {
        // Each run begins a chain, which people continue by a reply to the answer.
        let chain = format!("{base}:m{}", inbound.message);
        let key = if address.topic.is_some() { address.key() } else { chain };
        return (vec![ConversationCandidate::Key(key)], false);
    }
    let chain = match &inbound.kind {
        InboundKind::Message { .. } => inbound.reply_to.clone(),
        _ => Some(inbound.message.clone()),
    };
    let mut candidates: Vec<ConversationCandidate> =
        chain.map(ConversationCandidate::ChainOf).into_iter().collect();
    // A command that would begin its own thread concerns one of the existing threads instead.
    let beside = threads && command && address.topic.as_ref() == Some(&inbound.message);
    if address.topic.is_some() && !beside {
        // A topic that hangs below a message of a chain continues that chain.
        candidates.push(ConversationCandidate::Key(address.key()));
        return (candidates, false);
    }
    if command || !matches!(inbound.kind, InboundKind::Message { .. }) {
        candidates.push(ConversationCandidate::AtWork { base: base.clone(), topics: threads, own: None });
        candidates.push(ConversationCandidate::Latest { base: base.clone(), topics: threads });
    }
    candidates.push(ConversationCandidate::Key(match &inbound.kind {
        _ if address.topic.is_some() => address.key(),
        InboundKind::Message { album: Some(album), .. } => format!("{base}:a{album}"),
        _ => format!("{base}:m{}", inbound.message),
    }));
    (candidates, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use pudu_channels::{EventKey, Sender};
    use pudu_config::Allow;
    use pudu_config::FollowUpMode;

    /// An event from Ada in chat `c`; `where_` is `private`, `group` or a topic's name.
    fn event(where_: &str, kind: InboundKind) -> Inbound {
        let topic = Some(where_).filter(|place| !matches!(*place, "private" | "group")).map(str::to_owned);
        Inbound {
            key: EventKey("k".into()),
            address: Address { account: "a".into(), chat: "c".into(), topic },
            private: where_ == "private",
            message: "9".into(),
            reply_to: None,
            sender: Sender { id: "ada".into(), name: "Ada".into(), language: None },
            addressed: true,
            at: 0,
            pointed: Vec::new(),
            hint: None,
            kind,
        }
    }

    fn message(text: &str) -> InboundKind {
        InboundKind::Message { text: text.into(), attachments: Vec::new(), album: None }
    }

    fn pressed(action: &str) -> InboundKind {
        InboundKind::Press { action: action.into() }
    }

    fn edited(text: &str) -> InboundKind {
        InboundKind::Edit { text: text.into() }
    }

    fn facts(inbound: &Inbound, paired: bool, threads: bool) -> RouteFacts {
        RouteFacts { paired, command: SlashCommand::from_event(&inbound.kind), threads }
    }

    #[test]
    fn access_and_codes_decide_the_route() {
        let pairing = Access { pairing: true, ..Access::everyone() };
        let listed = Access { users: Allow::Only(["ada".to_owned()].into()), ..pairing.clone() };
        let others = Access { users: Allow::Only(["bob".to_owned()].into()), ..Access::everyone() };
        let redeem = || Route::RedeemCode("xyz".into());
        let table: &[(&Access, bool, &str, InboundKind, Option<Route>)] = &[
            (&Access::everyone(), false, "private", message("hi"), None),
            (&others, false, "private", message("hi"), Some(Route::RefuseStranger)),
            (&others, false, "group", message("hi"), Some(Route::Ignore)),
            (&others, true, "private", message("hi"), Some(Route::RefuseStranger)),
            (&others, false, "private", pressed("/approve 7"), Some(Route::RefuseStranger)),
            (&pairing, false, "private", message("hi"), Some(Route::RefuseStranger)),
            (&pairing, true, "private", message("hi"), None),
            (&pairing, false, "private", message("/connect xyz"), Some(redeem())),
            (&pairing, false, "group", message("/start xyz"), Some(redeem())),
            (&pairing, false, "private", message("/connect"), Some(Route::RefuseStranger)),
            (&pairing, false, "private", pressed("/connect xyz"), Some(Route::RefuseStranger)),
            (&pairing, true, "private", message("/connect xyz"), None),
            (&listed, false, "private", message("/connect xyz"), None),
            (&pairing, true, "private", message("/start xyz"), Some(Route::GreetKnown)),
            (&Access::everyone(), false, "private", message("/connect xyz"), None),
            (
                &Access::everyone(),
                false,
                "group",
                pressed("/deny 7"),
                Some(Route::Decide { approval: "7".into(), approve: false }),
            ),
            (&Access::everyone(), false, "group", message("/deny 7"), None),
        ];
        for (access, paired, place, kind, expected) in table {
            let inbound = event(place, kind.clone());
            let policy = AccountRules::open((*access).clone(), FollowUpMode::Queue);
            let route = route(&policy, &inbound, facts(&inbound, *paired, false));
            match expected {
                Some(expected) => assert_eq!(route, *expected, "{access:?} {paired} {kind:?}"),
                None => {
                    assert!(matches!(route, Route::Converse(_)), "{access:?} {paired} {kind:?}: {route:?}")
                }
            }
        }
        let unaddressed = Inbound { addressed: false, ..event("private", message("/connect xyz")) };
        let policy = AccountRules::open(pairing, FollowUpMode::Queue);
        assert_eq!(route(&policy, &unaddressed, facts(&unaddressed, false, false)), Route::Ignore);
    }

    #[test]
    fn each_event_finds_its_conversation() {
        let key = |key: &str| ConversationCandidate::Key(key.into());
        let chain = |message: &str| ConversationCandidate::ChainOf(message.into());
        let at_work = |topics| ConversationCandidate::AtWork { base: "a:c".into(), topics, own: None };
        let latest = |topics| ConversationCandidate::Latest { base: "a:c".into(), topics };
        let answer = |kind| Inbound { reply_to: Some("5".into()), ..event("group", kind) };
        let album =
            InboundKind::Message { text: String::new(), attachments: Vec::new(), album: Some("8".into()) };
        let stop =
            ConversationCandidate::AtWork { base: "a:c".into(), topics: true, own: Some("a:c".into()) };
        let table: Vec<(Inbound, bool, Vec<ConversationCandidate>, bool)> = vec![
            // A private chat is one conversation, even for a reply to a message in it.
            (event("private", message("hi")), false, vec![key("a:c")], false),
            (event("private", message("/stop")), false, vec![key("a:c")], false),
            (event("private", message("/stop")), true, vec![stop, key("a:c")], false),
            (event("private", pressed("/stop")), true, vec![key("a:c")], false),
            // In a group a question begins a chain, and a reply continues it.
            (event("group", message("hi")), false, vec![key("a:c:m9")], true),
            (answer(message("hi")), false, vec![chain("5"), key("a:c:m9")], true),
            (event("group", album), false, vec![key("a:c:a8")], true),
            // A command, a press and a change concern an existing conversation.
            (
                event("group", message("/new")),
                false,
                vec![at_work(false), latest(false), key("a:c:m9")],
                true,
            ),
            (
                event("group", pressed("/stop")),
                false,
                vec![chain("9"), at_work(false), latest(false), key("a:c:m9")],
                false,
            ),
            (
                event("group", edited("/new")),
                false,
                vec![chain("9"), at_work(false), latest(false), key("a:c:m9")],
                false,
            ),
            // A topic is a conversation; it may be attached to a message of a chain.
            (event("t", message("hi")), false, vec![key("a:c:t")], false),
            (event("t", pressed("x")), false, vec![chain("9"), key("a:c:t")], false),
            // If each question begins a thread, a command outside of the threads does not.
            (event("9", message("hi")), true, vec![key("a:c:9")], false),
            (event("9", message("/status")), true, vec![at_work(true), latest(true), key("a:c:9")], true),
            (event("t", message("/status")), true, vec![key("a:c:t")], false),
        ];
        for (inbound, threads, candidates, remember) in table {
            let route = route(
                &AccountRules::open(Access::everyone(), FollowUpMode::Queue),
                &inbound,
                facts(&inbound, false, threads),
            );
            let Route::Converse(found) = route else { panic!("{inbound:?}: {route:?}") };
            assert_eq!((found.candidates, found.remember), (candidates, remember), "{inbound:?}");
        }
    }

    #[test]
    fn an_event_is_a_message_a_command_or_a_change() {
        let command = |name: &str| SlashCommand { name: name.into(), argument: None };
        let table = [
            (message("hi"), EventKind::Say),
            (pressed("one of two"), EventKind::Say),
            (message("/new"), EventKind::Command(command("new"))),
            (pressed("/stop"), EventKind::Command(command("stop"))),
            (edited("hello"), EventKind::Change(None)),
            (edited("/new"), EventKind::Change(Some(command("new")))),
            (InboundKind::Recall, EventKind::Change(None)),
        ];
        for (kind, expected) in table {
            let inbound = event("private", kind);
            assert_eq!(converse(&inbound, facts(&inbound, false, false)).kind, expected, "{inbound:?}");
        }
    }
}
