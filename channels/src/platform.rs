//! One bot on a platform: the root of each platform's folder implements [`PlatformAccount`], and thereby [`Channel`].

use crate::{
    Address, Attachment, BoxFuture, Channel, ChannelError, ChannelLimits, Check, EventSink, Health,
    HealthCell, Inbound, LiveReply, PointedAt, RecentMessages, ReplyStore, ReplyTarget, SendError, Webhook,
    reply::{Capabilities, PlatformMessages, PlatformReply},
    transport::check_size,
};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use tokio_util::sync::CancellationToken;
use url::Url;

/// A bot on a platform. Like [`Channel`], but without boxed futures.
pub(crate) trait PlatformAccount: Send + Sync + 'static {
    /// The platform's name, as in a bot's `type:` setting.
    const TYPE: &'static str;
    /// Capabilities of replies and limits of files.
    const CAPABILITIES: Capabilities;

    /// Returns the bot's name and the state of its connection.
    fn bot(&self) -> (&str, &HealthCell);

    /// Returns whether each question in a chat begins a topic: see [`ChannelLimits::threads`].
    fn threads(&self) -> bool {
        false
    }

    /// Receives events until `stop`: see [`Channel::listen`].
    fn run(
        &self,
        sink: &dyn EventSink,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), ChannelError>> + Send;

    /// Returns the webhook, if the platform delivers events by HTTP.
    fn webhook(&self) -> Option<Arc<dyn Webhook>> {
        None
    }

    /// Returns a link that opens the platform and sends a code to the bot.
    fn connect_link(&self, _code: &str) -> Option<String> {
        None
    }

    /// Checks the bot's requirements for `pudu doctor`. Changes nothing on the platform.
    fn doctor(&self) -> impl Future<Output = Vec<Check>> + Send;

    /// Returns the messages of one reply.
    fn messages(&self, target: &ReplyTarget) -> impl PlatformMessages;

    /// Returns the target of a second reply to the same event: see [`Channel::second_target`].
    fn second_target(&self, target: &ReplyTarget) -> ReplyTarget {
        ReplyTarget { saved: None, ..target.clone() }
    }

    /// Returns the part of a hint that a later message needs: see [`Channel::lasting_hint`].
    fn lasting_hint(&self, hint: &Value) -> Option<Value> {
        Some(hint.clone())
    }

    /// Shows the sender that a message was seen and is queued, if the platform supports that.
    fn acknowledge(
        &self,
        address: &Address,
        message: &str,
    ) -> impl Future<Output = Result<(), SendError>> + Send;

    /// Deletes a user's message in a private chat: see [`Channel::forget`].
    fn forget(
        &self,
        _address: &Address,
        _message: &str,
    ) -> impl Future<Output = Result<bool, SendError>> + Send {
        std::future::ready(Ok(false))
    }

    /// Reads content that a message refers to: see [`Channel::look_up`]. On a platform that does not let bots read
    /// messages by id, only events provide content.
    fn look_up(
        &self,
        _inbound: &Inbound,
        _pointed: &PointedAt,
    ) -> impl Future<Output = Result<Vec<PointedAt>, SendError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Reads recent messages of a chat or thread: see [`Channel::recent`].
    fn recent(
        &self,
        _inbound: &Inbound,
        _wanted: RecentMessages<'_>,
    ) -> impl Future<Output = Result<Vec<PointedAt>, SendError>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// Downloads a file of at most `limit` bytes to `to`: see [`Channel::download`]. The size declared by the message
    /// is already checked.
    fn download(
        &self,
        attachment: &Attachment,
        to: &Path,
        limit: u64,
    ) -> impl Future<Output = Result<u64, SendError>> + Send;
}

impl<P: PlatformAccount> Channel for P {
    fn account(&self) -> &str {
        self.bot().0
    }

    fn platform(&self) -> &'static str {
        P::TYPE
    }

    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            download: P::CAPABILITIES.max_download_bytes,
            upload: P::CAPABILITIES.max_upload_bytes,
            threads: self.threads(),
            form_fields: P::CAPABILITIES.form_fields,
        }
    }

    fn health(&self) -> Health {
        self.bot().1.get()
    }

    fn listen<'a>(
        &'a self,
        sink: &'a dyn EventSink,
        stop: CancellationToken,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(self.run(sink, stop))
    }

    fn webhook(&self) -> Option<Arc<dyn Webhook>> {
        PlatformAccount::webhook(self)
    }

    fn connect_link(&self, code: &str) -> Option<String> {
        PlatformAccount::connect_link(self, code)
    }

    fn check<'a>(&'a self) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(self.doctor())
    }

    fn open_reply(&self, target: ReplyTarget, store: Box<dyn ReplyStore>) -> Box<dyn LiveReply> {
        Box::new(PlatformReply::open(self.messages(&target), &target, store))
    }

    fn second_target(&self, target: &ReplyTarget) -> ReplyTarget {
        PlatformAccount::second_target(self, target)
    }

    fn lasting_hint(&self, hint: &Value) -> Option<Value> {
        PlatformAccount::lasting_hint(self, hint)
    }

    fn acknowledge<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), SendError>> {
        Box::pin(PlatformAccount::acknowledge(self, address, message))
    }

    fn forget<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<bool, SendError>> {
        Box::pin(PlatformAccount::forget(self, address, message))
    }

    fn look_up<'a>(
        &'a self,
        inbound: &'a Inbound,
        pointed: &'a PointedAt,
    ) -> BoxFuture<'a, Result<Vec<PointedAt>, SendError>> {
        Box::pin(PlatformAccount::look_up(self, inbound, pointed))
    }

    fn recent<'a>(
        &'a self,
        inbound: &'a Inbound,
        wanted: RecentMessages<'a>,
    ) -> BoxFuture<'a, Result<Vec<PointedAt>, SendError>> {
        Box::pin(PlatformAccount::recent(self, inbound, wanted))
    }

    fn download<'a>(
        &'a self,
        attachment: &'a Attachment,
        to: &'a Path,
        limit: u64,
    ) -> BoxFuture<'a, Result<u64, SendError>> {
        let limit = limit.min(P::CAPABILITIES.max_download_bytes);
        Box::pin(async move {
            check_size(attachment.size, limit)?;
            PlatformAccount::download(self, attachment, to, limit).await
        })
    }
}

/// Fails if a base URL is not HTTP or HTTPS.
pub(crate) fn check_base_url(key: &str, url: &Url) -> Result<(), ChannelError> {
    match url.scheme() {
        "http" | "https" => Ok(()),
        _ => Err(ChannelError::Config(format!("{key} must begin with http:// or https://"))),
    }
}
