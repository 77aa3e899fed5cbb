//! The protocol over a child's pipes, with one message per line in both directions.

use crate::{
    lines::{LineReader, MAX_MESSAGE_BYTES, OutputLine},
    message::{MessageReader, PendingRequests},
    server::ServerLabel,
};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use std::{collections::VecDeque, io};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::task::AbortOnDropHandle;

/// Maximum number of queued messages that the child has not read. Further messages wait for a slot in the queue.
const MAX_QUEUED: usize = 16;

/// Exchanges messages with a child process.
pub(crate) struct ServerPipe<R> {
    lines: LineReader<R>,
    reader: MessageReader,
    pending: PendingRequests,
    ready: VecDeque<ServerJsonRpcMessage>,
    /// Lines so far of a message that the server prints on several lines.
    spread: Option<Vec<u8>>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    writing: AbortOnDropHandle<()>,
    server: ServerLabel,
    /// Number of lines that were not messages.
    noise: u64,
}

impl<R: AsyncRead + Send + Unpin> ServerPipe<R> {
    pub(crate) fn new(
        stdout: R,
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        server: ServerLabel,
    ) -> Self {
        let pending = PendingRequests::default();
        let (outgoing, queued) = mpsc::channel(MAX_QUEUED);
        Self {
            lines: LineReader::new(stdout),
            reader: MessageReader::shared(pending.clone()),
            pending,
            ready: VecDeque::new(),
            spread: None,
            outgoing: Some(outgoing),
            // A separate task writes each message completely, even if the future that sends it is dropped.
            writing: AbortOnDropHandle::new(tokio::spawn(write(queued, stdin))),
            server,
            noise: 0,
        }
    }

    fn on_line(&mut self, line: OutputLine) {
        let messages = match line {
            OutputLine::Whole(line) => self.take_whole(&line),
            OutputLine::Oversized { head, tail } => {
                self.spread = None;
                self.reader.read_oversized(&head, &tail, MAX_MESSAGE_BYTES)
            }
        };
        self.ready.extend(messages);
    }

    fn take_whole(&mut self, line: &[u8]) -> Vec<ServerJsonRpcMessage> {
        let text = line.trim_ascii_end();
        if text.is_empty() {
            return Vec::new();
        }
        if let Some(mut spread) = self.spread.take() {
            spread.extend_from_slice(text);
            spread.push(b'\n');
            let is_end = matches!(text, b"}" | b"]");
            let is_another = text.starts_with(b"{\"");
            if is_end {
                return self.reader.read(&spread);
            }
            if !is_another && spread.len() <= MAX_MESSAGE_BYTES {
                self.spread = Some(spread);
                return Vec::new();
            }
        }
        if matches!(text, b"{" | b"[") {
            self.spread = Some(text.to_vec());
            return Vec::new();
        }
        let messages = self.reader.read(text);
        if messages.is_empty() {
            self.note_noise(text);
        }
        messages
    }

    fn note_noise(&mut self, line: &[u8]) {
        self.noise += 1;
        if self.noise == 1 {
            tracing::info!(
                server = self.server.name(),
                "MCP server writes text that is not a message (see debug)"
            );
        }
        let text = self.server.hide_and_cut(&String::from_utf8_lossy(line));
        tracing::debug!(
            server = self.server.name(),
            lines = self.noise,
            "passed over line of MCP server: {text}"
        );
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for ServerPipe<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.pending.note_sent(&message);
        let outgoing = self.outgoing.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let gone = || io::Error::from(io::ErrorKind::NotConnected);
            outgoing.ok_or_else(gone)?.send(line).await.map_err(|_| gone())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            match self.lines.next().await {
                Ok(Some(line)) => self.on_line(line),
                Ok(None) => return None,
                Err(error) => {
                    tracing::warn!(server = self.server.name(), %error, "failed to read from MCP server");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outgoing = None;
        // Completes when everything has been written, which closes the child's input.
        (&mut self.writing).await.ok();
        Ok(())
    }
}

async fn write(mut queued: mpsc::Receiver<Vec<u8>>, mut stdin: impl AsyncWrite + Unpin) {
    while let Some(line) = queued.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}
