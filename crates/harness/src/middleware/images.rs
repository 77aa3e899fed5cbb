//! Images that people sent and that the agent asked to see, for models that can see.
//!
//! The thread keeps their paths only. A request carries those that came since the model answered last: then it has said
//! what it saw, and images are dear. While a model is asked, they count as memory of the run.

use super::Middleware;
use crate::{Agent, Memory, RunState, memory::ReservedMemory};
use pudu_base::{
    Assistant, BoxFuture, Image, Message, ModelImage, Request, RunFailure, Sandbox, SharedFile, image_kind,
};
use std::sync::Arc;

/// An image is no larger, in bytes.
const MAX_IMAGE_BYTES: u64 = 20 << 20;
/// An image that a person sent is no larger, in bytes: Anthropic takes 5 MB in base64. The agent can ask to see others.
const MAX_SENT_BYTES: u64 = 3_750_000;
/// A request carries no more of them, in bytes.
const MAX_REQUEST_BYTES: u64 = 40 << 20;

/// Puts images into requests.
pub struct Images {
    sandbox: Arc<dyn Sandbox>,
    sees: bool,
    memory: Memory,
    /// The room of the images of the request that the model works on.
    held: Option<ReservedMemory>,
}

impl Images {
    /// For this agent, whose model may be blind.
    #[must_use]
    pub fn new(agent: &Agent) -> Self {
        let memory = agent.memory.clone();
        Self { sandbox: agent.sandbox.clone(), sees: agent.model.supports_vision(), memory, held: None }
    }

    /// Returns the images that fit into a request, with their sizes in bytes.
    async fn fitting(&self, wanted: Vec<Image>) -> Vec<(Image, u64)> {
        let (mut fitting, mut room) = (Vec::new(), MAX_REQUEST_BYTES);
        for image in wanted {
            // One that is gone by now, or too large, is not worth failing for: the model was told its name.
            let Ok(size @ ..=MAX_IMAGE_BYTES) = self.sandbox.measure(&image.path).await else { continue };
            if let Some(left) = room.checked_sub(size) {
                room = left;
                fitting.push((image, size));
            }
        }
        fitting
    }
}

impl Middleware for Images {
    fn name(&self) -> &'static str {
        "images"
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        Box::pin(async move {
            // What an earlier request held is given back before more is waited for.
            self.held = None;
            let wanted = if self.sees { newest(run_state) } else { Vec::new() };
            let fitting = self.fitting(wanted).await;
            if fitting.is_empty() {
                return Ok(());
            }
            self.held = Some(self.memory.hold_images(fitting.iter().map(|(_, size)| size).sum()).await);
            for (image, size) in fitting {
                let Ok(bytes) = self.sandbox.read(&image.path, size).await else { continue };
                // A name can say anything, and a provider refuses all for one that is none.
                let Some(mime) = image_kind(&bytes) else { continue };
                let image = Image { mime: mime.to_owned(), ..image };
                request.images.push(ModelImage { image, bytes: bytes.into() });
            }
            Ok(())
        })
    }

    fn after_model(&mut self, _: &mut RunState, _: &mut Assistant) {
        self.held = None;
    }
}

/// Returns the images that came since the model answered last, oldest first: those of results, and those that people
/// sent.
fn newest(run_state: &RunState) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    for message in run_state.state().messages.values().rev() {
        match &**message {
            Message::Tool(result) => images.extend(result.image.clone()),
            Message::Human(human) => images.extend(human.files.iter().rev().filter_map(sent)),
            Message::Reminder(_) => {}
            Message::Assistant(_) => break,
        }
    }
    images.reverse();
    images
}

/// Returns a file as an image, if its name says that it is one and every provider takes its size.
fn sent(file: &SharedFile) -> Option<Image> {
    let (_, kind) = file.path.rsplit_once('.')?;
    let mime = match kind.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        _ => return None,
    };
    (file.size <= MAX_SENT_BYTES).then(|| Image { path: file.path.clone(), mime: mime.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Replay,
        fixture::{Bench, SizedFiles, assistant},
    };
    use pudu_base::{Human, ThreadState, ToolResult, Update};
    use tokio::time::{Duration, timeout};

    /// A turn in which the agent has seen an image of 20 MiB.
    fn run_state() -> RunState {
        let image = Image { path: "20".into(), mime: "image/png".into() };
        let text = String::new();
        let result = ToolResult {
            id: "m".into(),
            call: "c".into(),
            tool: "view_image".into(),
            text,
            error: false,
            question: None,
            image: Some(image),
            decision: None,
            decisions: Vec::new(),
        };
        let shown = Update::Message(Arc::new(Message::Tool(result)));
        RunState::new("t".into(), "r".into(), 1, ThreadState::fold([shown]), Arc::new(Replay::default()))
    }

    #[test]
    fn what_people_send_is_seen_with_their_words_and_not_again() {
        let file = |path: &str, size| SharedFile { name: "n".into(), path: path.into(), size, reading: None };
        let files = vec![
            file("/a.PNG", 9),
            file("/b.csv", 9),
            file("/c.jpg", MAX_SENT_BYTES + 1),
            file("/d.webp", 9),
        ];
        let human = Human { files, ..Human::new("h", "what is this?") };
        let asked = Update::Message(Arc::new(Message::Human(human)));
        let seen = |updates: Vec<Update>| {
            let replay = Arc::new(Replay::default());
            let state = RunState::new("t".into(), "r".into(), 1, ThreadState::fold(updates), replay);
            newest(&state)
                .into_iter()
                .map(|image| format!("{} {}", image.path, image.mime))
                .collect::<Vec<_>>()
        };
        assert_eq!(seen(vec![asked.clone()]), ["/a.PNG image/png", "/d.webp image/webp"]);
        assert_eq!(seen(vec![asked, assistant(Vec::new())]), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn runs_whose_images_have_no_room_wait_until_a_model_has_answered() {
        let mut bench = Bench::new(Vec::new());
        bench.agent.sandbox = Arc::new(SizedFiles::default());
        let run =
            |_| Images { sees: true, memory: bench.agent.memory.for_run(), ..Images::new(&bench.agent) };
        let mut runs: Vec<Images> = (0..4).map(run).collect();
        let shown = async |images: &mut Images| {
            let (mut run_state, mut request) = (run_state(), Request::default());
            let asked = images.before_model(&mut run_state, &mut request);
            timeout(Duration::from_secs(1), asked).await.is_ok_and(|asked| asked.is_ok())
        };
        for (run, expect) in [(0, true), (1, true), (2, true), (3, false), (0, true), (3, false)] {
            assert_eq!(shown(&mut runs[run]).await, expect, "run {run}");
        }
        let Update::Message(reply) = assistant(Vec::new()) else { unreachable!() };
        let Message::Assistant(mut reply) = Arc::unwrap_or_clone(reply) else { unreachable!() };
        runs[1].after_model(&mut run_state(), &mut reply);
        assert!(shown(&mut runs[3]).await);
    }
}
