//! Reservations: the amount that a call may spend of each budget that it is a part of. They are made before the call,
//! and end when it is settled. One that a process left behind when it died is settled at the next start for its prompt,
//! which the provider may have read; the unreported reply is not charged.

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

/// Maximum number of earlier processes' reservations settled in one transaction.
const MAX_LEFT: i64 = 500;

/// Maximum cost of a call if one model answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallOffer {
    /// The model.
    pub model: String,
    /// Tokens of the prompt, as they are estimated.
    pub input: i64,
    /// Tokens of the reply at most.
    pub output: i64,
    /// The cost of both; none where the model has no price.
    pub cost: Option<OfferCost>,
}

/// The cost of an offer, in millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferCost {
    /// The currency's code.
    pub currency: String,
    /// That of the prompt.
    pub input: i64,
    /// That of the longest reply.
    pub output: i64,
}

/// A call that wants to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The call.
    pub call: ModelCall,
    /// Its maximum cost.
    pub offer: CallOffer,
    /// Its maximum cost with a cheaper model, and the share of a budget, in thousandths, from which that model answers.
    pub cheaper: Option<(CallOffer, i64)>,
    /// A reply of fewer tokens is not worth a call.
    pub least: i64,
    /// Whether it waits for calls that may spend all that is left. If not, the cheaper model is tried before it is refused.
    pub waits: bool,
    /// The budgets that it is a part of.
    pub limits: Vec<BudgetLimit>,
}

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReserveOutcome {
    /// It may.
    Granted {
        /// Whether the cheaper model answers.
        cheaper: bool,
        /// Place of the budget that did not suffice for the other model, if that is why.
        short_of: Option<usize>,
        /// Tokens that the reply may have.
        output: i64,
    },
    /// Not before calls that are under way have ended: they may spend all that is left of the budget at this place.
    Busy(usize),
    /// Not before a budget begins again: it is used up, or the remaining part does not suffice.
    TooLittle {
        /// Its place.
        place: usize,
        /// Amount spent of the budget.
        spent: i64,
        /// Needed for the prompt and the shortest reply that is worth a call; none where that cannot be counted.
        needs: Option<i64>,
    },
}

impl Db {
    /// Reserves a call's maximum spending of each budget that it is a part of, or nothing.
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

    /// Returns whether a call might be made now, without reserving anything.
    pub async fn reservable(&self, reservation: &Reservation) -> Result<ReserveOutcome> {
        let reservation = reservation.clone();
        self.read(move |tx| {
            let standings = limits::read_standings(tx, &reservation.limits)?;
            let of = |standing: BudgetStanding| (standing.spent, standing.reserved);
            Ok(choose(&reservation, &standings.into_iter().map(of).collect::<Vec<_>>()).0)
        })
        .await
    }

    /// Settles the open reservations of earlier processes, each for its prompt; returns their number. For a process
    /// that has the database alone.
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
    /// Returns the amounts that the offer takes of a budget: for the prompt, and for the longest reply. None if they
    /// cannot be counted.
    fn amounts(&self, unit: &BudgetUnit) -> Option<(i64, i64)> {
        match (unit, &self.cost) {
            (BudgetUnit::Tokens, _) => Some((self.input, self.output)),
            (BudgetUnit::Money(currency), Some(cost)) if cost.currency == *currency => {
                Some((cost.input, cost.output))
            }
            (BudgetUnit::Money(_), _) => None,
        }
    }

    /// Returns how many tokens a reply may have for an amount of a budget; fewer than none where not even the prompt fits.
    fn affordable(&self, unit: &BudgetUnit, left: i64) -> i64 {
        // An amount that cannot be counted is too much.
        let Some((prompt, reply)) = self.amounts(unit) else { return -1 };
        let left = left.saturating_sub(prompt);
        if left < 0 {
            return -1;
        }
        if reply <= left {
            return self.output;
        }
        // A product of two amounts may need more digits than an amount has.
        i64::try_from(i128::from(self.output) * i128::from(left) / i128::from(reply)).unwrap_or(self.output)
    }

    /// Returns the amount of a budget that it needs with a reply of `least` tokens; none if that cannot be counted.
    #[must_use]
    pub fn needs(&self, unit: &BudgetUnit, least: i64) -> Option<i64> {
        self.amounts(unit).map(|_| self.cost(unit, least.min(self.output)))
    }

    /// Returns the amount that the offer takes of a budget with a reply of `output` tokens.
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

/// Chooses an offer, by the spent and the reserved amount of each limit. The cheaper one is chosen from its share on,
/// and where the other one is too dear.
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

/// Judges whether an offer can be taken.
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
    // The one that never suffices counts most, then the one that opens last. A new run has a new budget, and so is nothing
    // to wait for.
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
    let (prompt, most) = match &offer.cost {
        Some(cost) => (cost.input, offer.cost(&money, output)),
        None => (0, 0),
    };
    let insert = insert.bind(clock::day(call.at)).bind(offer.input);
    let insert = insert.bind(offer.cost(&BudgetUnit::Tokens, output)).bind(prompt).bind(most);
    insert.execute(tx).map(drop)
}

/// Ends a reservation; one that has ended already is left alone.
pub(super) fn release(tx: &mut Tx<'_>, call: &str) -> Result<()> {
    query("DELETE FROM reservations WHERE call = $1").bind(call).execute(tx).map(drop)
}

/// A reservation of a process that is gone.
struct LeftReservation {
    call: ModelCall,
    /// The user; empty if unknown by now.
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
