//! Numbers that people type for choices offered in words.
//!
//! If nothing can be pressed the choices of a message are a list with numbers. An answer with such a number
//! alone means that choice: the very press that a button would have been, under a finished message as under a
//! question. The right to decide is not checked here: presses are judged elsewhere, and these are presses.
//!
//! A number of a question means that question and no other. Numbers continue from one question of a place to the next,
//! so that one that is typed too late decides nothing else, and restart only after an hour without any. If the number
//! of known places reaches the limit and one has to be forgotten, new ones continue from its numbers. The list of a
//! finished message is forgotten by a restart; a question is kept with its reply.

use crate::{Address, Choice, EventKey, Inbound, InboundKind};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Maximum number of chats remembered, besides those where something is asked.
const MAX_TRACKED_CHATS: usize = 1024;
/// Age after which no answer with a previously shown number is expected.
const STALE: Duration = Duration::from_secs(3600);

/// Numbered choices, by place.
#[derive(Debug, Default)]
pub(crate) struct NumberedChoices(Mutex<ChoiceTable>);

#[derive(Debug, Default)]
struct ChoiceTable {
    kept: HashMap<String, ChatChoices>,
    /// The first number that no forgotten place has shown, and when that was last shown or taken back.
    floor: Option<(usize, Instant)>,
}

#[derive(Debug)]
struct ChatChoices {
    /// The first number that was not shown yet.
    next: usize,
    /// When something was last shown or taken back.
    at: Instant,
    /// Choices of the newest finished message, numbered from 1.
    list: Option<ChoiceList>,
    /// Open questions.
    open: Vec<OpenPrompt>,
}

#[derive(Debug)]
struct ChoiceList {
    actions: Vec<String>,
    /// The platform's id of the message, once it is there; until then a number means the typed text.
    message: Option<String>,
    /// The event that chose: another means nothing, the same may come again.
    chosen: Option<EventKey>,
}

#[derive(Debug)]
struct OpenPrompt {
    first: usize,
    actions: Vec<String>,
}

/// A question that can be answered by number until this is dropped.
#[derive(Debug)]
pub(crate) struct NumberedPrompt {
    numbered: Arc<NumberedChoices>,
    place: String,
    /// The number of its first choice.
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

    /// Numbers up to `last` are shown now.
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

    /// Something is asked in a place. Its numbers are none that were shown there lately, and not below
    /// `least`.
    pub(crate) fn ask(
        self: &Arc<Self>,
        address: &Address,
        least: usize,
        actions: Vec<String>,
    ) -> NumberedPrompt {
        let (mut places, key) = (self.places(), address.key());
        let place = at(&mut places, &key);
        let first = place.next.max(least);
        self.open(place, key.clone(), first, actions)
    }

    /// Opens a question from before a restart again, under its old numbers. Returns `None` if the numbers are
    /// taken.
    pub(crate) fn renew(
        self: &Arc<Self>,
        address: &Address,
        first: usize,
        actions: Vec<String>,
    ) -> Option<NumberedPrompt> {
        let (mut places, key) = (self.places(), address.key());
        let place = at(&mut places, &key);
        let end = |open: &OpenPrompt| open.first + open.actions.len();
        let taken = place.open.iter().any(|open| open.first < first + actions.len() && first < end(open));
        (!taken).then(|| self.open(place, key.clone(), first, actions))
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

    /// Records that a place now shows a finished message, with these choices or none. Returns the number of the first:
    /// `None` while a question is open there, whose numbers are not to be mistaken.
    pub(crate) fn list(&self, address: &Address, choices: &[Choice]) -> Option<usize> {
        let (mut places, key) = (self.places(), address.key());
        if choices.is_empty() {
            places.kept.get_mut(&key)?.list = None;
            return None;
        }
        let place = at(&mut places, &key);
        place.list = None;
        if !place.open.is_empty() {
            return None;
        }
        place.shows(choices.len());
        let actions = choices.iter().map(|choice| choice.action.clone()).collect();
        place.list = Some(ChoiceList { actions, message: None, chosen: None });
        Some(1)
    }

    /// The finished message that lists its choices in a place is there, under this id.
    pub(crate) fn listed_by(&self, address: &Address, message: &str) {
        if let Some(list) = self.places().kept.get_mut(&address.key()).and_then(|place| place.list.as_mut()) {
            list.message = Some(message.to_owned()).filter(|message| !message.is_empty());
        }
    }

    /// Replaces a number by its meaning.
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

    /// Returns the meaning of a number, and the finished message that lists it.
    fn meaning(&self, inbound: &Inbound, number: usize) -> Option<(InboundKind, Option<String>)> {
        let mut places = self.places();
        let place = places.kept.get_mut(&inbound.address.key())?;
        let pressed = place.open.iter().find_map(|open| open.actions.get(number.checked_sub(open.first)?));
        if let Some(action) = pressed {
            return Some((InboundKind::Press { action: action.clone() }, None));
        }
        let list = place.list.as_mut()?;
        let action = list.actions.get(number.checked_sub(1)?)?.clone();
        let chosen = list.chosen.get_or_insert_with(|| inbound.key.clone());
        let message = list.message.clone();
        (*chosen == inbound.key).then(|| match message {
            Some(_) => (InboundKind::Press { action }, message),
            None => (InboundKind::Message { text: action, attachments: Vec::new(), album: None }, None),
        })
    }
}

/// Returns a place, which is forgotten at some time if nothing is asked there.
fn at<'a>(places: &'a mut ChoiceTable, key: &str) -> &'a mut ChatChoices {
    if places.kept.len() >= MAX_TRACKED_CHATS && !places.kept.contains_key(key) {
        places.forget();
    }
    let next = places.next();
    let place = places.kept.entry(key.to_owned()).or_insert_with(|| ChatChoices::new(next));
    if place.is_stale() {
        *place = ChatChoices::new(1);
    }
    place
}

impl ChoiceTable {
    /// Forgets the places where nothing is asked: first the stale ones.
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

    /// The first number of a place that is not known.
    fn next(&self) -> usize {
        self.floor.filter(|(_, at)| at.elapsed() < STALE).map_or(1, |(next, _)| next)
    }
}

/// Reads a message that is a number and nothing else.
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

    /// Returns the meaning of typed text: words, or a press.
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
    fn a_number_means_what_was_listed_last_and_only_once() {
        let numbered = NumberedChoices::default();
        assert_eq!(numbered.list(&place("a"), &choices(&["/retry", "/stop"])), Some(1));
        let says = |key: &str, text: &str| means(&numbered, typed("a", key, text));
        for other in ["0", "3", "2 apples", "-1", "+1", "two", "", "99999999999999999999999", "١"] {
            assert_eq!(says("k", other), other);
        }
        assert_eq!(means(&numbered, typed("b", "k", "1")), "1");
        assert_eq!(says("k", " 2. "), "/stop");
        assert_eq!(says("k", " 2. "), "/stop", "the same event that comes again");
        assert_eq!(says("l", "1"), "1");
        numbered.list(&place("a"), &choices(&["/retry"]));
        numbered.listed_by(&place("a"), "m");
        let pressed = numbered.resolve(typed("a", "k", "1"));
        assert_eq!(
            (pressed.kind, pressed.message.as_str()),
            (InboundKind::Press { action: "/retry".into() }, "m"),
            "below a message that is there it is the press"
        );
        numbered.list(&place("a"), &choices(&["/retry"]));
        numbered.list(&place("a"), &[]);
        assert_eq!(says("k", "1"), "1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_answered_by_its_own_numbers_until_it_is_over() {
        let numbered = Arc::new(NumberedChoices::default());
        let says = |text: &str| means(&numbered, typed("a", "k", text));
        let first = numbered.ask(&place("a"), 0, actions("A"));
        assert_eq!(
            (first.first, says("1"), says("2")),
            (1, "press /approve A".into(), "press /deny A".into())
        );
        assert_eq!(says("1"), "press /approve A", "whoever may not has not used it up");
        assert_eq!(numbered.list(&place("a"), &choices(&["/retry"])), None, "its numbers are not mistaken");
        let other = numbered.ask(&place("a"), 0, actions("B"));
        assert_eq!((says("1"), says("3")), ("press /approve A".into(), "press /approve B".into()));
        drop(first);
        assert_eq!((says("1"), says("4")), ("1".into(), "press /deny B".into()));
        drop(other);
        let next = numbered.ask(&place("a"), 0, actions("C"));
        assert_eq!((next.first, says("1"), says("3")), (5, "1".into(), "3".into()));
        drop(next);
        tokio::time::advance(STALE).await;
        assert_eq!(numbered.ask(&place("a"), 0, actions("D")).first, 1);
        assert_eq!(numbered.ask(&place("b"), 7, actions("E")).first, 7, "as its reply remembers");
    }

    #[test]
    fn what_is_asked_after_a_list_has_other_numbers() {
        let numbered = Arc::new(NumberedChoices::default());
        numbered.list(&place("a"), &choices(&["/retry", "/new"]));
        let asked = numbered.ask(&place("a"), 0, actions("A"));
        assert_eq!((asked.first, means(&numbered, typed("a", "k", "1"))), (3, "1".into()));
    }

    #[test]
    fn a_restart_keeps_the_numbers_unless_they_mean_something_else_by_then() {
        let numbered = Arc::new(NumberedChoices::default());
        let kept = numbered.renew(&place("a"), 3, actions("A"));
        assert_eq!(means(&numbered, typed("a", "k", "4")), "press /deny A");
        assert!(numbered.renew(&place("a"), 4, actions("B")).is_none());
        assert!(numbered.renew(&place("a"), 2, actions("B")).is_none());
        assert!(numbered.renew(&place("a"), 1, actions("B")).is_some());
        assert_eq!(
            (kept.map(|kept| kept.first), numbered.ask(&place("a"), 0, actions("C")).first),
            (Some(3), 5)
        );
    }

    #[test]
    fn only_a_number_alone_that_is_meant_for_the_bot_is_an_answer() {
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

    /// A number that is typed late must not decide another question, however many chats there are.
    #[tokio::test(start_paused = true)]
    async fn a_place_that_was_forgotten_does_not_count_from_the_beginning() {
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
    fn what_is_remembered_is_bounded_and_no_question_is_forgotten() {
        let numbered = Arc::new(NumberedChoices::default());
        let asked = numbered.ask(&place("a"), 0, actions("A"));
        for n in 0..5000 {
            numbered.list(&place(&n.to_string()), &choices(&["/x"]));
        }
        assert!(numbered.places().kept.len() <= MAX_TRACKED_CHATS);
        assert_eq!(means(&numbered, typed("a", "k", "1")), "press /approve A");
        drop(asked);
    }
}
