//! The state: users, conversations, the bot's messages, and pending events.

use super::{
    cards::Card,
    error::{Answer, Refusal},
    stream::{Delivery, Link, Ticket},
};
use crate::{
    fault::Fault,
    stage::{self, Books},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::Instant;

/// Lifetime of an access token.
const TOKEN: Duration = Duration::from_secs(7200);

/// Options of the simulated platform.
#[derive(Clone, Debug)]
pub struct Options {
    /// Client ID of the app, and code of the robot.
    pub client_id: String,
    /// The app's secret.
    pub client_secret: String,
    /// Whether the bot's configuration contains the card template.
    pub cards: bool,
    /// ID of the only card template.
    pub template: String,
    /// The template's Markdown variable.
    pub content_key: String,
    /// The template's variable for buttons.
    pub buttons_key: String,
    /// Time after which an unacknowledged event is repeated; `None` is never.
    pub repeat: Option<Duration>,
    /// Interval of pings; `None` is never.
    pub ping: Option<Duration>,
    /// Silence between the announcement of a disconnect and the end.
    pub silence: Duration,
    /// Seed for random events.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            client_id: "dingsimulated0001".to_owned(),
            client_secret: "SIM-secret-of-the-simulated-dingtalk-app-0001".to_owned(),
            cards: true,
            template: "11111111-2222-4333-8444-555555555555.schema".to_owned(),
            content_key: "content".to_owned(),
            buttons_key: "buttons".to_owned(),
            repeat: Some(Duration::from_secs(60)),
            ping: Some(Duration::from_secs(20)),
            silence: Duration::from_secs(10),
            seed: 1,
        }
    }
}

/// Fate of the robot's messages to one user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// They arrive.
    #[default]
    Fine,
    /// The user's ID is unknown to the organization.
    Invalid,
    /// The user gets too many messages: this number of further sends is refused.
    Flooded(u32),
    /// The platform filters them.
    Filtered,
}

/// A person.
pub(crate) struct Person {
    /// ID in the organization; `None` for users from outside.
    pub(crate) staff: Option<String>,
    /// ID for this robot.
    pub(crate) sender: String,
    pub(crate) name: String,
    pub(crate) standing: Standing,
    /// ID of the private conversation with the robot.
    pub(crate) alone: String,
}

impl Person {
    /// Returns the bot's ID of the user.
    pub(crate) fn id(&self) -> &str {
        self.staff.as_deref().unwrap_or(&self.sender)
    }
}

/// A group, or a private chat with the robot.
#[derive(Default)]
pub(crate) struct Chat {
    /// Empty for a private one.
    pub(crate) title: String,
    /// Members.
    pub(crate) members: Vec<String>,
    pub(crate) group: bool,
    pub(crate) posts: Vec<Post>,
}

/// A message of the bot.
pub(crate) struct Post {
    pub(crate) id: String,
    pub(crate) body: Body,
    pub(crate) recalled: bool,
    pub(crate) pings: bool,
}

/// Kind of a message.
pub(crate) enum Body {
    Text(String),
    Markdown(String),
    File(String, Bytes),
    /// A card, by its ID; its text is stored there.
    Card,
}

/// A session webhook.
pub(crate) struct Session {
    pub(crate) chat: String,
    pub(crate) until: Instant,
}

/// The state of the platform.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) books: Books,
    pub(crate) random: fastrand::Rng,
    /// URL of the server, for generated URLs.
    pub(crate) url: String,
    pub(crate) people: Vec<Person>,
    pub(crate) chats: BTreeMap<String, Chat>,
    pub(crate) cards: HashMap<String, Card>,
    pub(crate) files: HashMap<String, (String, Bytes)>,
    pub(crate) sessions: HashMap<String, Session>,
    pub(crate) tickets: HashMap<String, Ticket>,
    pub(crate) links: Vec<Link>,
    pub(crate) deliveries: Vec<Delivery>,
    /// Every sent event by its message, for repetition.
    pub(crate) told: HashMap<String, Delivery>,
    pub(crate) token: Option<(String, Instant)>,
    /// Revoked scopes of the app.
    pub(crate) lost: BTreeSet<String>,
    /// Calls of one method per second; `None` is unlimited.
    pub(crate) qps: Option<u32>,
    pub(crate) spent: HashMap<String, (Instant, u32)>,
    /// Remaining calls of the month; `None` is unlimited.
    pub(crate) month: Option<u64>,
    pub(crate) banned: bool,
    /// Number of further cards whose delivery fails.
    pub(crate) undelivered: u32,
    /// Maximum length of a card's content, in characters.
    pub(crate) card_limit: Option<usize>,
    /// A word that is refused.
    pub(crate) taboo: Option<String>,
    last: u64,
}

impl World {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            books: Books::new(options.seed),
            random: fastrand::Rng::with_seed(options.seed),
            options,
            url: String::new(),
            people: Vec::new(),
            chats: BTreeMap::new(),
            cards: HashMap::new(),
            files: HashMap::new(),
            sessions: HashMap::new(),
            tickets: HashMap::new(),
            links: Vec::new(),
            deliveries: Vec::new(),
            told: HashMap::new(),
            token: None,
            lost: BTreeSet::new(),
            qps: None,
            spent: HashMap::new(),
            month: None,
            banned: false,
            undelivered: 0,
            card_limit: None,
            taboo: None,
            last: 1000,
        }
    }

    /// Returns a unique number.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn person(&self, id: &str) -> Option<&Person> {
        self.people.iter().find(|person| person.id() == id)
    }

    pub(crate) fn chat_mut(&mut self, id: &str) -> Answer<&mut Chat> {
        let unknown = || Refusal::invalid("openConversationId", "the conversation is not there");
        self.chats.get_mut(id).ok_or_else(unknown)
    }

    /// Shows a message in a chat.
    pub(crate) fn show(&mut self, chat: &str, id: &str, body: Body, pings: bool) -> Answer<()> {
        let post = Post { id: id.to_owned(), body, recalled: false, pings };
        self.chat_mut(chat)?.posts.push(post);
        Ok(())
    }

    /// Returns the current token: the previous one while it is valid.
    pub(crate) fn access_token(&mut self) -> (String, u64) {
        let now = Instant::now();
        if let Some((token, until)) = self.token.as_ref().filter(|(_, until)| *until > now) {
            return (token.clone(), (*until - now).as_secs());
        }
        let token = format!("simtoken{:08}", self.fresh());
        self.token = Some((token.clone(), now + TOKEN));
        (token, TOKEN.as_secs())
    }

    pub(crate) fn knows(&self, token: &str) -> bool {
        self.token.as_ref().is_some_and(|(good, until)| good == token && *until > Instant::now())
    }

    /// Counts a call against the limits per second and month.
    pub(crate) fn spend(&mut self, method: &str) -> Answer<()> {
        if self.banned {
            return Err(Refusal::Ban);
        }
        if let Some(left) = &mut self.month {
            let over = || Refusal::api(403, super::error::MONTH, "the month's calls are used up");
            *left = left.checked_sub(1).ok_or_else(over)?;
        }
        let Some(most) = self.qps else { return Ok(()) };
        let now = Instant::now();
        let (since, count) = self.spent.entry(method.to_owned()).or_insert((now, 0));
        if now - *since >= Duration::from_secs(1) {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        if *count > most { Err(Refusal::planned(&Fault::TooMany(1))) } else { Ok(()) }
    }

    /// Refuses texts with the forbidden word.
    pub(crate) fn reads(&self, text: &str) -> Answer<()> {
        match &self.taboo {
            Some(word) if text.contains(word) => {
                Err(Refusal::invalid("content", "the content holds words that are not allowed"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a call if the app has lost a scope.
    pub(crate) fn scope(&self, name: &str) -> Answer<()> {
        if !self.lost.contains(name) {
            return Ok(());
        }
        let text = format!("the app lacks the permission [{name}], apply for it in the console");
        Err(Refusal::Api(403, "Forbidden.AccessDenied.AccessTokenPermissionDenied".to_owned(), text))
    }
}

impl stage::World for World {
    fn books(&mut self) -> &mut Books {
        &mut self.books
    }

    fn refuse(fault: &Fault) -> stage::Answer {
        Refusal::planned(fault).reply()
    }
}

/// Returns milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
