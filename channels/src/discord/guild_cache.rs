//! Cache of the channels, threads and roles sent by Discord: their names, and the channel of each thread.
//!
//! Bounded: the least recently used entries are dropped. A missing channel is fetched when it is needed; a missing role
//! is shown as `@role`.

use super::{
    facts::DiscordError,
    wire::{ChannelInfo, DiscordRole, Guild},
};
use hashlink::LruCache;
use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// Maximum number of remembered channels and threads, and of roles.
const MAX_CACHE_ENTRIES: usize = 20_000;
/// Channel types of announcement threads, public threads and private threads.
const THREADS: [u64; 3] = [10, 11, 12];
/// Channel types in which a message can begin a thread: text and announcements.
const PARENTS: [u64; 2] = [0, 5];

/// Cache of the servers and their channels.
#[derive(Debug)]
pub(super) struct GuildCache {
    known: Mutex<CachedGuilds>,
    /// Number of servers whose `GUILD_CREATE` is outstanding.
    expected: watch::Sender<usize>,
}

#[derive(Debug)]
struct CachedGuilds {
    channels: LruCache<String, CachedChannel>,
    /// Servers whose description was received or fetched.
    guilds: LruCache<String, ()>,
    roles: LruCache<String, String>,
    /// Roles that servers created for the bot: one per server, which Discord does not send again.
    own_roles: LruCache<String, ()>,
}

/// A channel or a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CachedChannel {
    pub(super) guild: Option<String>,
    pub(super) name: String,
    /// Parent channel of a thread, and the user who began the thread.
    pub(super) parent: Option<String>,
    pub(super) owner: Option<String>,
    /// Whether a message here can begin a thread.
    pub(super) threads: bool,
    /// Newest message when the channel was last described.
    pub(super) newest: u64,
}

impl CachedChannel {
    /// Returns a placeholder for a channel whose look-up failed. Only its server is known.
    pub(super) fn in_guild(guild: Option<&str>, error: &DiscordError) -> Self {
        tracing::debug!(%error, "failed to look up a channel");
        Self { guild: guild.map(str::to_owned), ..Self::default() }
    }
}

impl Default for GuildCache {
    fn default() -> Self {
        let known = CachedGuilds {
            channels: LruCache::new(MAX_CACHE_ENTRIES),
            guilds: LruCache::new(MAX_CACHE_ENTRIES),
            roles: LruCache::new(MAX_CACHE_ENTRIES),
            own_roles: LruCache::new(MAX_CACHE_ENTRIES),
        };
        Self { known: Mutex::new(known), expected: watch::Sender::new(0) }
    }
}

impl GuildCache {
    /// Records that a session begins and that the descriptions of `guilds` servers will follow.
    pub(super) fn expect(&self, guilds: usize) {
        // Until they arrive, any channel may have new messages.
        self.lock().channels.iter_mut().for_each(|(_, place)| place.newest = u64::MAX);
        self.expected.send_replace(guilds);
    }

    /// Waits until the descriptions of all servers have arrived.
    pub(super) async fn wait_until_complete(&self) {
        let mut expected = self.expected.subscribe();
        // Cannot fail: `self` owns the sender.
        expected.wait_for(|left| *left == 0).await.ok();
    }

    /// Records a server's description from the gateway. `me` is the bot's user.
    pub(super) fn guild(&self, guild: Guild, me: &str) {
        self.learn(guild, me, true);
        self.expected.send_modify(|left| *left = left.saturating_sub(1));
    }

    /// Returns whether a server's channels are known.
    pub(super) fn knows(&self, guild: &str) -> bool {
        self.lock().guilds.get(guild).is_some()
    }

    /// Records a server's description. The server counts as known if the description is complete (`is_complete`).
    pub(super) fn learn(&self, guild: Guild, me: &str, is_complete: bool) {
        let mut known = self.lock();
        for channel in guild.channels.into_iter().chain(guild.threads) {
            known.keep(channel, Some(&guild.id));
        }
        for role in guild.roles {
            known.keep_role(role, me);
        }
        if is_complete {
            known.guilds.insert(guild.id, ());
        }
    }

    /// Records a new or changed channel or thread.
    pub(super) fn channel(&self, channel: ChannelInfo) -> CachedChannel {
        let mut known = self.lock();
        known.keep(channel, None)
    }

    /// Records a new or changed role.
    pub(super) fn role(&self, role: DiscordRole, me: &str) {
        self.lock().keep_role(role, me);
    }

    pub(super) fn get(&self, id: &str) -> Option<CachedChannel> {
        self.lock().channels.get(id).cloned()
    }

    /// Returns a channel's name.
    pub(super) fn name(&self, id: &str) -> Option<String> {
        self.lock().channels.get(id).map(|place| place.name.clone()).filter(|name| !name.is_empty())
    }

    pub(super) fn role_name(&self, id: &str) -> Option<String> {
        self.lock().roles.get(id).cloned()
    }

    /// Returns whether a role is the one that a server created for the bot. Mentioning it means mentioning the bot.
    pub(super) fn is_own_role(&self, id: &str) -> bool {
        self.lock().own_roles.get(id).is_some()
    }

    /// Returns the channels and threads with messages newer than an id, and the newest message of each.
    pub(super) fn newer_than(&self, id: u64) -> Vec<(String, u64)> {
        let known = self.lock();
        let newer = known.channels.iter().filter(|(_, place)| place.newest > id);
        newer.map(|(channel, place)| (channel.clone(), place.newest)).collect()
    }

    /// Returns the threads of these channels.
    pub(super) fn threads_of(&self, channels: &HashSet<String>) -> Vec<String> {
        let known = self.lock();
        let threads = known
            .channels
            .iter()
            .filter(|(_, place)| place.parent.as_ref().is_some_and(|parent| channels.contains(parent)));
        threads.map(|(thread, _)| thread.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, CachedGuilds> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedGuilds {
    fn keep(&mut self, info: ChannelInfo, guild: Option<&str>) -> CachedChannel {
        let thread = THREADS.contains(&info.kind);
        let channel = CachedChannel {
            guild: info.guild_id.or_else(|| guild.map(str::to_owned)),
            name: info.name,
            // The parent of a channel is a category, which has no messages.
            parent: info.parent_id.filter(|_| thread),
            owner: info.owner_id.filter(|_| thread),
            threads: PARENTS.contains(&info.kind),
            newest: info.last_message_id.and_then(|id| id.parse().ok()).unwrap_or(0),
        };
        self.channels.insert(info.id, channel.clone());
        channel
    }

    fn keep_role(&mut self, role: DiscordRole, me: &str) {
        if role.tags.and_then(|tags| tags.bot_id).is_some_and(|bot| bot == me) {
            self.own_roles.insert(role.id.clone(), ());
        }
        self.roles.insert(role.id, role.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test(start_paused = true)]
    async fn server_descriptions_fill_the_cache() {
        let places = GuildCache::default();
        places.expect(1);
        let waits = tokio::time::timeout(std::time::Duration::from_secs(1), places.wait_until_complete());
        assert!(waits.await.is_err(), "no description has arrived yet");
        let guild = json!({
            "id": "1",
            "channels": [
                {"id": "2", "type": 0, "name": "team", "parent_id": "99", "last_message_id": "50"},
                {"id": "4", "type": 2, "name": "voice", "last_message_id": null},
                {"name": "no id"},
            ],
            "threads": [{"id": "3", "type": 11, "name": "story", "parent_id": "2", "owner_id": "7"}],
            "roles": [{"id": "5", "name": "pudu", "tags": {"bot_id": "7"}}, {"id": "6", "name": "admins"}],
        });
        places.guild(serde_json::from_value(guild).unwrap(), "7");
        places.wait_until_complete().await;
        let team = CachedChannel {
            guild: Some("1".into()),
            name: "team".into(),
            threads: true,
            newest: 50,
            ..CachedChannel::default()
        };
        assert_eq!(places.get("2"), Some(team));
        let story = places.get("3").unwrap();
        assert_eq!(
            (story.parent.as_deref(), story.owner.as_deref(), story.threads),
            (Some("2"), Some("7"), false)
        );
        assert!(places.is_own_role("5") && !places.is_own_role("6"));
        assert_eq!((places.name("4"), places.role_name("6")), (Some("voice".into()), Some("admins".into())));
        assert_eq!(places.newer_than(49), [("2".to_owned(), 50)]);
        assert_eq!(places.threads_of(&HashSet::from(["2".to_owned()])), ["3"]);
    }

    #[test]
    fn the_bots_own_role_survives_many_other_roles() {
        let places = GuildCache::default();
        let role = |id: &str, bot: Option<&str>| {
            let tags = bot.map(|bot| json!({"bot_id": bot}));
            serde_json::from_value(json!({"id": id, "name": id, "tags": tags})).unwrap()
        };
        places.role(role("own", Some("7")), "7");
        for id in 0..=MAX_CACHE_ENTRIES {
            places.role(role(&id.to_string(), None), "7");
        }
        assert!(places.is_own_role("own"));
        assert_eq!(places.lock().roles.len(), MAX_CACHE_ENTRIES);
    }
}
