//! Numbers that users type to select choices offered as text.
//!
//! Without buttons, the choices of a message are a numbered list. An answer that consists only of such a number selects
//! that choice. It has the same effect as pressing a button, both for a finished message and for a question. Whether
//! the user may decide is not checked here, but where presses are handled.
//!
//! A number identifies one question only. Numbers continue from one question of a conversation to the next, so a late
//! answer never decides another question. They restart only after an hour without any. If the limit of tracked
//! conversations is reached and one has to be forgotten, new ones continue from its numbers. A restart forgets the list
//! of a finished message; a question is stored with its reply.

use crate::{Address, Choice, EventKey, Inbound, InboundKind};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Maximum number of conversations remembered, besides those with an open question.
const MAX_TRACKED_CHATS: usize = 1024;
/// How long after it was shown a number may be typed.
const STALE: Duration = Duration::from_secs(3600);

/// Numbered choices, by conversation.
#[derive(Debug, Default)]
pub(crate) struct NumberedChoices(Mutex<ChoiceTable>);

#[derive(Debug, Default)]
struct ChoiceTable {
    kept: HashMap<String, ChatChoices>,
    /// First number that no forgotten conversation has shown, and when conversations were last forgotten.
    floor: Option<(usize, Instant)>,
}

#[derive(Debug)]
struct ChatChoices {
    /// The first number not shown yet.
    next: usize,
    /// When numbers were last shown or withdrawn.
    at: Instant,
    /// Choices of the newest finished message, numbered from 1.
    list: Option<ChoiceList>,
    /// Open questions.
    open: Vec<OpenPrompt>,
}

#[derive(Debug)]
struct ChoiceList {
    actions: Vec<String>,
    /// The platform's id of the message, once it is sent. Until then, typing a number is like typing its action.
    message: Option<String>,
    /// The event that selected a choice. Other events have no effect; the same event may be redelivered.
    chosen: Option<EventKey>,
}

#[derive(Debug)]
struct OpenPrompt {
    first: usize,
    actions: Vec<String>,
}

/// A question that can be answered by number, until it is dropped.
#[derive(Debug)]
pub(crate) struct NumberedPrompt {
    numbered: Arc<NumberedChoices>,
    place: String,
    /// Number of the first choice.
    pub(crate) first: usize,
}

impl Drop for NumberedPrompt {
    fn drop(&mut self) {
        if let Some(place) = self.numbered.places().kept.get_mut(&self.place) {
            place.open.retain(|open| open.first != self.first);
            place.at = Instant::now();
        }
    }
}

impl ChatChoices {
    fn new(next: usize) -> Self {
        Self { next, at: Instant::now(), list: None, open: Vec::new() }
    }

    /// Records that numbers up to `last` are shown.
    fn shows(&mut self, last: usize) {
        self.next = self.next.max(last + 1);
        self.at = Instant::now();
    }

    fn is_stale(&self) -> bool {
        self.open.is_empty() && self.at.elapsed() >= STALE
    }
}

impl NumberedChoices {
    fn places(&self) -> MutexGuard<'_, ChoiceTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a question in a conversation. Its numbers were not shown there recently, and are at least `least`.
    pub(crate) fn ask(
        self: &Arc<Self>,
        address: &Address,
        least: usize,
        actions: Vec<String>,
    ) -> NumberedPrompt {
        let (mut places, key) = (self.places(), address.key());
        let chat = at(&mut places, &key);
        let first = chat.next.max(least);
        self.open(chat, key.clone(), first, actions)
    }

    /// Reopens a question from before a restart with its old numbers. Returns `None` if the numbers are taken.
    pub(crate) fn renew(
        self: &Arc<Self>,
        address: &Address,
        first: usize,
        actions: Vec<String>,
    ) -> Option<NumberedPrompt> {
        let (mut places, key) = (self.places(), address.key());
        let chat = at(&mut places, &key);
        let end = |open: &OpenPrompt| open.first + open.actions.len();
        let is_used = chat.open.iter().any(|open| open.first < first + actions.len() && first < end(open));
        (!is_used).then(|| self.open(chat, key.clone(), first, actions))
    }

    fn open(
        self: &Arc<Self>,
        place: &mut ChatChoices,
        key: String,
        first: usize,
        actions: Vec<String>,
    ) -> NumberedPrompt {
        place.list = None;
        place.shows(first + actions.len() - usize::from(!actions.is_empty()));
        place.open.push(OpenPrompt { first, actions });
        NumberedPrompt { numbered: Arc::clone(self), place: key, first }
    }

    /// Records that a conversation now shows a finished message, with or without choices. Returns the number of the
    /// first choice; `None` without choices, and while a question is open, to avoid confusion with its numbers.
    pub(crate) fn list(&self, address: &Address, choices: &[Choice]) -> Option<usize> {
        let (mut places, key) = (self.places(), address.key());
        if choices.is_empty() {
            places.kept.get_mut(&key)?.list = None;
            return None;
        }
        let chat = at(&mut places, &key);
        chat.list = None;
        if !chat.open.is_empty() {
            return None;
        }
        chat.shows(choices.len());
        let actions = choices.iter().map(|choice| choice.action.clone()).collect();
        chat.list = Some(ChoiceList { actions, message: None, chosen: None });
        Some(1)
    }

    /// Records the id of the finished message that lists its choices.
    pub(crate) fn listed_by(&self, address: &Address, message: &str) {
        if let Some(list) = self.places().kept.get_mut(&address.key()).and_then(|place| place.list.as_mut()) {
            list.message = Some(message.to_owned()).filter(|message| !message.is_empty());
        }
    }

    /// Replaces a typed number with the action that it selects.
    pub(crate) fn resolve(&self, inbound: Inbound) -> Inbound {
        let InboundKind::Message { text, attachments, .. } = &inbound.kind else { return inbound };
        if !inbound.addressed || !attachments.is_empty() {
            return inbound;
        }
        match number(text).and_then(|number| self.meaning(&inbound, number)) {
            Some((kind, message)) => {
                Inbound { kind, message: message.unwrap_or_else(|| inbound.message.clone()), ..inbound }
            }
            None => inbound,
        }
    }

    /// Returns the action that a number selects, and the finished message that lists it.
    fn meaning(&self, inbound: &Inbound, number: usize) -> Option<(InboundKind, Option<String>)> {
        let mut places = self.places();
        let chat = places.kept.get_mut(&inbound.address.key())?;
        let pressed = chat.open.iter().find_map(|open| open.actions.get(number.checked_sub(open.first)?));
        if let Some(action) = pressed {
            return Some((InboundKind::Press { action: action.clone() }, None));
        }
        let list = chat.list.as_mut()?;
        let action = list.actions.get(number.checked_sub(1)?)?.clone();
        let chosen = list.chosen.get_or_insert_with(|| inbound.key.clone());
        let message = list.message.clone();
        (*chosen == inbound.key).then(|| match message {
            Some(_) => (InboundKind::Press { action }, message),
            None => (InboundKind::Message { text: action, attachments: Vec::new(), album: None }, None),
        })
    }
}

/// Returns the state of a conversation, which may be forgotten once it has no open question.
fn at<'a>(places: &'a mut ChoiceTable, key: &str) -> &'a mut ChatChoices {
    if places.kept.len() >= MAX_TRACKED_CHATS && !places.kept.contains_key(key) {
        places.forget();
    }
    let next = places.next();
    let chat = places.kept.entry(key.to_owned()).or_insert_with(|| ChatChoices::new(next));
    if chat.is_stale() {
        *chat = ChatChoices::new(1);
    }
    chat
}

impl ChoiceTable {
    /// Forgets conversations without open questions: stale ones first, then all others if needed.
    fn forget(&mut self) {
        self.kept.retain(|_, place| !place.is_stale());
        if self.kept.len() < MAX_TRACKED_CHATS {
            return;
        }
        let floor = self.next();
        let gone = self.kept.extract_if(|_, place| place.open.is_empty());
        let next = gone.map(|(_, place)| place.next).fold(floor, usize::max);
        self.floor = Some((next, Instant::now()));
    }

    /// Returns the first number for a new conversation.
    fn next(&self) -> usize {
        self.floor.filter(|(_, at)| at.elapsed() < STALE).map_or(1, |(next, _)| next)
    }
}

/// Parses a message that consists only of a number.
fn number(text: &str) -> Option<usize> {
    let digits = text.trim().trim_end_matches(['.', '。', ')']);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attachment, Sender};

    fn place(chat: &str) -> Address {
        Address { account: "dingtalk".into(), chat: chat.into(), topic: None }
    }

    fn typed(chat: &str, key: &str, text: &str) -> Inbound {
        Inbound {
            key: EventKey(key.into()),
            address: place(chat),
            private: true,
            message: key.into(),
            reply_to: None,
            sender: Sender { id: "5".into(), name: "Ada".into(), language: None },
            addressed: true,
            at: 0,
            pointed: Vec::new(),
            hint: None,
            kind: InboundKind::Message { text: text.into(), attachments: Vec::new(), album: None },
        }
    }

    /// Returns the meaning of typed text: a message, or a press.
    fn means(numbered: &NumberedChoices, inbound: Inbound) -> String {
        match numbered.resolve(inbound).kind {
            InboundKind::Message { text, .. } => text,
            InboundKind::Press { action } => format!("press {action}"),
            other => panic!("{other:?}"),
        }
    }

    fn choices(actions: &[&str]) -> Vec<Choice> {
        actions.iter().map(|action| Choice { label: "x".into(), action: (*action).into() }).collect()
    }

    fn actions(key: &str) -> Vec<String> {
        vec![format!("/approve {key}"), format!("/deny {key}")]
    }

    #[test]
    fn a_number_selects_from_the_last_list_only_once() {
        let numbered = NumberedChoices::default();
        assert_eq!(numbered.list(&place("a"), &choices(&["/retry", "/stop"])), Some(1));
        let meaning_of = |key: &str, text: &str| means(&numbered, typed("a", key, text));
        for other in ["0", "3", "2 apples", "-1", "+1", "two", "", "99999999999999999999999", "١"] {
            assert_eq!(meaning_of("k", other), other);
        }
        assert_eq!(means(&numbered, typed("b", "k", "1")), "1");
        assert_eq!(meaning_of("k", " 2. "), "/stop");
        assert_eq!(meaning_of("k", " 2. "), "/stop", "the same event, redelivered");
        assert_eq!(meaning_of("l", "1"), "1");
        numbered.list(&place("a"), &choices(&["/retry"]));
        numbered.listed_by(&place("a"), "m");
        let pressed = numbered.resolve(typed("a", "k", "1"));
        assert_eq!(
            (pressed.kind, pressed.message.as_str()),
            (InboundKind::Press { action: "/retry".into() }, "m"),
            "once the message is sent, the number is a press"
        );
        numbered.list(&place("a"), &choices(&["/retry"]));
        numbered.list(&place("a"), &[]);
        assert_eq!(meaning_of("k", "1"), "1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_answered_by_its_own_numbers_until_it_is_closed() {
        let numbered = Arc::new(NumberedChoices::default());
        let meaning_of = |text: &str| means(&numbered, typed("a", "k", text));
        let first = numbered.ask(&place("a"), 0, actions("A"));
        assert_eq!(
            (first.first, meaning_of("1"), meaning_of("2")),
            (1, "press /approve A".into(), "press /deny A".into())
        );
        assert_eq!(meaning_of("1"), "press /approve A", "an answer without permission does not use it up");
        assert_eq!(numbered.list(&place("a"), &choices(&["/retry"])), None, "a question is open");
        let other = numbered.ask(&place("a"), 0, actions("B"));
        assert_eq!(
            (meaning_of("1"), meaning_of("3")),
            ("press /approve A".into(), "press /approve B".into())
        );
        drop(first);
        assert_eq!((meaning_of("1"), meaning_of("4")), ("1".into(), "press /deny B".into()));
        drop(other);
        let next = numbered.ask(&place("a"), 0, actions("C"));
        assert_eq!((next.first, meaning_of("1"), meaning_of("3")), (5, "1".into(), "3".into()));
        drop(next);
        tokio::time::advance(STALE).await;
        assert_eq!(numbered.ask(&place("a"), 0, actions("D")).first, 1);
        assert_eq!(numbered.ask(&place("b"), 7, actions("E")).first, 7, "as recorded by the reply");
    }

    #[test]
    fn a_question_after_a_list_has_other_numbers() {
        let numbered = Arc::new(NumberedChoices::default());
        numbered.list(&place("a"), &choices(&["/retry", "/new"]));
        let numbers = numbered.ask(&place("a"), 0, actions("A"));
        assert_eq!((numbers.first, means(&numbered, typed("a", "k", "1"))), (3, "1".into()));
    }

    #[test]
    fn a_restart_keeps_the_numbers_unless_they_are_taken() {
        let numbered = Arc::new(NumberedChoices::default());
        let renewed = numbered.renew(&place("a"), 3, actions("A"));
        assert_eq!(means(&numbered, typed("a", "k", "4")), "press /deny A");
        assert!(numbered.renew(&place("a"), 4, actions("B")).is_none());
        assert!(numbered.renew(&place("a"), 2, actions("B")).is_none());
        assert!(numbered.renew(&place("a"), 1, actions("B")).is_some());
        assert_eq!(
            (renewed.map(|renewed| renewed.first), numbered.ask(&place("a"), 0, actions("C")).first),
            (Some(3), 5)
        );
    }

    #[test]
    fn only_a_lone_number_addressed_to_the_bot_is_an_answer() {
        let numbered = Arc::new(NumberedChoices::default());
        let _asked = numbered.ask(&place("a"), 0, actions("A"));
        let aside = Inbound { addressed: false, ..typed("a", "k", "1") };
        let file = Attachment { handle: "h".into(), name: "a.txt".into(), size: None };
        let kind = InboundKind::Message { text: "1".into(), attachments: vec![file], album: None };
        let edited = Inbound { kind: InboundKind::Edit { text: "1".into() }, ..typed("a", "k", "") };
        for inbound in [aside, Inbound { kind, ..typed("a", "k", "") }, edited, typed("a", "k", "/approve A")]
        {
            assert_eq!(numbered.resolve(inbound.clone()), inbound);
        }
    }

    /// A late number must not decide another question, however many chats there are.
    #[tokio::test(start_paused = true)]
    async fn a_forgotten_conversation_does_not_restart_its_numbers() {
        let numbered = Arc::new(NumberedChoices::default());
        drop(numbered.ask(&place("a"), 0, actions("A")));
        for n in 0..2 * MAX_TRACKED_CHATS {
            drop(numbered.ask(&place(&n.to_string()), 0, actions("B")));
        }
        assert!(numbered.places().kept.len() <= MAX_TRACKED_CHATS);
        let again = numbered.ask(&place("a"), 0, actions("C"));
        assert!(again.first > 2, "{}", again.first);
        assert_eq!(means(&numbered, typed("a", "k", "1")), "1");
        drop(again);
        tokio::time::advance(STALE).await;
        assert_eq!(numbered.ask(&place("new"), 0, actions("D")).first, 1);
    }

    #[test]
    fn memory_is_bounded_and_no_open_question_is_forgotten() {
        let numbered = Arc::new(NumberedChoices::default());
        let numbers = numbered.ask(&place("a"), 0, actions("A"));
        for n in 0..5000 {
            numbered.list(&place(&n.to_string()), &choices(&["/x"]));
        }
        assert!(numbered.places().kept.len() <= MAX_TRACKED_CHATS);
        assert_eq!(means(&numbered, typed("a", "k", "1")), "press /approve A");
        drop(numbers);
    }
}
