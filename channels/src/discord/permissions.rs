//! Computes whether a user may read a channel, as documented by Discord: from the server's roles, the user's roles, and
//! the channel's overwrites.

use super::{
    account_state::{ApiRoute, DiscordAccountState},
    facts::{ADMINISTRATOR, DiscordError},
    wire::{GuildAccess, MemberRoles, Overwrite, ReadableChannel},
};
use pudu_net::reqwest::Method;
use serde_json::Value;

const VIEW_CHANNEL: u64 = 1 << 10;
const READ_MESSAGE_HISTORY: u64 = 1 << 16;
/// Permissions needed to read older messages of a channel.
const READS: u64 = VIEW_CHANNEL | READ_MESSAGE_HISTORY;
/// Channel types of announcement threads and public threads. They have the permissions of their channel.
const OPEN_THREADS: [u64; 2] = [10, 11];
/// Channel type of private threads. Only the thread itself knows its members.
const PRIVATE_THREAD: u64 = 12;

/// Returns the server of a channel if a user may read that channel, otherwise `None`.
///
/// # Errors
/// If Discord does not answer, or refuses.
pub(super) async fn may_read(
    state: &DiscordAccountState,
    channel: &str,
    person: &str,
) -> Result<Option<String>, DiscordError> {
    let fetch = |id: String| async move {
        let path = ["channels", id.as_str()];
        state.call::<ReadableChannel>(ApiRoute::Read, Method::GET, &path, &Value::Null).await
    };
    let mut info = fetch(channel.to_owned()).await?;
    if info.kind == PRIVATE_THREAD {
        return Ok(None);
    }
    if OPEN_THREADS.contains(&info.kind) {
        let Some(parent) = info.parent_id else { return Ok(None) };
        info = fetch(parent).await?;
    }
    let Some(guild) = info.guild_id else { return Ok(None) };
    let path = ["guilds", guild.as_str(), "members", person];
    let member: MemberRoles = state.call(ApiRoute::Read, Method::GET, &path, &Value::Null).await?;
    let access: GuildAccess =
        state.call(ApiRoute::Read, Method::GET, &["guilds", &guild], &Value::Null).await?;
    let all = permissions(&guild, person, &member.roles, &access, &info.permission_overwrites);
    Ok((all & READS == READS).then_some(guild))
}

fn permissions(
    guild: &str,
    person: &str,
    roles: &[String],
    access: &GuildAccess,
    overwrites: &[Overwrite],
) -> u64 {
    if access.owner_id == person {
        return u64::MAX;
    }
    // The role `@everyone` has the server's id.
    let has = |id: &String| id == guild || roles.contains(id);
    let own = access.roles.iter().filter(|role| has(&role.id));
    let base = own.fold(0, |all, role| all | bits(&role.permissions));
    if base & ADMINISTRATOR != 0 {
        return u64::MAX;
    }
    let of = |wanted: &dyn Fn(&Overwrite) -> bool| {
        let chosen = overwrites.iter().filter(|overwrite| wanted(overwrite));
        chosen.fold((0, 0), |(allow, deny), overwrite| {
            (allow | bits(&overwrite.allow), deny | bits(&overwrite.deny))
        })
    };
    let everybody = of(&|overwrite| overwrite.id == guild);
    let by_role = of(&|overwrite| overwrite.id != guild && roles.contains(&overwrite.id));
    let by_person = of(&|overwrite| overwrite.id == person);
    [everybody, by_role, by_person].into_iter().fold(base, |all, (allow, deny)| (all & !deny) | allow)
}

/// Parses a bit set written in decimal digits. An invalid one allows nothing.
fn bits(set: &str) -> u64 {
    set.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn permissions_determine_who_may_read_a_channel() {
        let (view, read, both) = (VIEW_CHANNEL, READ_MESSAGE_HISTORY, READS);
        let check = |everybody: u64, staff: u64, roles: &[&str], overwrites: Value, may: bool| {
            let access = json!({"owner_id": "9", "roles": [
                {"id": "1", "permissions": everybody.to_string()}, {"id": "5", "permissions": staff.to_string()}]});
            let access: GuildAccess = serde_json::from_value(access).unwrap();
            let changes: Vec<Overwrite> = serde_json::from_value(overwrites.clone()).unwrap();
            let roles: Vec<String> = roles.iter().map(|role| (*role).to_owned()).collect();
            let all = permissions("1", "7", &roles, &access, &changes);
            assert_eq!(all & READS == READS, may, "{everybody} {staff} {roles:?} {overwrites}");
        };
        let change = |id: &str, allow: u64, deny: u64| json!({"id": id, "allow": allow.to_string(), "deny": deny.to_string()});
        check(both, 0, &[], json!([]), true);
        check(view, 0, &[], json!([]), false);
        check(view, read, &["5"], json!([]), true);
        check(view, read, &[], json!([]), false);
        check(0, ADMINISTRATOR, &["5"], json!([change("1", 0, both)]), true);
        check(both, 0, &[], json!([change("1", 0, view)]), false);
        check(both, 0, &["5"], json!([change("1", 0, view), change("5", view, 0)]), true);
        check(both, 0, &[], json!([change("1", 0, view), change("5", view, 0)]), false);
        check(both, 0, &["5"], json!([change("5", both, 0), change("7", 0, view)]), false);
        check(both, 0, &[], json!([change("1", 0, view), change("7", view, 0)]), true);
        check(both, 0, &[], json!([{"id": "1", "allow": 7, "deny": "x"}]), true);
        let access: GuildAccess = serde_json::from_value(json!({"owner_id": "7"})).unwrap();
        assert_eq!(permissions("1", "7", &[], &access, &[]), u64::MAX, "the owner reads everything");
    }
}
