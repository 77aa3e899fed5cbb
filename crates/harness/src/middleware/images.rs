//! Images that users sent or that the agent asked for, for models with vision.
//!
//! The thread keeps only their paths. A request carries the images since the model's last answer: by then the model has
//! described them, and images are expensive. Reminders in the thread name the images that are not shown. During a model
//! call, images count towards the run's memory budget.

use super::Middleware;
use crate::{
    Memory, RunAgent, RunState,
    drawn::named_in,
    memory::ReservedMemory,
    scale::{MAX_SENT_BYTES, ScaledImage},
};
use pudu_base::{
    Assistant, BoxFuture, Image, Message, ModelImage, Request, RunFailure, Sandbox, SharedFile, foreign,
};
use std::sync::Arc;

/// Maximum size of an image file, in bytes.
const MAX_IMAGE_BYTES: u64 = 20 << 20;
/// Maximum length of a path in a note, in characters.
const MAX_NAMED_CHARS: usize = 300;
/// Maximum number of images in a request.
const MAX_IMAGES: usize = 20;
/// Maximum size of a request's images, in bytes: with base64 and everything else, the request stays below Google's 20
/// MB.
const MAX_REQUEST_BYTES: usize = 12 << 20;

/// Puts images into requests.
pub struct Images {
    sandbox: Arc<dyn Sandbox>,
    sees: bool,
    memory: Memory,
    /// Reserved memory of the images in the current request.
    held: Option<ReservedMemory>,
}

/// The images of a request while they are gathered, newest first.
#[derive(Default)]
struct ImageTray {
    shown: Vec<ModelImage>,
    bytes: usize,
    /// Notes for the model on images that are missing or shown in part.
    notes: Vec<String>,
}

impl ImageTray {
    fn is_full(&self) -> bool {
        self.shown.len() >= MAX_IMAGES || self.bytes + MAX_SENT_BYTES > MAX_REQUEST_BYTES
    }

    fn show(&mut self, Image { path, .. }: Image, ScaledImage { bytes, mime, cut }: ScaledImage) {
        if cut {
            self.notes.push(format!("{} is truncated: its missing part is grey.", named(&path)));
        }
        self.bytes += bytes.len();
        self.shown.push(ModelImage { image: Image { path, mime: mime.to_owned() }, bytes: bytes.into() });
    }
}

impl Images {
    /// Creates it for an agent, whose model may lack vision.
    #[must_use]
    pub fn new(agent: &RunAgent) -> Self {
        let memory = agent.memory.clone();
        Self { sandbox: agent.sandbox.clone(), sees: agent.model.supports_vision(), memory, held: None }
    }

    /// Reserves memory for images: for the largest file, or for all that a request carries.
    async fn hold(&mut self, wanted: &[Image]) {
        let (mut largest, mut all) = (0, 0_u64);
        for image in wanted {
            if let Ok(size @ ..=MAX_IMAGE_BYTES) = self.sandbox.measure(&image.path).await {
                (largest, all) = (size.max(largest), all.saturating_add(size));
            }
        }
        let bytes = all.min(MAX_REQUEST_BYTES as u64).max(largest);
        self.held = Some(self.memory.hold_images(bytes).await);
    }

    /// Reads and scales images, newest first. If there are too many, the oldest are omitted.
    async fn gather(&self, wanted: Vec<Image>) -> ImageTray {
        let mut tray = ImageTray::default();
        for image in wanted.into_iter().rev() {
            if tray.is_full() {
                tray.notes.push(format!(
                    "{} is not shown: there is not enough room for all images at once. View fewer at a time.",
                    named(&image.path)
                ));
                continue;
            }
            let scaled = match self.sandbox.read(&image.path, MAX_IMAGE_BYTES).await {
                Ok(bytes) => self.memory.scale(bytes).await.map_err(|problem| problem.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match scaled {
                Ok(scaled) => tray.show(image, scaled),
                Err(why) => {
                    tray.notes.push(format!("{} cannot be shown: {}.", named(&image.path), named(&why)))
                }
            }
        }
        tray
    }
}

/// Returns a path or an error as safe text for a reminder.
fn named(text: &str) -> String {
    foreign::line(text, MAX_NAMED_CHARS)
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
            // Releases the previous request's reservation before waiting for another.
            self.held = None;
            let wanted = if self.sees { newest(run_state) } else { Vec::new() };
            if wanted.is_empty() {
                return Ok(());
            }
            self.hold(&wanted).await;
            let tray = self.gather(wanted).await;
            request.images.extend(tray.shown.into_iter().rev());
            if !tray.notes.is_empty() {
                remind(run_state, request, tray.notes.join("\n"));
            }
            Ok(())
        })
    }

    fn after_model(&mut self, _: &mut RunState, _: &mut Assistant) {
        self.held = None;
    }
}

/// Reminds the model, unless the same reminder was added since its last answer.
fn remind(run_state: &mut RunState, request: &mut Request, text: String) {
    let is_same = |message: &Message| matches!(message, Message::Reminder(reminder) if reminder.text == text);
    let is_known =
        recent(run_state).take_while(|message| !matches!(message, Message::Assistant(_))).any(is_same);
    if !is_known {
        run_state.remind(request, text);
    }
}

/// Returns the messages, newest first, without failures, which are not answers of the model.
fn recent(run_state: &RunState) -> impl Iterator<Item = &Message> {
    let messages = run_state.state().messages.values().rev().map(|message| &**message);
    messages.filter(|message| !message.is_failure())
}

/// Returns the images since the model's last answer, oldest first: from results, from users, and from that answer
/// itself.
fn newest(run_state: &RunState) -> Vec<Image> {
    let mut images: Vec<Image> = Vec::new();
    for message in recent(run_state) {
        match message {
            Message::Tool(result) => images.extend(result.images.iter().rev().cloned()),
            Message::Human(human) => images.extend(human.files.iter().rev().filter_map(SharedFile::image)),
            Message::Reminder(_) => {}
            Message::Assistant(reply) => {
                images.extend(named_in(&reply.text).into_iter().rev());
                break;
            }
        }
    }
    images.reverse();
    images
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Replay,
        fixture::{Bench, SizedFiles, assistant},
    };
    use pudu_base::{
        DirEntry, Exec, Human, Outcome, SandboxError, ShellCommand, ThreadState, ToolResult, Update,
    };
    use tokio::time::{Duration, timeout};

    /// A turn with a tool that returned these images.
    fn run_state(paths: &[String]) -> RunState {
        let image = |path: &String| Image { path: path.clone(), mime: "image/png".into() };
        let result = ToolResult {
            id: "m".into(),
            call: "c".into(),
            tool: "view_image".into(),
            text: String::new(),
            error: false,
            question: None,
            images: paths.iter().map(image).collect(),
            decision: None,
            decisions: Vec::new(),
            task: None,
        };
        let shown = Update::Message(Arc::new(Message::Tool(result)));
        RunState::new("t".into(), "r".into(), 1, ThreadState::fold([shown]), Arc::new(Replay::default()))
    }

    #[test]
    fn sent_images_are_shown_with_their_message_and_only_once() {
        let file = |path: &str, size| SharedFile { name: "n".into(), path: path.into(), size, reading: None };
        let files =
            vec![file("/a.PNG", 9), file("/b.csv", 9), file("/c.jpg", MAX_IMAGE_BYTES), file("/d.webp", 9)];
        let human = Human { files, ..Human::new("h", "what is this?") };
        let message = Update::Message(Arc::new(Message::Human(human)));
        let seen = |updates: Vec<Update>| {
            let replay = Arc::new(Replay::default());
            let state = RunState::new("t".into(), "r".into(), 1, ThreadState::fold(updates), replay);
            newest(&state)
                .into_iter()
                .map(|image| format!("{} {}", image.path, image.mime))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            seen(vec![message.clone()]),
            ["/a.PNG image/png", "/c.jpg image/jpeg", "/d.webp image/webp"]
        );
        let Update::Message(failed) = assistant(Vec::new()) else { unreachable!() };
        let Message::Assistant(mut failed) = Arc::unwrap_or_clone(failed) else { unreachable!() };
        failed.failure = Some(Box::new(Outcome::Timeout));
        let failed = Update::Message(Arc::new(Message::Assistant(failed)));
        assert_eq!(seen(vec![message.clone(), failed]).len(), 3, "no model has seen them");
        assert_eq!(seen(vec![message, assistant(Vec::new())]), [""; 0]);
    }

    /// Noise images with the side length in their names; other files contain their name.
    struct NoisyFiles;

    impl Sandbox for NoisyFiles {
        fn exec<'a>(&'a self, _: &'a ShellCommand) -> BoxFuture<'a, Result<Exec, SandboxError>> {
            unreachable!()
        }
        fn read<'a>(&'a self, path: &'a str, _: u64) -> BoxFuture<'a, Result<Vec<u8>, SandboxError>> {
            let Ok(side) = path.parse::<u32>() else {
                return Box::pin(async { Ok(path.as_bytes().to_vec()) });
            };
            let noise = image::RgbImage::from_fn(side, side, |x, y| {
                image::Rgb([x, y, x ^ y].map(|value| (value.wrapping_mul(2_654_435_761) >> 24) as u8))
            });
            let mut png = std::io::Cursor::new(Vec::new());
            noise.write_to(&mut png, image::ImageFormat::Png).unwrap();
            Box::pin(async move { Ok(png.into_inner()) })
        }
        fn write<'a>(&'a self, _: &'a str, _: &'a [u8], _: bool) -> BoxFuture<'a, Result<(), SandboxError>> {
            unreachable!()
        }
        fn list<'a>(
            &'a self,
            _: &'a str,
            _: usize,
            _: usize,
        ) -> BoxFuture<'a, Result<Vec<DirEntry>, SandboxError>> {
            unreachable!()
        }
    }

    #[tokio::test]
    async fn only_the_newest_of_too_many_images_are_shown_and_the_others_are_named_once() {
        let mut bench = Bench::new(Vec::new());
        bench.agent.sandbox = Arc::new(NoisyFiles);
        let mut images = Images { sees: true, ..Images::new(&bench.agent) };
        let mut shown = async |paths: Vec<String>| {
            let mut run_state = run_state(&paths);
            let (mut request, mut again) = (Request::default(), Request::default());
            images.before_model(&mut run_state, &mut request).await.unwrap();
            images.before_model(&mut run_state, &mut again).await.unwrap();
            assert_eq!(
                (&again.images, again.messages.len()),
                (&request.images, 0),
                "the bytes are the same each time"
            );
            let note = request.messages.first().map(|first| first.text().to_owned()).unwrap_or_default();
            (request.images.iter().map(|shown| shown.image.path.clone()).collect::<Vec<_>>(), note)
        };
        let small: Vec<String> = (1..=22).map(|side| side.to_string()).collect();
        let (seen, note) = shown(small.clone()).await;
        assert_eq!(seen, small[2..]);
        assert!(
            note.contains("2 is not shown: there is not enough room") && note.contains("\n1 is not"),
            "{note}"
        );
        let (seen, note) = shown(vec!["<svg/>".into(), "8".into()]).await;
        assert_eq!(seen, ["8"]);
        assert_eq!(
            note,
            "<svg/> cannot be shown: it is not a PNG, JPEG, WebP or GIF image, whatever its name says."
        );
    }

    #[tokio::test(start_paused = true)]
    async fn runs_whose_images_have_no_room_wait_until_a_model_has_answered() {
        let mut bench = Bench::new(Vec::new());
        bench.agent.sandbox = Arc::new(SizedFiles::default());
        let run =
            |_| Images { sees: true, memory: bench.agent.memory.for_run(), ..Images::new(&bench.agent) };
        let mut runs: Vec<Images> = (0..4).map(run).collect();
        let shown = async |images: &mut Images| {
            let (mut run_state, mut request) = (run_state(&["20".to_owned()]), Request::default());
            let asked = images.before_model(&mut run_state, &mut request);
            timeout(Duration::from_secs(1), asked).await.is_ok_and(|asked| asked.is_ok())
        };
        for (run, expect) in [(0, true), (1, true), (2, true), (3, false), (0, true), (3, false)] {
            assert_eq!(shown(&mut runs[run]).await, expect, "run {run}");
        }
        let Update::Message(reply) = assistant(Vec::new()) else { unreachable!() };
        let Message::Assistant(mut reply) = Arc::unwrap_or_clone(reply) else { unreachable!() };
        runs[1].after_model(&mut run_state(&[]), &mut reply);
        assert!(shown(&mut runs[3]).await);
    }
}
