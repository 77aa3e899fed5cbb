//! The built-in bot of the page, the terminal and the HTTP API. Its rules apply to slash commands on threads.
//!
//! Deliberately absent: a chat. Answers are read from the threads, so nothing is received or sent here.

mod inline;

pub use inline::download as write_inline;

use crate::Shared;
use pudu_channels::{
    Address, Attachment, BoxFuture, Channel, ChannelError, ChannelLimits, Check, EventSink, FinalView,
    Health, HealthCell, LiveReply, ReplyStore, ReplyTarget, ReplyView, SendError,
};
use pudu_texts::Language;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The bot's name, which no configured bot can have.
pub use pudu_config::LOCAL as ACCOUNT;

/// Returns the language of the page and the terminal: the configured one, or else the person's.
pub fn language(shared: &Shared, person: Option<Language>) -> Language {
    let configured = shared.accounts.get(ACCOUNT).and_then(|account| account.policy().language);
    configured.or(person).unwrap_or_default()
}

/// The channel of the built-in bot.
pub struct LocalChannel {
    health: HealthCell,
}

impl Default for LocalChannel {
    fn default() -> Self {
        let health = HealthCell::default();
        health.ready();
        Self { health }
    }
}

impl Channel for LocalChannel {
    fn account(&self) -> &str {
        ACCOUNT
    }

    fn platform(&self) -> &'static str {
        ACCOUNT
    }

    fn check<'a>(&'a self) -> BoxFuture<'a, Vec<Check>> {
        // Nothing has to be configured.
        Box::pin(async { Vec::new() })
    }

    fn limits(&self) -> ChannelLimits {
        ChannelLimits { download: u64::MAX, upload: u64::MAX, threads: false, form_fields: 0 }
    }

    fn health(&self) -> Health {
        self.health.get()
    }

    fn listen<'a>(
        &'a self,
        _sink: &'a dyn EventSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            stop.cancelled().await;
            Ok(())
        })
    }

    /// Opens a reply to a turn that an older version left behind. People read its answer on the thread.
    fn open_reply(&self, _target: ReplyTarget, _store: Box<dyn ReplyStore>) -> Box<dyn LiveReply> {
        Box::new(UnsentReply)
    }

    fn acknowledge<'a>(
        &'a self,
        _address: &'a Address,
        _message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        to: &'a Path,
        limit: u64,
    ) -> BoxFuture<'a, Result<u64, SendError>> {
        Box::pin(inline::download(attachment, to, limit))
    }
}

struct UnsentReply;

impl LiveReply for UnsentReply {
    fn ready<'a>(&'a mut self) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn update<'a>(&'a mut self, _view: &'a ReplyView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish<'a>(&'a mut self, _view: &'a FinalView) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
