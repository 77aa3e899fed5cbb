//! Reservations: how much a call may spend from each of its budgets. A reservation is made before the call and ends
//! when the call is settled. If the process dies, the next start charges the prompt, which the provider may have read,
//! but not the unreported reply.

use super::{
    call::{CallSpending, Cost, ModelCall, Spender},
    limits::{self, BudgetLimit, BudgetStanding, BudgetUnit},
    row,
};
use crate::{
    Db, Result, clock, crash,
    engines::{FromRow, Row, Tx, query},
};
use pudu_base::{BudgetScope, ModelCaller, Usage, UserId};

/// Maximum number of reservations of earlier processes that are settled in one transaction.
const MAX_LEFT: i64 = 500;

/// Maximum cost of a call if one model answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOffer {
    /// The model.
    pub model: String,
    /// Estimated tokens of the prompt.
    pub input: i64,
    /// Maximum length of the reply, in tokens.
    pub output: i64,
    /// The cost of both; `None` if the model has no price.
    pub cost: Option<OfferCost>,
}

/// The cost of an offer, in millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferCost {
    /// The currency's code.
    pub currency: String,
    /// Cost of the prompt.
    pub input: i64,
    /// Cost of the longest reply.
    pub output: i64,
}

/// A requested call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The call.
    pub call: ModelCall,
    /// Its maximum cost.
    pub offer: CallOffer,
    /// Its maximum cost with a cheaper model, and the spent share of a budget, in thousandths, at which that model
    /// takes over.
    pub cheaper: Option<(CallOffer, i64)>,
    /// Minimum length of a reply that is worth a call, in tokens.
    pub least: i64,
    /// Whether to wait for calls in progress that may use up a budget. Otherwise the cheaper model is tried before the
    /// call is refused.
    pub waits: bool,
    /// The budgets that it counts towards.
    pub limits: Vec<BudgetLimit>,
}

/// Decision on a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveOutcome {
    /// The call may be made.
    Granted {
        /// Whether the cheaper model answers.
        cheaper: bool,
        /// Index of the budget that was too small for the regular model, if this is the reason for the cheaper one.
        short_of: Option<usize>,
        /// Maximum length of the reply, in tokens.
        output: i64,
    },
    /// The call has to wait for calls in progress, which may use up the budget at this index.
    Busy(usize),
    /// The call has to wait for the next period of a budget that has too little left, or nothing.
    TooLittle {
        /// Index of the budget.
        place: usize,
        /// Amount spent of the budget.
        spent: i64,
        /// Amount needed for the prompt and the shortest reply that is worth a call; `None` if it cannot be computed.
        needs: Option<i64>,
    },
}

impl Db {
    /// Reserves a call's maximum spending in each of its budgets, or nothing.
    pub async fn reserve(&self, reservation: Reservation) -> Result<ReserveOutcome> {
        let owner = self.process().to_owned();
        self.write(&crash::RESERVE, move |tx| {
            let mut standings = Vec::new();
            for limit in &reservation.limits {
                let spent = limits::spent(tx, limit, reservation.call.at)?;
                standings.push((spent, limits::reserved(tx, limit)?));
            }
            let (outcome, offer) = choose(&reservation, &standings);
            if let ReserveOutcome::Granted { output, .. } = outcome {
                keep(tx, &reservation.call, offer, output, &owner)?;
            }
            Ok(outcome)
        })
        .await
    }

    /// Returns the decision on a call without reserving anything.
    pub async fn reservable(&self, reservation: &Reservation) -> Result<ReserveOutcome> {
        let reservation = reservation.clone();
        self.read(move |tx| {
            let standings = limits::read_standings(tx, &reservation.limits)?;
            let of = |standing: BudgetStanding| (standing.spent, standing.reserved);
            Ok(choose(&reservation, &standings.into_iter().map(of).collect::<Vec<_>>()).0)
        })
        .await
    }

    /// Settles the open reservations of earlier processes, each for its prompt, and returns their number. Only for a
    /// process with exclusive use of the database.
    pub async fn settle_left(&self) -> Result<u64> {
        let mut settled = 0;
        loop {
            let owner = self.process().to_owned();
            let work = self.write(&crash::SETTLE_LEFT, move |tx| {
                const SQL: &str =
        "SELECT call, run, thread, account, person, user_id, room, caller, model, currency, day, input,
            input_cost FROM reservations WHERE owner <> $1 ORDER BY call LIMIT $2";
                let left: Vec<LeftReservation> = query(SQL).bind(&owner).bind(MAX_LEFT).fetch_all(tx)?;
                for LeftReservation { call, user, spent } in &left {
                    release(tx, &call.id)?;
                    row::spend(tx, call, user, spent)?;
                }
                Ok(left.len() as u64)
            });
            let some = work.await?;
            settled += some;
            if some < MAX_LEFT.unsigned_abs() {
                return Ok(settled);
            }
        }
    }
}

impl CallOffer {
    /// Returns the offer's cost in a budget's unit, for the prompt and for the longest reply, or `None` if it cannot be
    /// computed.
    fn amounts(&self, unit: &BudgetUnit) -> Option<(i64, i64)> {
        match (unit, &self.cost) {
            (BudgetUnit::Tokens, _) => Some((self.input, self.output)),
            (BudgetUnit::Money(currency), Some(cost)) if cost.currency == *currency => {
                Some((cost.input, cost.output))
            }
            (BudgetUnit::Money(_), _) => None,
        }
    }

    /// Returns the length of the longest reply that the remaining amount of a budget allows, in tokens, or -1 if not
    /// even the prompt fits.
    fn affordable(&self, unit: &BudgetUnit, left: i64) -> i64 {
        // A cost that cannot be computed is treated as too high.
        let Some((prompt, reply)) = self.amounts(unit) else { return -1 };
        let left = left.saturating_sub(prompt);
        if left < 0 {
            return -1;
        }
        if reply <= left {
            return self.output;
        }
        // The product of two amounts may exceed an `i64`.
        i64::try_from(i128::from(self.output) * i128::from(left) / i128::from(reply)).unwrap_or(self.output)
    }

    /// Returns the offer's cost with a reply of `least` tokens, or `None` if it cannot be computed.
    #[must_use]
    pub fn needs(&self, unit: &BudgetUnit, least: i64) -> Option<i64> {
        self.amounts(unit).map(|_| self.cost(unit, least.min(self.output)))
    }

    /// Returns the offer's cost in a budget's unit with a reply of `output` tokens.
    fn cost(&self, unit: &BudgetUnit, output: i64) -> i64 {
        let Some((prompt, reply)) = self.amounts(unit) else { return i64::MAX };
        let share = match self.output {
            0 => 0,
            most => {
                let reply = i128::from(reply) * i128::from(output);
                i64::try_from((reply + i128::from(most) - 1) / i128::from(most)).unwrap_or(i64::MAX)
            }
        };
        prompt.saturating_add(share)
    }
}

/// Chooses an offer by the amounts spent and reserved under each limit. The cheaper offer is chosen once a budget has
/// reached its share, or if the regular one is too expensive.
fn choose<'r>(reservation: &'r Reservation, standings: &[(i64, i64)]) -> (ReserveOutcome, &'r CallOffer) {
    let own = || (decide(reservation, &reservation.offer, standings, false), &reservation.offer);
    let Some((cheaper, from)) = &reservation.cheaper else { return own() };
    let other = || (decide(reservation, cheaper, standings, true), cheaper);
    let passes = |(limit, (spent, _)): (&BudgetLimit, &(i64, i64))| {
        i128::from(*spent) * 1000 >= i128::from(limit.limit) * i128::from(*from)
    };
    if reservation.limits.iter().zip(standings).any(passes) {
        return other();
    }
    let own = own();
    let place = match own.0 {
        ReserveOutcome::Granted { .. } => return own,
        ReserveOutcome::Busy(_) if reservation.waits => return own,
        ReserveOutcome::TooLittle { place, .. } | ReserveOutcome::Busy(place) => place,
    };
    match (own, other()) {
        (_, (ReserveOutcome::Granted { cheaper, output, .. }, offer)) => {
            (ReserveOutcome::Granted { cheaper, short_of: Some(place), output }, offer)
        }
        (
            (ReserveOutcome::TooLittle { place, spent, needs }, offer),
            (ReserveOutcome::TooLittle { .. }, other),
        ) => {
            let unit = reservation.limits.get(place).map(|limit| &limit.unit);
            let with_other = unit.and_then(|unit| other.needs(unit, reservation.least));
            let needs = needs.into_iter().chain(with_other).min();
            (ReserveOutcome::TooLittle { place, spent, needs }, offer)
        }
        ((ReserveOutcome::TooLittle { .. }, _), other) => other,
        (own, _) => own,
    }
}

/// Decides whether the budgets allow an offer.
fn decide(
    reservation: &Reservation,
    offer: &CallOffer,
    standings: &[(i64, i64)],
    cheaper: bool,
) -> ReserveOutcome {
    let all = || reservation.limits.iter().zip(standings).enumerate();
    let affordable = |limit: &BudgetLimit, spent: i64| match spent >= limit.limit {
        true => -1,
        false => offer.affordable(&limit.unit, limit.limit - spent),
    };
    let least = reservation.least.min(offer.output);
    let short = all()
        .filter(|(_, (limit, (spent, _)))| affordable(limit, *spent) < least)
        .map(|(place, (limit, (spent, _)))| (place, limit, *spent, offer.needs(&limit.unit, least)));
    // Reports the budget that can never suffice, otherwise the one whose period ends last. The budget of a run comes
    // last, because a new run has a new budget.
    let weight = |(_, limit, _, needs): &(usize, &BudgetLimit, i64, Option<i64>)| {
        (needs.is_some_and(|needs| needs > limit.limit), limit.scope != BudgetScope::Run, limit.until)
    };
    if let Some((place, _, spent, needs)) = short.max_by_key(weight) {
        return ReserveOutcome::TooLittle { place, spent, needs };
    }
    let output = all().map(|(_, (limit, (spent, _)))| affordable(limit, *spent)).min();
    let output = output.unwrap_or(offer.output);
    let mut busy = all().filter(|(_, (limit, (spent, reserved)))| {
        offer.cost(&limit.unit, output).saturating_add(*reserved) > limit.limit - spent
    });
    match busy.next() {
        Some((place, _)) => ReserveOutcome::Busy(place),
        None => ReserveOutcome::Granted { cheaper, short_of: None, output },
    }
}

fn keep(tx: &mut Tx<'_>, call: &ModelCall, offer: &CallOffer, output: i64, owner: &str) -> Result<()> {
    const SQL: &str =
        "INSERT INTO reservations (call, owner, run, thread, account, person, user_id, room, caller, model,
            currency, day, input, tokens, input_cost, cost)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            ON CONFLICT (call) DO NOTHING";
    let Spender { account, person, user, room } = &call.spender;
    let room = room.as_ref().map_or("", UserId::as_str);
    let currency = offer.cost.as_ref().map_or("", |cost| cost.currency.as_str());
    let texts = [
        &call.id,
        owner,
        call.run.as_str(),
        call.thread.as_str(),
        account,
        person,
        user.as_str(),
        room,
        call.caller.as_str(),
        &offer.model,
        currency,
    ];
    let insert = query(SQL).bind_all(texts);
    let money = BudgetUnit::Money(currency.to_owned());
    let (prompt, max_cost) = match &offer.cost {
        Some(cost) => (cost.input, offer.cost(&money, output)),
        None => (0, 0),
    };
    let insert = insert.bind(clock::day(call.at)).bind(offer.input);
    let insert = insert.bind(offer.cost(&BudgetUnit::Tokens, output)).bind(prompt).bind(max_cost);
    insert.execute(tx).map(drop)
}

/// Ends a reservation. Does nothing if it has already ended.
pub(super) fn release(tx: &mut Tx<'_>, call: &str) -> Result<()> {
    query("DELETE FROM reservations WHERE call = $1").bind(call).execute(tx).map(drop)
}

/// A reservation left by an earlier process.
struct LeftReservation {
    call: ModelCall,
    /// The user; empty if no longer known.
    user: String,
    spent: CallSpending,
}

impl FromRow for LeftReservation {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let (id, run, thread, account, person, user, room, caller, model, currency, day, input, cost) =
            FromRow::from_row(row)?;
        let (user, room, caller, currency): (String, String, String, String) = (user, room, caller, currency);
        let (day, input): (i64, i64) = (day, input);
        let known = UserId::from_raw(&user).unwrap_or_default();
        let spender = Spender { account, person, user: known, room: UserId::from_raw(&room).ok() };
        let caller = ModelCaller::parse(&caller).unwrap_or_default();
        let at = clock::start(day);
        let call = ModelCall { id, run, thread, spender, caller, at };
        let usage = Usage::plain(u64::try_from(input).unwrap_or(0), 0);
        let cost = (!currency.is_empty()).then_some(Cost { currency, micros: cost });
        Ok(Self { call, user, spent: CallSpending { model, usage, reported: false, cost } })
    }
}
