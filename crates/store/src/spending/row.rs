//! The row of a settled call.

use super::{
    call::{CallSpending, Cost, ModelCall, Spender, tokens},
    limits,
};
use crate::{
    Result, clock,
    engines::{Tx, query},
};
use pudu_base::{Usage, UserId};

/// Stores the spending of a user's call, and adds it to all budgets that it counts towards. Skips a call that is
/// already settled. The user is empty if no longer known.
pub(super) fn spend(tx: &mut Tx<'_>, call: &ModelCall, user: &str, spent: &CallSpending) -> Result<()> {
    const SQL: &str =
        "INSERT INTO spending (run, call, thread, account, person, user_id, room, caller, model, day,
            calls, unreported, input, output, cached, cache_writes, reasoning, cost, currency)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, $12, $13, $14, $15, $16, $17, $18)
            ON CONFLICT (run, call) DO NOTHING";
    let Spender { account, person, room, .. } = &call.spender;
    let texts = [call.run.as_str(), &call.id, call.thread.as_str(), account, person, user];
    let insert = query(SQL).bind_all(texts);
    let room = room.as_ref().map_or("", UserId::as_str);
    let insert = insert.bind(room).bind(call.caller.as_str()).bind(&spent.model).bind(clock::day(call.at));
    let Usage { input, output, cached, cache_writes, reasoning } = spent.usage;
    let numbers = [u64::from(!spent.reported), input, output, cached, cache_writes, reasoning];
    let insert = numbers.into_iter().fold(insert, |insert, number| insert.bind(tokens(number)));
    let insert = insert.bind(spent.cost.as_ref().map(Cost::column));
    let insert = insert.bind(spent.cost.as_ref().map(|cost| cost.currency.as_str()));
    match insert.execute(tx)? {
        0 => Ok(()),
        _ => limits::count(tx, call, user, spent),
    }
}
