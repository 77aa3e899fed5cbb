//! The way of an arrival: access, its kind, and the conversation that it concerns. All of that is decided here, from
//! the account's policy, the event and the facts about it; nothing is read and nothing is done.
//!
//! A private chat is one conversation, and so is a topic. In a group without topics each message to the bot begins a
//! chain of its own, and an answer to any message of a chain continues it; a command or a change concerns the chain
//! that it belongs to, or else one of the chat: the newest in which a run of this person is at work, or the one that
//! was talked in last. Where each question begins a thread, a chat consists of threads, and a command beside them
//! concerns one of those likewise.

use super::{access::AccessVerdict, account::AccountRules, approval::pressed, command::SlashCommand};
use pudu_channels::{Address, Inbound, InboundKind};

/// Facts about an arrival that the event does not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteFacts {
    /// Whether the sender made themselves known to the account by a code.
    pub(super) paired: bool,
    /// The command that the event gives; a request for a skill is none.
    pub(super) command: Option<SlashCommand>,
    /// Whether each question begins a thread on the platform.
    pub(super) threads: bool,
}

/// The way of an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// No sign at all.
    Ignore,
    /// The sender gets a refusal.
    RefuseStranger,
    /// The sender showed a code and is known already.
    GreetKnown,
    /// The sender shows a code.
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
    /// Conversations to look for, in this order; the first one that is found counts.
    pub(super) candidates: Vec<ConversationCandidate>,
    /// Whether later answers to the message find the conversation by it.
    pub(super) remember: bool,
    pub(super) kind: EventKind,
}

/// Kind of an event for a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A message, or a press of a choice that is no command.
    Say,
    /// A message is changed or taken back; the change may turn it into a command.
    Change(Option<SlashCommand>),
    /// A command.
    Command(SlashCommand),
}

/// A conversation that an event may concern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConversationCandidate {
    /// The one that a message belongs to.
    ChainOf(String),
    /// A conversation with a question of the sender at work: `own` if it is such a conversation, else the newest.
    AtWork { base: String, topics: bool, own: Option<String> },
    /// The one of the chat that was talked in last.
    Latest { base: String, topics: bool },
    /// This one.
    Key(String),
}

/// Decides the way of an arrival.
pub(super) fn route(policy: &AccountRules, inbound: &Inbound, facts: RouteFacts) -> Route {
    let (access, paired) = (&policy.access, policy.access.pairing && facts.paired);
    let knows = access.knows(&inbound.sender.id, paired);
    // A known person who shows a code may join another user by it.
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

/// Returns the code that a message shows.
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

/// A private chat is one conversation. A person who cannot give a command in a thread there means the thread by "stop",
/// if it is all that can be stopped.
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
    let chain = match &inbound.kind {
        InboundKind::Message { .. } => inbound.reply_to.clone(),
        InboundKind::Edit { .. } | InboundKind::Recall | InboundKind::Press { .. } => {
            Some(inbound.message.clone())
        }
    };
    let mut candidates: Vec<ConversationCandidate> =
        chain.map(ConversationCandidate::ChainOf).into_iter().collect();
    // A command that would begin a thread of its own is said to those that are there.
    let beside = threads && command && address.topic.as_ref() == Some(&inbound.message);
    if address.topic.is_some() && !beside {
        // A topic may hang below a message of a chain: then it continues that.
        candidates.push(ConversationCandidate::Key(address.key()));
        return (candidates, false);
    }
    let base = Address { topic: None, ..address.clone() }.key();
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

    /// An event of Ada's in chat `c`; `where_` is `private`, `group` or a topic's name.
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
    fn who_may_not_comes_nowhere_and_who_shows_a_code_is_known_by_it() {
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
            // A private chat is one conversation, also for an answer to a message in it.
            (event("private", message("hi")), false, vec![key("a:c")], false),
            (event("private", message("/stop")), false, vec![key("a:c")], false),
            (event("private", message("/stop")), true, vec![stop, key("a:c")], false),
            (event("private", pressed("/stop")), true, vec![key("a:c")], false),
            // In a group a question begins a chain, and an answer continues one.
            (event("group", message("hi")), false, vec![key("a:c:m9")], true),
            (answer(message("hi")), false, vec![chain("5"), key("a:c:m9")], true),
            (event("group", album), false, vec![key("a:c:a8")], true),
            // A command, a press and a change concern a conversation that is there.
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
            // A topic is a conversation; it may hang below a message of a chain.
            (event("t", message("hi")), false, vec![key("a:c:t")], false),
            (event("t", pressed("x")), false, vec![chain("9"), key("a:c:t")], false),
            // Where each question begins a thread, a command beside the threads begins none.
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
    fn an_event_is_said_given_or_changes_something() {
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
