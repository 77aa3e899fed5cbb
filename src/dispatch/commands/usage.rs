//! `/usage`: shows the tokens and the money that a conversation spent.

use super::{CommandSpec, count};
use crate::{
    bus::InboxItem,
    clock,
    dispatch::{conversation::ConversationActor, spending},
};
use pudu_client::{
    base::{ThreadId, UserId},
    store::{Db, SpendingFilter, StoreError},
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
    let user = actor.shared.user(&inbound.address.account, &inbound.sender.id);
    let text = text(actor, actor.language(&arrival), user).await;
    actor.answer(arrival, text);
}

async fn text(actor: &ConversationActor, language: Language, user: UserId) -> String {
    let Some(record) = actor.record().await else { return language.no_conversation().to_owned() };
    told(&actor.shared.db, &record.thread, language, user).await.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to read usage");
        language.usage_unreadable().to_owned()
    })
}

async fn told(db: &Db, thread: &ThreadId, language: Language, user: UserId) -> Result<String, StoreError> {
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
    Ok(lines.join("\n"))
}
