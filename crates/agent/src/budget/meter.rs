//! The meter of a run, which reserves and records the cost of model calls.

use super::{BudgetNotice, BudgetRule, BudgetSetup, BudgetState};
use crate::{Agent, RunTask};
use pudu_base::{
    BudgetPeriod, BudgetScope, Delta, MessageId, Model, ModelCaller, ModelError, Request, RunId, ShortBudget,
    ThreadId, Usage, UsedBudget,
};
use pudu_harness::{estimated_reply_tokens, estimated_tokens};
use pudu_store::{
    BudgetStanding, CallOffer, CallSpending, ModelCall, OfferCost, Reservation, ReserveOutcome, Settlement,
    Spender, StoreError, now,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Default maximum length of a reply within budgets, in tokens, if neither the request nor the model sets a limit.
const DEFAULT_OUTPUT: u64 = 8_192;
/// Minimum length of a reply that is worth a call, in tokens.
const LEAST_OUTPUT: i64 = 256;
/// Maximum time to wait for other calls that have reserved the remaining budget.
const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
/// Interval at which a waiting call checks for settlements by another process.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A budget of a spender, in any unit.
type BudgetKey = (BudgetScope, Option<BudgetPeriod>);

/// Meters the calls of one run.
#[derive(Clone)]
pub struct Meter {
    agent: Agent,
    thread: ThreadId,
    run: RunId,
    spender: Spender,
    /// Budgets that were too small for the requested model, so that the cheaper one answered.
    too_dear: Arc<Mutex<BTreeSet<BudgetKey>>>,
    /// Returns the time, in milliseconds since 1970.
    clock: fn() -> i64,
}

impl Meter {
    /// Creates the meter of a run.
    pub(crate) fn new(agent: &Agent, thread: ThreadId, run: RunId, spender: Spender) -> Self {
        Self { agent: agent.clone(), thread, run, spender, too_dear: Arc::default(), clock: now }
    }

    /// Creates the meter of a task's run.
    pub(crate) fn for_task(agent: &Agent, task: &RunTask) -> Self {
        Self::new(agent, task.thread.clone(), task.run.clone(), task.spender())
    }

    #[cfg(test)]
    pub(super) fn with_clock(self, clock: fn() -> i64) -> Self {
        Self { clock, ..self }
    }

    /// Begins a call: reserves its maximum cost, and chooses the model that answers.
    pub(super) async fn open(
        &self,
        model: &Arc<dyn Model>,
        request: &Request,
    ) -> Result<OpenCall, ModelError> {
        let input = estimated_tokens(request);
        let mut call = OpenCall {
            meter: self.clone(),
            wanted: request.sampling.max_tokens,
            call: ModelCall {
                id: MessageId::fresh().to_string(),
                run: self.run.clone(),
                thread: self.thread.clone(),
                spender: self.spender.clone(),
                caller: request.caller,
                at: (self.clock)(),
            },
            by: model.name().to_owned(),
            model: model.clone(),
            is_cheaper: false,
            most: None,
            input,
            tries: 0,
            received_bytes: 0,
            usage: None,
            reserved: false,
            state: CallState::Closed,
        };
        self.reserve(&mut call).await?;
        call.state = CallState::Open;
        Ok(call)
    }

    /// Reserves the maximum cost of a call, if there are budgets. Waits for other calls that have reserved the
    /// remaining budget, unless no user is waiting for this call. A retry reserves as much as the previous attempt.
    async fn reserve(&self, call: &mut OpenCall) -> Result<(), ModelError> {
        let (began, mut waited) = (Instant::now(), false);
        loop {
            let setup = self.agent.setup().budgets.clone();
            let caller = call.call.caller;
            // Memory learns from a conversation after its run, so the run's own budget does not apply.
            let is_of_run =
                |rule: &BudgetRule| rule.scope == BudgetScope::Run && caller == ModelCaller::Memory;
            let rules = setup.rules.rules_for(Some(&self.run), &self.spender);
            let rules: Vec<_> = rules.filter(|(rule, _)| !is_of_run(rule)).collect();
            if rules.is_empty() {
                return Ok(());
            }
            call.call.at = (self.clock)();
            let at = call.call.at;
            let freed = self.agent.0.settled.notified();
            let mut freed = std::pin::pin!(freed);
            // Enabled before the check, so that a settlement in between is not missed.
            freed.as_mut().enable();
            let is_hurried =
                matches!(caller, ModelCaller::Memory | ModelCaller::Title | ModelCaller::Assistance);
            let waits = !is_hurried && began.elapsed() < MAX_WAIT;
            let limits = rules.iter().map(|(rule, subject)| rule.limit(subject, at)).collect();
            // The request of a retry is already fixed.
            let cheaper = if call.most.is_none() { self.cheaper(&setup, call) } else { None };
            let reservation = Reservation {
                call: call.call.clone(),
                offer: offer(&setup, &*call.model, call.input, call.most.or(call.wanted)),
                cheaper: cheaper.as_ref().map(|(_, offer, from)| (offer.clone(), *from)),
                least: call.most.map_or(LEAST_OUTPUT, i64::from),
                waits,
                limits,
            };
            let outcome = self.ask(call, reservation, waited).await.map_err(|error| unknown(&error))?;
            let rule = |place: usize| rules.get(place).map(|(rule, _)| *rule);
            let refused =
                |used: Option<UsedBudget>| Err(ModelError::Budget(used.unwrap_or_else(UsedBudget::of_run)));
            match outcome {
                ReserveOutcome::Granted { cheaper: is_cheaper, short_of, output } => {
                    self.note_too_expensive(short_of.and_then(rule));
                    call.grant(cheaper.filter(|_| is_cheaper).map(|(model, ..)| model), output);
                    return Ok(());
                }
                ReserveOutcome::TooLittle { place, spent, needs } => {
                    return refused(rule(place).map(|rule| rule.refused(spent, needs, at)));
                }
                ReserveOutcome::Busy(place) if !waits => {
                    let used = rule(place).map(|rule| rule.used_up(at));
                    return refused(used.map(|used| UsedBudget { busy: true, ..used }));
                }
                ReserveOutcome::Busy(_) => {
                    waited = true;
                    tokio::select! {
                        biased;
                        () = freed => {}
                        () = tokio::time::sleep(POLL_INTERVAL) => {}
                    }
                }
            }
        }
    }

    fn note_too_expensive(&self, rule: Option<&BudgetRule>) {
        if let Some(rule) = rule {
            self.too_dear().insert((rule.scope, rule.period));
        }
    }

    fn too_dear(&self) -> MutexGuard<'_, BTreeSet<BudgetKey>> {
        self.too_dear.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the store for a reservation. A call that waited reads before it writes, because one settlement wakes all
    /// waiting calls, including those with other budgets.
    async fn ask(
        &self,
        call: &mut OpenCall,
        reservation: Reservation,
        waited: bool,
    ) -> Result<ReserveOutcome, StoreError> {
        let db = &self.agent.0.db;
        if waited {
            let outcome = db.reservable(&reservation).await?;
            if !matches!(outcome, ReserveOutcome::Granted { .. }) {
                return Ok(outcome);
            }
        }
        call.state = CallState::Reserving;
        let outcome = db.reserve(reservation).await;
        call.state = CallState::Closed;
        outcome
    }

    /// Returns the cheaper model, the maximum cost of the call with it, and the spent share at which it takes over;
    /// `None` if the request does not fit into its window.
    fn cheaper(&self, setup: &BudgetSetup, call: &OpenCall) -> Option<(Arc<dyn Model>, CallOffer, i64)> {
        let cheaper = setup.rules.cheaper.as_ref()?;
        let model = setup.cheaper.clone().filter(|model| model.name() != call.model.name())?;
        let offer = offer(setup, &*model, call.input, call.most.or(call.wanted));
        let fits = offer.input.saturating_add(LEAST_OUTPUT) <= tokens(model.context_window());
        fits.then(|| (model, offer, i64::from(cheaper.from)))
    }

    /// Returns the budget with the largest spent share, and the share in percent, if it reaches the warning level.
    pub(super) async fn nearing(&self) -> Option<(BudgetState, i64)> {
        let setup = self.agent.setup().budgets.clone();
        let all = self.standings(&setup).await.ok()?;
        let share = |(rule, _, standing): &(&BudgetRule, String, BudgetStanding)| {
            standing.spent.saturating_mul(1000) / rule.limit.max(1)
        };
        let nearest = all.into_iter().max_by_key(|one| share(one))?;
        let share = share(&nearest);
        let (rule, subject, standing) = nearest;
        (share >= i64::from(setup.rules.warn))
            .then(|| (rule.state(&subject, standing, (self.clock)()), (share / 10).min(100)))
    }

    /// Returns the budgets that are nearly used up, or too small for the requested model, and marks them as reported.
    /// Omits budgets that were reported before, the run's own budget, which ends with the run, and a budget that
    /// refused a call, which has its own message.
    pub async fn notices(&self, refused: Option<&UsedBudget>) -> Vec<BudgetNotice> {
        let refused = refused.filter(|used| !used.busy).map(|used| (used.scope, used.period));
        let too_dear = self.too_dear().clone();
        let is_too_expensive = |rule: &BudgetRule| too_dear.contains(&(rule.scope, rule.period));
        let setup = self.agent.setup().budgets.clone();
        let standings = self.standings(&setup).await.unwrap_or_default();
        let near = standings.into_iter().filter(|(rule, _, standing)| {
            let near =
                standing.spent.saturating_mul(1000) >= rule.limit.saturating_mul(i64::from(setup.rules.warn));
            // A user's budget is reported only in a private chat.
            let reported_here = rule.scope != BudgetScope::Person || self.spender.room.is_none();
            let reported_elsewhere = refused == Some((rule.scope, rule.period));
            let near = (near || is_too_expensive(rule)) && !reported_elsewhere;
            near && rule.period.is_some() && !standing.warned && reported_here
        });
        let (mut notices, at) = (Vec::new(), (self.clock)());
        for (rule, subject, standing) in near {
            if !self.agent.0.db.budget_warned(rule.limit(&subject, at), at).await.unwrap_or(false) {
                continue;
            }
            let from =
                |from: u32| standing.spent.saturating_mul(1000) >= rule.limit.saturating_mul(i64::from(from));
            let cheaper = setup.rules.cheaper.as_ref();
            let for_good = cheaper.is_some_and(|cheaper| from(cheaper.from));
            let too_dear = is_too_expensive(rule) && !for_good;
            let cheaper = cheaper.filter(|_| for_good || too_dear).map(|cheaper| cheaper.name.clone());
            notices.push(BudgetNotice { state: rule.state(&subject, standing, at), cheaper, too_dear });
        }
        notices
    }

    async fn standings<'s>(
        &self,
        setup: &'s BudgetSetup,
    ) -> Result<Vec<(&'s BudgetRule, String, BudgetStanding)>, StoreError> {
        let rules: Vec<_> = setup.rules.rules_for(Some(&self.run), &self.spender).collect();
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let at = (self.clock)();
        let limits = rules.iter().map(|(rule, subject)| rule.limit(subject, at)).collect();
        let standings = self.agent.0.db.budget_standings(limits).await?;
        let all = rules.into_iter().zip(standings);
        Ok(all.map(|((rule, subject), standing)| (rule, subject, standing)).collect())
    }

    fn settle(&self, settlement: Settlement) {
        self.agent.0.db.settle(settlement);
        self.agent.0.settled.notify_waiters();
    }
}

/// Returns the error for a budget whose state cannot be read; the call is refused.
fn unknown(error: &StoreError) -> ModelError {
    tracing::error!(%error, "failed to reserve budget");
    ModelError::Unreachable("nobody can tell just now what may be spent".to_owned())
}

/// Returns the maximum cost of a call if this model answers it.
fn offer(setup: &BudgetSetup, model: &dyn Model, input: u64, wanted: Option<u32>) -> CallOffer {
    let wanted = wanted.map(u64::from);
    let output = wanted.or_else(|| model.max_output()).unwrap_or(DEFAULT_OUTPUT);
    // Any of its fallbacks may answer, so each cost is the highest one.
    let costs = model.answerers().into_iter().map(|name| {
        setup.price(&name).map(|price| OfferCost {
            currency: price.currency.clone(),
            // The whole prompt may be written to the provider's cache, which may cost more.
            input: price
                .micros(Usage::plain(input, 0))
                .max(price.micros(Usage { cache_writes: input, ..Usage::plain(input, 0) })),
            output: price.micros(Usage::plain(0, output)),
        })
    });
    // Costs in two currencies cannot be compared, so they are treated as unknown.
    let dearer = |one: Option<OfferCost>, other: Option<OfferCost>| {
        let (one, other) = one.zip(other).filter(|(one, other)| one.currency == other.currency)?;
        let (input, output) = (one.input.max(other.input), one.output.max(other.output));
        Some(OfferCost { input, output, ..one })
    };
    let cost = costs.reduce(dearer).flatten();
    CallOffer { model: model.name().to_owned(), input: tokens(input), output: tokens(output), cost }
}

/// Returns the budgets that would refuse a request even if nothing were spent, whichever model is called.
pub(crate) fn too_small(setup: &BudgetSetup, model: &dyn Model, request: &Request) -> Vec<UsedBudget> {
    let (input, wanted) = (estimated_tokens(request), request.sampling.max_tokens);
    let models = [Some(model), setup.cheaper.as_deref()].into_iter().flatten();
    let offers: Vec<CallOffer> = models.map(|model| offer(setup, model, input, wanted)).collect();
    let refused = setup.rules.limits.iter().map(|rule| {
        let needs = offers.iter().filter_map(|offer| offer.needs(&rule.unit, LEAST_OUTPUT)).min();
        rule.refused(0, needs, now())
    });
    refused.filter(|used| used.short.as_ref().is_some_and(ShortBudget::is_too_small)).collect()
}

fn tokens(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A call in progress. It is settled once: when its reply completes, when it fails, or when it is dropped.
pub(super) struct OpenCall {
    meter: Meter,
    call: ModelCall,
    /// Maximum length of the reply, in tokens, if the request sets one.
    wanted: Option<u32>,
    /// The model that is called.
    pub(super) model: Arc<dyn Model>,
    /// Whether `model` is the cheaper one.
    pub(super) is_cheaper: bool,
    /// Reserved length of the reply, in tokens, if any.
    most: Option<u32>,
    /// The name of the answering model.
    by: String,
    /// Estimated tokens of the prompt.
    input: u64,
    /// Number of settled attempts.
    tries: u32,
    /// Bytes of this attempt's reply so far.
    received_bytes: u64,
    /// The provider's usage of this attempt.
    usage: Option<Usage>,
    reserved: bool,
    state: CallState,
}

/// State of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallState {
    /// Its reservation is being written to the store, and is completed even if the caller stops waiting.
    Reserving,
    /// It may have a cost.
    Open,
    /// It is settled, or was not made.
    Closed,
}

impl OpenCall {
    fn grant(&mut self, cheaper: Option<Arc<dyn Model>>, output: i64) {
        self.reserved = true;
        self.state = CallState::Open;
        self.most = Some(u32::try_from(output).unwrap_or(u32::MAX));
        if let Some(model) = cheaper {
            self.by = model.name().to_owned();
            self.model = model;
            self.is_cheaper = true;
        }
    }

    /// Adapts a request to the model and to the reserved length of the reply.
    pub(super) fn fit(&self, mut request: Request) -> Request {
        if !self.model.supports_vision() {
            request.images.clear();
        }
        request.most = self.most;
        request
    }

    /// Records a piece of the reply. Before another attempt, reserves its cost.
    ///
    /// # Errors
    /// If a budget does not allow another attempt.
    pub(super) async fn on_delta(&mut self, delta: &Delta) -> Result<(), ModelError> {
        match delta {
            Delta::Text(text) | Delta::Reasoning(text) => self.received_bytes += text.len() as u64,
            Delta::Call(call) => {
                self.received_bytes += (call.name.len() + call.args.to_string().len()) as u64
            }
            Delta::Usage(usage) => self.usage = Some(*usage),
            Delta::Model(name) => self.by.clone_from(name),
            Delta::Again { free, .. } if self.end_attempt(*free) => {
                let meter = self.meter.clone();
                return meter.reserve(self).await;
            }
            Delta::Finish(_) => self.end(false),
            Delta::Again { .. } | Delta::Retract | Delta::ProviderParts(_) | Delta::Image(_) => {}
        }
        Ok(())
    }

    /// Settles a call that failed.
    pub(super) fn fail(&mut self, error: &ModelError) {
        self.end(error.is_free());
    }

    /// Settles an attempt that is followed by another, and returns whether the next one needs a new reservation.
    fn end_attempt(&mut self, free_if_empty: bool) -> bool {
        let spent = self.spent(free_if_empty);
        self.tries += 1;
        if spent.is_none() {
            return false;
        }
        let call = ModelCall { id: format!("{}.{}", self.call.id, self.tries), ..self.call.clone() };
        let reservation = std::mem::take(&mut self.reserved).then(|| self.call.id.clone());
        let is_reserved = reservation.is_some();
        self.meter.settle(Settlement { call, spent, reservation });
        is_reserved
    }

    /// Settles the call.
    fn end(&mut self, free_if_empty: bool) {
        if std::mem::replace(&mut self.state, CallState::Closed) != CallState::Open {
            return;
        }
        let spent = self.spent(free_if_empty);
        let reservation = self.reserved.then(|| self.call.id.clone());
        if spent.is_some() || reservation.is_some() {
            self.meter.settle(Settlement { call: self.call.clone(), spent, reservation });
        }
    }

    /// Takes the cost of this attempt: from the provider's usage, or estimated from the sent and received amounts.
    fn spent(&mut self, free_if_empty: bool) -> Option<CallSpending> {
        let (usage, received_bytes) = (self.usage.take(), std::mem::take(&mut self.received_bytes));
        if usage.is_none() && received_bytes == 0 && free_if_empty {
            return None;
        }
        let estimated = || Usage::plain(self.input, estimated_reply_tokens(received_bytes));
        let (reported, usage) = (usage.is_some(), usage.unwrap_or_else(estimated));
        let setup = self.meter.agent.setup().budgets.clone();
        let cost = setup.price(&self.by).map(|price| price.cost(usage));
        Some(CallSpending { model: self.by.clone(), usage, reported, cost })
    }
}

impl Drop for OpenCall {
    /// Settles a call whose reader stopped early: the prompt and the received part of the reply are charged. A call
    /// that was still being reserved was not made, and its reservation is released.
    fn drop(&mut self) {
        if self.state == CallState::Reserving {
            let (agent, call) = (self.meter.agent.clone(), self.call.id.clone());
            self.meter.agent.0.tasks.spawn(async move {
                if let Err(error) = agent.0.db.release(call).await {
                    tracing::error!(%error, "failed to release reservation");
                }
                agent.0.settled.notify_waiters();
            });
        }
        self.end(false);
    }
}
