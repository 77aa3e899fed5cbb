//! `/usage`: shows the tokens and cost of a conversation. In a private chat it adds the person's spending today and all
//! of their budgets; in a group it adds only the room's budgets.

use super::{CommandAnswer, CommandContext, CommandSpec, count};
use crate::{budgets, spending};
use pudu_base::{BudgetScope, ThreadId, UserId};
use pudu_kit::clock;
use pudu_store::{Db, Spender, SpendingFilter, StoreError};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "usage",
    argument: super::NO_ARGUMENT,
    about: Language::about_usage,
    run: |context, _| Box::pin(run(context)),
};

async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    let inbound = &context.inbound;
    let (account, person) = (inbound.address.account.clone(), inbound.sender.id.clone());
    let user = context.scope.shared.user(&account, &person);
    let room = (!inbound.private).then(|| UserId::room(&account, &inbound.address.chat));
    let spender = Spender { account, person, user, room };
    let language = context.language();
    let text = text(context, language, spender).await.unwrap_or_else(|error| {
        tracing::error!(%error, "failed to read usage");
        language.usage_unreadable().to_owned()
    });
    text.into()
}

async fn text(
    context: &CommandContext<'_>,
    language: Language,
    spender: Spender,
) -> Result<String, StoreError> {
    let is_room = spender.room.is_some();
    let mut lines = match context.thread().await {
        Some(thread) => spent(context.db(), &thread, language).await?,
        None => vec![language.no_conversation().to_owned()],
    };
    let mut states = context.agent().budgets(&spender).await?;
    match spender.room {
        None => lines.extend(today(context.db(), language, spender.user).await?),
        Some(_) => states.retain(|state| state.rule.scope == BudgetScope::Room),
    }
    if !states.is_empty() {
        lines.extend([String::new(), language.budget_lines().to_owned()]);
        lines.extend(budgets::lines(language, &states));
    }
    if is_room {
        lines.extend([String::new(), language.usage_privately().to_owned()]);
    }
    Ok(lines.join("\n"))
}

async fn spent(db: &Db, thread: &ThreadId, language: Language) -> Result<Vec<String>, StoreError> {
    let (usage, runs) = db.usage(thread).await?;
    let sums = db.spending(&SpendingFilter::Thread(thread.clone())).await?;
    let mut lines = vec![language.usage(usage.input, count(runs), usage.total(), usage.output)];
    lines.extend(spending::details(language, &sums));
    let parts = spending::parts(language, &sums);
    if parts.len() > 1 {
        lines.push(String::new());
        lines.extend(parts);
    }
    Ok(lines)
}

/// Returns a person's spending today.
async fn today(db: &Db, language: Language, user: UserId) -> Result<Vec<String>, StoreError> {
    let today = db.spending(&SpendingFilter::UserSince(user, clock::now())).await?;
    if today.is_empty() {
        return Ok(Vec::new());
    }
    let mut lines = vec![String::new(), language.usage_today(spending::tokens(&today).total())];
    let (known, _) = spending::cost(&today);
    lines.extend(known.map(|cost| language.usage_cost(&cost)));
    Ok(lines)
}
