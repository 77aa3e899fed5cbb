//! Following a room: the transcript first, then every change. A reader that falls behind gets the transcript
//! again, so that its copy is right in any case.

use super::{LocalChannel, LocalRoom, TranscriptLine, TranscriptReader};
use crate::bus::STORE_TIMEOUT;
use futures_util::{Stream, stream};
use pudu_client::{Client, store::Db};
use std::sync::Arc;
use tokio::sync::broadcast::error::RecvError;

/// Change of a transcript, as a reader receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptChange {
    /// The whole transcript: it replaces the known one.
    Transcript(Vec<TranscriptLine>),
    /// A line that is new or has changed.
    Line(TranscriptLine),
}

impl LocalChannel {
    /// Follows a chat. A new room begins with the messages of its thread.
    pub async fn follow(
        &self,
        chat: &str,
        db: &Db,
        client: &Client,
    ) -> impl Stream<Item = TranscriptChange> + use<> {
        let room = self.room(chat);
        if room.needs_past() {
            past(chat, &room, db, client).await;
        }
        stream::unfold((room, None), |(room, reading)| async move {
            let (change, reading) = next(&room, reading).await?;
            Some((change, (room, Some(reading))))
        })
    }
}

async fn past(chat: &str, room: &LocalRoom, db: &Db, client: &Client) {
    let known = db.within(STORE_TIMEOUT).conversation(&LocalChannel::conversation(chat)).await.ok().flatten();
    if let Some(known) = known
        && let Ok(state) = client.state(&known.thread).await
    {
        let title = db.within(STORE_TIMEOUT).title(&known.thread).await.ok().flatten();
        room.remember(&state, title);
    }
}

async fn next(
    room: &Arc<LocalRoom>,
    reading: Option<TranscriptReader>,
) -> Option<(TranscriptChange, TranscriptReader)> {
    let Some(mut reading) = reading else { return Some(afresh(room)) };
    match reading.changes.recv().await {
        Ok(line) => Some((TranscriptChange::Line(line), reading)),
        Err(RecvError::Lagged(_)) => Some(afresh(room)),
        Err(RecvError::Closed) => None,
    }
}

fn afresh(room: &LocalRoom) -> (TranscriptChange, TranscriptReader) {
    let mut reading = room.follow();
    (TranscriptChange::Transcript(std::mem::take(&mut reading.lines)), reading)
}
