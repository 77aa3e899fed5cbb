//! A connection to a server that can be cut, silenced and restored while a client works.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Timeout of everything that a test waits for.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// Size of a chunk, in bytes.
const BUFFER_BYTES: usize = 16 * 1024;

/// State of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Bytes are forwarded.
    Up,
    /// Existing and new connections are closed.
    Cut,
    /// Connections stay open, but no byte arrives: as if the server had vanished.
    Silent,
}

/// How a connection breaks at a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// The server receives the message, its answer is lost, and the connection is closed.
    AnswerLost,
    /// The answer arrives, and nothing after it, as if the server had vanished.
    SilentAfterAnswer,
}

/// Forwards bytes to a server, or not. A silent connection stays silent.
pub struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Text at which a connection breaks.
    breaks: Mutex<Option<(Vec<u8>, Break)>>,
    /// Total number of connections.
    connections: AtomicUsize,
    /// Number of open connections.
    open: AtomicUsize,
    /// Number of silent connections.
    silent: AtomicUsize,
    /// Number of bytes from clients that were dropped.
    swallowed: AtomicUsize,
}

impl Proxy {
    /// Listens on loopback, for a server.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn to(host: &str, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (line, lines) = watch::channel(Line::Up);
        let counts = Arc::new(Counts::default());
        tokio::spawn(accept(listener, (host.to_owned(), port), lines, counts.clone()));
        Ok(Self { address, line, counts })
    }

    /// Returns its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes all connections, and new ones until it is restored.
    pub async fn cut(&self) {
        self.line.send_replace(Line::Cut);
        until(|| self.counts.open.load(Ordering::SeqCst) == 0).await;
    }

    /// Silences the server on all connections, and on new ones until it is restored.
    pub async fn silence(&self) {
        self.line.send_replace(Line::Silent);
        until(|| self.counts.silent.load(Ordering::SeqCst) == self.counts.open.load(Ordering::SeqCst)).await;
    }

    /// Breaks the connection on which a client next sends a text.
    pub fn break_at(&self, words: &str, how: Break) {
        *self.counts.breaks() = Some((words.as_bytes().to_vec(), how));
    }

    /// Returns whether a break is still pending.
    #[must_use]
    pub fn has_to_break(&self) -> bool {
        self.counts.breaks().is_some()
    }

    /// Lets new connections work.
    pub fn mend(&self) {
        self.line.send_replace(Line::Up);
    }

    /// Waits for this number of new connections.
    pub async fn comers(&self, count: usize) {
        let goal = self.counts.connections.load(Ordering::SeqCst) + count;
        until(|| self.counts.connections.load(Ordering::SeqCst) >= goal).await;
    }

    /// Waits until a client has sent bytes to a silent server.
    pub async fn swallows(&self) {
        let before = self.counts.swallowed.load(Ordering::SeqCst);
        until(|| self.counts.swallowed.load(Ordering::SeqCst) > before).await;
    }
}

impl Counts {
    fn breaks(&self) -> MutexGuard<'_, Option<(Vec<u8>, Break)>> {
        self.breaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the connection breaks at this message.
    fn breaks_at(&self, sent: &[u8]) -> Option<Break> {
        let found =
            |(words, _): &mut (Vec<u8>, Break)| sent.windows(words.len()).any(|window| window == words);
        self.breaks().take_if(found).map(|(_, how)| how)
    }
}

async fn accept(
    listener: TcpListener,
    server: (String, u16),
    lines: watch::Receiver<Line>,
    counts: Arc<Counts>,
) {
    while let Ok((client, _)) = listener.accept().await {
        counts.connections.fetch_add(1, Ordering::SeqCst);
        let (server, mut lines, counts) = (server.clone(), lines.clone(), counts.clone());
        tokio::spawn(async move {
            counts.open.fetch_add(1, Ordering::SeqCst);
            let mut cuts = lines.clone();
            let silent = Silent(&counts, AtomicBool::new(false));
            tokio::select! {
                biased;
                _ = cuts.wait_for(|line| *line == Line::Cut) => {}
                () = pass(client, server, &mut lines, &silent) => {}
            }
            drop(silent);
            counts.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn pass(
    mut client: TcpStream,
    (host, port): (String, u16),
    lines: &mut watch::Receiver<Line>,
    silent: &Silent<'_>,
) {
    let counts = silent.0;
    // It stays open until the client disconnects: a vanished server closes nothing.
    let mut kept = None;
    tokio::select! {
        biased;
        _ = lines.wait_for(|line| *line == Line::Silent) => {}
        () = async {
            let Ok(server) = TcpStream::connect((host.as_str(), port)).await else { return };
            if !exchange(&mut client, kept.insert(server), counts).await.is_ok_and(|end| end == End::Silence) {
                kept = None;
            }
        } => if kept.is_none() { return },
    }
    silent.begin();
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = client.read(&mut bytes).await {
        counts.swallowed.fetch_add(count, Ordering::SeqCst);
    }
}

/// Counts a silent connection while it is open.
struct Silent<'a>(&'a Counts, AtomicBool);

impl Silent<'_> {
    fn begin(&self) {
        self.1.store(true, Ordering::SeqCst);
        self.0.silent.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        if self.1.load(Ordering::SeqCst) {
            self.0.silent.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// How an exchange ended.
#[derive(PartialEq, Eq)]
enum End {
    Closed,
    Silence,
}

/// Forwards bytes until one side closes, or the connection breaks.
async fn exchange(client: &mut TcpStream, server: &mut TcpStream, counts: &Counts) -> io::Result<End> {
    let (mut asked, mut answered) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let sent = asked.get(..read?).filter(|sent| !sent.is_empty());
                let Some(sent) = sent else { return server.shutdown().await.map(|()| End::Closed) };
                server.write_all(sent).await?;
                let Some(how) = counts.breaks_at(sent) else { continue };
                let read = server.read(&mut answered).await?;
                if how == Break::AnswerLost {
                    return Ok(End::Closed);
                }
                client.write_all(answered.get(..read).unwrap_or_default()).await?;
                return Ok(End::Silence);
            }
            read = server.read(&mut answered) => {
                let got = answered.get(..read?).filter(|got| !got.is_empty());
                let Some(got) = got else { return Ok(End::Closed) };
                client.write_all(got).await?;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a socket is waited for, whatever the clock of the test does")]
async fn until(done: impl Fn() -> bool) {
    let late = std::time::Instant::now() + WAIT_TIMEOUT;
    while !done() {
        assert!(std::time::Instant::now() < late, "it did not come to that");
        std::thread::sleep(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
}
