//! `/usage`: shows the tokens and the money that a conversation spent, and what is left of the person's budgets and of the
//! room's.

use super::{CommandSpec, count};
use crate::{
    bus::InboxItem,
    clock,
    dispatch::{budgets, conversation::ConversationActor, spending, users},
};
use pudu_client::{
    base::{ThreadId, UserId},
    store::{Db, Spender, SpendingFilter, StoreError},
};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "usage",
    argument: super::NO_ARGUMENT,
    about: Language::about_usage,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let inbound = &arrival.inbound;
    let (account, person) = (inbound.address.account.clone(), inbound.sender.id.clone());
    let user = actor.shared.user(&account, &person);
    let room = (!inbound.private).then(|| users::room(&account, &inbound.address.chat));
    let spender = Spender { account, person, user, room };
    let language = actor.language(&arrival);
    let text = text(actor, language, spender).await.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to read usage");
        language.usage_unreadable().to_owned()
    });
    actor.answer(arrival, text);
}

async fn text(actor: &ConversationActor, language: Language, spender: Spender) -> Result<String, StoreError> {
    let mut lines = match actor.record().await {
        Some(record) => spent(&actor.shared.db, &record.thread, language, spender.user.clone()).await?,
        None => vec![language.no_conversation().to_owned()],
    };
    let states = actor.shared.client.budgets(&spender).await?;
    if !states.is_empty() {
        lines.extend([String::new(), language.budget_lines().to_owned()]);
        lines.extend(budgets::lines(language, &states));
    }
    Ok(lines.join("\n"))
}

async fn spent(
    db: &Db,
    thread: &ThreadId,
    language: Language,
    user: UserId,
) -> Result<Vec<String>, StoreError> {
    let (usage, runs) = db.usage(thread).await?;
    let sums = db.spending(&SpendingFilter::Thread(thread.clone())).await?;
    let today = db.spending(&SpendingFilter::UserSince(user, clock::now())).await?;
    let mut lines = vec![language.usage(usage.input, count(runs), usage.total(), usage.output)];
    lines.extend(spending::details(language, &sums));
    let parts = spending::parts(language, &sums);
    if parts.len() > 1 {
        lines.push(String::new());
        lines.extend(parts);
    }
    if !today.is_empty() {
        lines.push(String::new());
        lines.push(language.usage_today(spending::tokens(&today).total()));
        let (known, _) = spending::cost(&today);
        lines.extend(known.map(|cost| language.usage_cost(&cost)));
    }
    Ok(lines)
}
