//! Fits a request into the model's window.

use super::{
    ContextRules,
    cut::{self, KeepBounds},
    estimate::{IMAGE_TOKENS, TokenEstimate, request_bytes},
    mask::{self, MaskGoal, MaskPlan},
    record, summary,
    view::view,
};
use crate::{RunAgent, RunState};
use indexmap::IndexMap;
use pudu_base::{Assistant, Compaction, ContextState, Human, Message, MessageId, Request, RunEvent, Update};
use std::sync::Arc;

/// Share of the window that a request may take, in eighths. The remainder is for the answer and for estimation errors.
const FULL_EIGHTHS: u64 = 7;
/// Minimum number of tokens that a masking step frees, so that it is worth invalidating the provider's cache.
const MASK_STEP_TOKENS: u64 = 20_000;
/// Maximum size of a masking step in a small window, as a divisor of the room.
const MASK_STEP_PART: u64 = 4;
/// Minimum saving of a summary in a full window, as a divisor of the tokens that may be kept.
const MIN_GAIN_PART: u64 = 8;
/// Minimum number of tokens that a summary has to free if a user or the number of messages triggers it.
const MIN_GAIN_TOKENS: u64 = 400;
/// Assumed number of characters per token of a summary: fewer than English has, more than Chinese.
const CHARS_PER_TOKEN: u64 = 2;
/// Minimum room for messages that permits a summary, as a divisor of the limit.
const MIN_ROOM_PART: u64 = 8;
/// Maximum number of summaries that a run makes between two user messages, failed ones included.
const MAX_SUMMARIES: u32 = 3;

/// Fits the requests of one run into its model's window.
pub(crate) struct ContextFit {
    agent: RunAgent,
    estimate: TokenEstimate,
    /// Maximum tokens of a request: less than the window allows if the provider rejected one as too long.
    limit: u64,
    /// Size of the current request in bytes, without images; 0 before the first.
    sent_bytes: u64,
    /// Whether the request has images. Its usage then cannot correct the estimate.
    sent_images: bool,
    /// Whether the current request is the second attempt after a rejection.
    again: bool,
    /// Number of summaries that failed in this run.
    failed: u32,
}

/// Room for a request's messages.
#[derive(Clone, Copy, Debug)]
struct MessageRoom {
    /// Tokens that trigger a reduction.
    trigger: u64,
    /// Number of messages that triggers a reduction.
    count: usize,
    /// Maximum number of tokens.
    most: u64,
}

impl ContextFit {
    /// Name of the middleware.
    pub(crate) const NAME: &str = "context";

    /// Creates it for a run of an agent.
    #[must_use]
    pub(crate) fn new(agent: &RunAgent) -> Self {
        let limit = agent.model.context_window() / 8 * FULL_EIGHTHS;
        let estimate = TokenEstimate::default();
        Self {
            agent: agent.clone(),
            estimate,
            limit,
            sent_bytes: 0,
            sent_images: false,
            again: false,
            failed: 0,
        }
    }

    /// Fits a request: masks old results, then summarises, then cuts. The decisions are applied to the thread's state
    /// and are not durable yet.
    pub(crate) async fn fit(&mut self, run_state: &mut RunState, request: &mut Request) {
        let all = std::mem::take(&mut request.messages);
        let left = self.drop_images(request);
        self.show(run_state, &all, request);
        if self.sent_bytes == 0 {
            self.estimate.recall(run_state.state(), self.agent.model.name(), request);
        }
        let room = self.room(request);
        if self.is_over(room, request) {
            self.mask(run_state, &all, request, false).await;
        }
        if self.is_over(room, request) && self.may_summarize(run_state, room) {
            self.summarize(run_state, &all, request, room).await;
        }
        if self.tokens(request) > room.most {
            self.cut(run_state, &all, request, room);
        }
        if self.tokens(request) > room.most {
            // A pointer to an unseen result is better than no answer.
            self.mask(run_state, &all, request, true).await;
        }
        request.messages.extend(left);
        (self.sent_bytes, self.sent_images) = (request_bytes(request), !request.images.is_empty());
    }

    /// Summarises a request at once, even a small one. Returns whether that succeeded; `None` if there is too little to
    /// leave out.
    pub(crate) async fn summarize_now(
        &mut self,
        run_state: &mut RunState,
        request: &mut Request,
    ) -> Option<bool> {
        let all = std::mem::take(&mut request.messages);
        self.show(run_state, &all, request);
        self.estimate.recall(run_state.state(), self.agent.model.name(), request);
        let keep = self.keep(self.room(request));
        let first = self.first_kept(run_state, &all, keep)?;
        (self.gain(run_state, &all, request, first) >= MIN_GAIN_TOKENS).then_some(())?;
        Some(self.summarize_up_to(run_state, &all, request, first).await)
    }

    /// Records the provider's token count for the current request. Models other than the run's own are ignored.
    pub(crate) fn answered(&mut self, reply: &Assistant) {
        self.again = false;
        let own = reply.model.as_deref() == Some(self.agent.model.name());
        if let Some(usage) = reply.usage.filter(|_| own && !self.sent_images) {
            self.estimate.learn(self.sent_bytes, usage.input);
        }
    }

    /// Records that the provider rejected the current request as too long, and lowers the limit. Returns whether a
    /// retry is worthwhile.
    pub(crate) fn too_long(&mut self) -> bool {
        if std::mem::replace(&mut self.again, true) {
            return false;
        }
        self.limit = self.limit.min(self.estimate.tokens(self.sent_bytes) / 4 * 3);
        true
    }

    /// Drops images that take more than half of the limit, the oldest first; the newest one is kept. Returns a note for
    /// the model about it, placed where the images are, because later requests do not contain them.
    fn drop_images(&self, request: &mut Request) -> Option<Arc<Message>> {
        let room = usize::try_from(self.limit / 2 / IMAGE_TOKENS).unwrap_or(usize::MAX).max(1);
        let count = request.images.len().checked_sub(room).filter(|count| *count > 0)?;
        let left: Vec<String> = request.images.drain(..count).map(|left| left.image.path).collect();
        tracing::warn!(count, "dropped images: the request has no room for them");
        let guide = format!(
            "[pudu: there is not enough room for all images at once. Not shown here: {}. View fewer at a time.]",
            left.join(", ")
        );
        Some(Arc::new(Message::Human(Human::guiding("images-left-out", guide))))
    }

    fn rules(&self) -> &ContextRules {
        &self.agent.context.rules
    }

    /// Puts the current view of the thread into a request.
    fn show(&self, run_state: &RunState, all: &[Arc<Message>], request: &mut Request) {
        request.messages = view(all, &run_state.state().context, &self.rules().skill_tools);
    }

    fn tokens(&self, request: &Request) -> u64 {
        self.estimate.messages(&request.messages)
    }

    fn room(&self, request: &Request) -> MessageRoom {
        let window = self.agent.model.context_window();
        let most = self.limit.saturating_sub(self.estimate.fixed(request));
        let triggers = || self.rules().triggers.iter().filter(|_| self.rules().summaries);
        let tokens = triggers().filter_map(|size| size.tokens(window)).min();
        let count = triggers().filter_map(|size| size.messages()).min();
        let trigger = tokens.map_or(most, |tokens| tokens.min(most));
        MessageRoom { trigger, count: count.unwrap_or(usize::MAX), most }
    }

    fn is_over(&self, room: MessageRoom, request: &Request) -> bool {
        self.tokens(request) > room.trigger || request.messages.len() >= room.count
    }

    fn keep(&self, room: MessageRoom) -> KeepBounds {
        let keep = self.rules().keep;
        let half = room.trigger / 2;
        let tokens = keep.tokens(self.agent.model.context_window()).map_or(half, |tokens| tokens.min(half));
        KeepBounds { messages: keep.messages().unwrap_or(usize::MAX), tokens }
    }

    /// Masks enough results that the next masking step is not needed soon.
    async fn mask(&self, run_state: &mut RunState, all: &[Arc<Message>], request: &mut Request, every: bool) {
        let room = self.room(request);
        let tokens = self.tokens(request);
        if tokens <= room.trigger {
            // Only the number of messages is too large.
            return;
        }
        let step = MASK_STEP_TOKENS.min(room.trigger / MASK_STEP_PART);
        let goal = match every {
            true => MaskGoal { need: tokens.saturating_sub(room.most), least: 1 },
            false => MaskGoal { need: tokens.saturating_sub(room.trigger / 2), least: step.max(1) },
        };
        let context = &run_state.state().context;
        let tools = &self.rules().skill_tools;
        let Some(plan) = mask::plan(all, context, tools, self.estimate, goal, every) else { return };
        let MaskPlan { through, unkept } = plan;
        let kept = self.keep_files(&unkept).await;
        run_state.apply(Update::Mask { through, kept });
        self.show(run_state, all, request);
    }

    /// Stores results in files if calling their tool again cannot reproduce them.
    async fn keep_files(&self, results: &[Arc<Message>]) -> IndexMap<MessageId, String> {
        let mut paths = IndexMap::new();
        for message in results {
            let Message::Tool(result) = &**message else { continue };
            let tool = self.agent.tools.get(&result.tool);
            if tool.is_some_and(|tool| tool.spec().idempotent) {
                continue;
            }
            if let Some(path) =
                self.agent.results.keep_masked(&result.tool, &result.text, &self.agent.tools).await
            {
                paths.insert(result.id.clone(), path);
            }
        }
        paths
    }

    /// Returns whether a summary may be made. It cannot help if the prompt and the tools alone fill the window.
    fn may_summarize(&self, run_state: &RunState, room: MessageRoom) -> bool {
        let summaries = run_state.state().context.summaries_of(&run_state.run);
        self.rules().summaries
            && summaries + self.failed < MAX_SUMMARIES
            && room.most >= self.limit / MIN_ROOM_PART
    }

    /// Returns the index of the first kept message; `None` if nothing would be left out.
    fn first_kept(&self, run_state: &RunState, all: &[Arc<Message>], keep: KeepBounds) -> Option<usize> {
        let start = start(run_state, all);
        let first = cut::first_kept(all, start, keep, self.estimate);
        (first > start).then_some(first)
    }

    /// Returns the tokens saved by leaving out all messages before `first`, except those that are kept.
    fn gain(&self, run_state: &RunState, all: &[Arc<Message>], request: &Request, first: usize) -> u64 {
        let left = all.get(start(run_state, all)..first).unwrap_or_default();
        let shown = request.messages.iter().rev().skip(all.len() - first).take(left.len());
        let stays = cut::requests(all, first, self.limit / 4, self.estimate);
        self.estimate.messages(shown.filter(|message| !stays.contains(message.id())))
    }

    /// Replaces the beginning with a summary, if that saves enough.
    async fn summarize(
        &mut self,
        run_state: &mut RunState,
        all: &[Arc<Message>],
        request: &mut Request,
        room: MessageRoom,
    ) {
        let keep = self.keep(room);
        let full = self.tokens(request) > room.trigger;
        let least = if full { keep.tokens / MIN_GAIN_PART } else { MIN_GAIN_TOKENS };
        if let Some(first) = self.first_kept(run_state, all, keep)
            && self.gain(run_state, all, request, first) >= least
        {
            self.summarize_up_to(run_state, all, request, first).await;
        }
    }

    /// Replaces all messages before `first` with a summary. Returns whether that succeeded; a failure changes nothing.
    async fn summarize_up_to(
        &mut self,
        run_state: &mut RunState,
        all: &[Arc<Message>],
        request: &mut Request,
        first: usize,
    ) -> bool {
        run_state.publish(RunEvent::Summarizing);
        let leaves = request.messages.len().saturating_sub(all.len() - first);
        let messages = request.messages.iter().take(leaves).cloned().collect();
        let summary_request = Request { messages, ..request.clone() };
        let Some(text) = summary::summarize(&self.agent, run_state, &summary_request, self.estimate).await
        else {
            self.failed += 1;
            return false;
        };
        let cut = run_state.state().context.compaction.as_ref().is_some_and(|last| last.cut);
        let max_chars = usize::try_from(self.limit / 4 * CHARS_PER_TOKEN).unwrap_or(usize::MAX);
        let summary = Some(summary::shortened(&text, max_chars));
        let compaction = self.compaction(run_state, all, first, summary, cut);
        let Some((before, after)) = self.compact(run_state, all, request, compaction) else {
            tracing::warn!("dropped summary: it is not shorter than the summarized messages");
            self.failed += 1;
            return false;
        };
        run_state.publish(RunEvent::Summarized { before, after });
        true
    }

    /// Leaves out the beginning without a summary, reducing the messages to half of the room at once.
    fn cut(&self, run_state: &mut RunState, all: &[Arc<Message>], request: &mut Request, room: MessageRoom) {
        let keep = KeepBounds { messages: usize::MAX, tokens: room.most / 2 };
        let Some(first) = self.first_kept(run_state, all, keep) else { return };
        let last = run_state.state().context.compaction.as_ref();
        let summary = last.and_then(|last| last.summary.clone());
        let compaction = self.compaction(run_state, all, first, summary, true);
        self.compact(run_state, all, request, compaction);
    }

    fn compaction(
        &self,
        run_state: &RunState,
        all: &[Arc<Message>],
        first: usize,
        summary: Option<String>,
        cut: bool,
    ) -> Compaction {
        let last = run_state.state().context.compaction.clone();
        let gone = all.get(start(run_state, all)..first).unwrap_or_default();
        let through = all.get(first.saturating_sub(1)).map(|message| message.id().clone());
        Compaction {
            run: run_state.run.clone(),
            through: through.unwrap_or_else(|| "".into()),
            requests: cut::requests(all, first, self.limit / 4, self.estimate),
            summary,
            cut,
            skills: record::skills(last.as_deref(), gone, &self.rules().skill_tools),
            delegations: record::delegations(last.as_deref(), gone),
            before: 0,
            after: 0,
        }
    }

    /// Records a compaction and updates the request. Returns the tokens of the request before and after; `None` for a
    /// compaction that saves nothing, which is discarded.
    fn compact(
        &self,
        run_state: &mut RunState,
        all: &[Arc<Message>],
        request: &mut Request,
        compaction: Compaction,
    ) -> Option<(u64, u64)> {
        let fixed = self.estimate.fixed(request);
        let context = &run_state.state().context;
        let next = ContextState { compaction: Some(Arc::new(compaction.clone())), ..context.clone() };
        let shown = view(all, &next, &self.rules().skill_tools);
        let (before, after) = (fixed + self.tokens(request), fixed + self.estimate.messages(&shown));
        if after >= before {
            return None;
        }
        request.messages = shown;
        run_state.apply(Update::Compact(Arc::new(Compaction { before, after, ..compaction })));
        Some((before, after))
    }
}

/// Returns the index of the first message that is not already left out.
fn start(run_state: &RunState, all: &[Arc<Message>]) -> usize {
    let left = run_state.state().context.compaction.as_ref();
    let at = left.and_then(|left| all.iter().position(|message| *message.id() == left.through));
    at.map_or(0, |at| at + 1)
}
