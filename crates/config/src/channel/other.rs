//! DeerFlow's platforms that this version does not support yet. Their keys are known, so that a file with them is
//! accepted. A bot on such a platform is skipped, and reported if it is on.

use super::super::reader::Section;

/// A platform of DeerFlow.
#[derive(Debug)]
pub(super) struct Other {
    /// Its name.
    pub(super) name: &'static str,
    /// The required keys.
    pub(super) credentials: &'static [&'static str],
    /// Its other keys.
    keys: &'static [&'static str],
}

const COMMON: &[&str] = &[
    "agent_choice",
    "allowed_chats",
    "allowed_users",
    "api_url",
    "follow_ups",
    "language",
    "pairing",
    "session",
    "timezone",
];

const OTHERS: &[Other] = &[
    Other { name: "wecom", credentials: &["bot_id", "bot_secret"], keys: &["working_message"] },
    Other {
        name: "wechat",
        credentials: &["bot_token"],
        keys: &[
            "allowed_file_extensions",
            "ilink_app_id",
            "ilink_bot_id",
            "max_inbound_file_bytes",
            "max_inbound_image_bytes",
            "max_outbound_file_bytes",
            "max_outbound_image_bytes",
            "polling_retry_delay",
            "polling_timeout",
            "qrcode_login_enabled",
            "qrcode_poll_interval",
            "qrcode_poll_timeout",
            "route_tag",
            "state_dir",
        ],
    },
    Other {
        name: "github",
        credentials: &["webhook_secret"],
        keys: &["app_id", "bot_login", "default_mention_login", "private_key"],
    },
    Other {
        name: "buzz",
        credentials: &["private_key"],
        keys: &["allowed_pubkeys", "channels", "relay_url", "require_mention"],
    },
];

/// Finds a platform by its name.
pub(super) fn find(name: &str) -> Option<&'static Other> {
    OTHERS.iter().find(|other| other.name == name)
}

/// Skips a bot's section.
pub(super) fn read(section: &Section<'_>, other: &Other) {
    for keys in [COMMON, other.credentials, other.keys] {
        section.know_all(keys);
    }
    if section.is_needed() {
        let what = format!("this version does not support {}; the account is ignored", other.name);
        section.warn_here(what, "set `enabled: false` to silence this warning");
    }
}
