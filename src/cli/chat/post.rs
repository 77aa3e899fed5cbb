//! Sends a person's actions in order, one letter at a time. A failed letter is sent again with its key, so that it is
//! neither lost nor duplicated.

use super::{
    api::backoff,
    wire::{Act, ChatWire, Letter, Unsent},
};
use pudu_base::MessageId;
use pudu_channels::BoxFuture;
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// Maximum number of messages that wait to be sent.
const MAX_PENDING_MESSAGES: usize = 64;

/// The letters to send.
pub(super) struct PendingPosts {
    wire: Arc<dyn ChatWire>,
    waiting: VecDeque<Letter>,
    underway: Option<BoxFuture<'static, (Letter, Result<(), Unsent>)>>,
    /// Number of consecutive failures of the current letter.
    failures: u32,
}

/// Result of sending a letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PostReport {
    /// It was stored.
    Taken,
    /// The first attempt failed; further ones follow.
    Delayed(String),
    /// It was refused, and is given back.
    Refused(Act, String),
}

impl PendingPosts {
    pub(super) fn new(wire: Arc<dyn ChatWire>) -> Self {
        Self { wire, waiting: VecDeque::new(), underway: None, failures: 0 }
    }

    /// Queues a person's action. Returns it if the queue is full.
    pub(super) fn take(&mut self, act: Act) -> Result<(), Act> {
        if self.waiting.len() >= MAX_PENDING_MESSAGES {
            return Err(act);
        }
        let key = MessageId::fresh().to_string();
        self.waiting.push_back(Letter { key, is_repeated: false, act });
        Ok(())
    }

    /// Sends letters until there is something to report. Pending if there is nothing to send. Cancel-safe.
    pub(super) async fn next(&mut self) -> PostReport {
        loop {
            if self.underway.is_none() {
                match self.waiting.pop_front() {
                    Some(letter) => self.dispatch(letter, Duration::ZERO),
                    None => return std::future::pending().await,
                }
            }
            let Some(underway) = &mut self.underway else { continue };
            let (letter, result) = underway.await;
            self.underway = None;
            if let Some(report) = self.judge(letter, result) {
                return report;
            }
        }
    }

    fn judge(&mut self, letter: Letter, result: Result<(), Unsent>) -> Option<PostReport> {
        match result {
            Ok(()) => {
                self.failures = 0;
                Some(PostReport::Taken)
            }
            Err(Unsent::Refused(reason)) => {
                self.failures = 0;
                Some(PostReport::Refused(letter.act, reason))
            }
            Err(Unsent::Later { reason, after }) => {
                self.failures += 1;
                let again = Letter { is_repeated: true, ..letter };
                self.dispatch(again, after.unwrap_or_default().max(backoff(self.failures)));
                (self.failures == 1).then_some(PostReport::Delayed(reason))
            }
        }
    }

    fn dispatch(&mut self, letter: Letter, wait: Duration) {
        let wire = self.wire.clone();
        self.underway = Some(Box::pin(async move {
            tokio::time::sleep(wait).await;
            let result = wire.send(&letter).await;
            (letter, result)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::chat::wire::{ChatNews, CommandEntry};
    use futures_util::stream::{self, BoxStream, StreamExt};
    use std::sync::Mutex;

    /// A wire with prepared answers that records the sent letters.
    struct FakeWire {
        answers: Mutex<VecDeque<Result<(), Unsent>>>,
        sent: Mutex<Vec<Letter>>,
    }

    impl ChatWire for FakeWire {
        fn follow(&self) -> BoxStream<'static, ChatNews> {
            stream::pending().boxed()
        }

        fn send<'a>(&'a self, letter: &'a Letter) -> BoxFuture<'a, Result<(), Unsent>> {
            self.sent.lock().unwrap().push(letter.clone());
            Box::pin(std::future::ready(self.answers.lock().unwrap().pop_front().unwrap()))
        }

        fn commands<'a>(&'a self) -> BoxFuture<'a, Vec<CommandEntry>> {
            Box::pin(std::future::ready(Vec::new()))
        }
    }

    fn say(text: &str) -> Act {
        Act::Say(text.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_letter_is_sent_with_its_key_until_it_is_taken_and_the_next_waits() {
        let later = || Err(Unsent::Later { reason: "gone".into(), after: None });
        let fake = Arc::new(FakeWire {
            answers: Mutex::new([later(), later(), Ok(()), Ok(())].into()),
            sent: Mutex::default(),
        });
        let mut post = PendingPosts::new(fake.clone());
        post.take(say("one")).unwrap();
        post.take(say("two")).unwrap();
        assert_eq!(post.next().await, PostReport::Delayed("gone".into()));
        assert_eq!(post.next().await, PostReport::Taken);
        assert_eq!(post.next().await, PostReport::Taken);
        let sent = fake.sent.lock().unwrap().clone();
        let acts: Vec<Act> = sent.iter().map(|letter| letter.act.clone()).collect();
        assert_eq!(acts, [say("one"), say("one"), say("one"), say("two")]);
        assert!(sent[0].key == sent[1].key && sent[1] == sent[2] && sent[2].key != sent[3].key, "{sent:?}");
        assert_eq!([0, 1, 3].map(|at| sent[at].is_repeated), [false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_letter_comes_back() {
        let refused = Err(Unsent::Refused("too long".into()));
        let fake = Arc::new(FakeWire { answers: Mutex::new([refused].into()), sent: Mutex::default() });
        let mut post = PendingPosts::new(fake);
        post.take(say("one")).unwrap();
        assert_eq!(post.next().await, PostReport::Refused(say("one"), "too long".into()));
    }

    #[test]
    fn only_so_much_waits() {
        let fake = Arc::new(FakeWire { answers: Mutex::default(), sent: Mutex::default() });
        let mut post = PendingPosts::new(fake);
        for _ in 0..MAX_PENDING_MESSAGES {
            post.take(say("x")).unwrap();
        }
        assert_eq!(post.take(say("y")), Err(say("y")));
    }
}
