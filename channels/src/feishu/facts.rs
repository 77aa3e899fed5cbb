//! Facts from the documentation of Feishu and Lark: failures, limits, scopes, and how an operator gets credentials.
//! Many errors are HTTP 200, and rate limits are HTTP 400, so the code in the body decides; the status counts only
//! without a code.

use super::card::FeishuPage;
use crate::{
    doctor::{AppScope, DoctorFacts, needed, useful},
    reply::Capabilities,
    split::{Limit, Unit},
    transport::{
        CallError::{self, Auth, Gone, Refused, StaleToken, Unknown},
        ErrorCase, FailureTable,
        Meaning::{Act, Pause, Wait, WaitForAll},
        PlatformCase,
    },
};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Wait if the platform does not specify one.
const SECOND: Duration = Duration::from_secs(1);
/// Maximum wait that the platform may request.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);

/// Why a call failed.
pub(super) type FeishuError = CallError<FeishuCase>;

/// Failures: <https://open.feishu.cn/document/server-docs/api-call-guide/generic-error-code>,
/// <https://open.feishu.cn/document/server-docs/im-v1/message/create>,
/// <https://open.feishu.cn/document/cardkit-v1/card/create>.
const FAILURES: FailureTable<i64, FeishuCase> = FailureTable {
    codes: &[
        // TRAP: sent as HTTP 400, not as 429.
        (&[99_991_400], WaitForAll(SECOND)),
        // Rate limits of a chat, of the message service, and while a user interacts with the card.
        (&[230_020, 11_232, 11_233, 200_810], Pause(SECOND)),
        (&[99_991_661, 99_991_663, 99_991_664, 99_991_665, 99_991_668, 99_991_671], Act(StaleToken)),
        (&[10_003, 10_014, 10_012], Act(Auth)),
        (&[1, 1500, 2200, 1_000_040_343], Act(Unknown)),
        // The message with this key is still being sent.
        (&[230_049], Act(Unknown)),
        (&[230_011, 230_031, 200_740, 200_750], Act(Gone)),
    ],
    statuses: &[(429..=429, Wait(SECOND)), (500..=u16::MAX, Act(Unknown))],
    otherwise: Act(Refused),
    unreadable: &[
        (404..=404, Act(|status| Refused(format!("an unreadable response ({status}): check `domain`")))),
        (429..=429, WaitForAll(SECOND)),
    ],
};

/// Code: the app lacks the scope that the call needs.
const NO_SCOPE: i64 = 99_991_672;
/// Codes: the message being replied to is gone, or does not accept replies.
const UNANSWERABLE: [i64; 3] = [230_011, 230_019, 230_071];
/// Codes: a card's stream is closed, by the platform or by pudu.
const STREAM_CLOSED: [i64; 2] = [200_850, 300_309];
/// Code: an operation's sequence number is not greater than the last one.
const SEQUENCE: i64 = 300_317;
/// Codes: Feishu rejects the form of the content, of the card, or of its elements.
const CONTENT: [i64; 7] = [230_001, 230_025, 230_054, 230_055, 230_099, 200_621, 11_310];
const CARD: [i64; 3] = [200_740, 200_750, 200_860];
const CARD_CONTENT: std::ops::RangeInclusive<i64> = 300_301..=300_316;

/// Files: <https://open.feishu.cn/document/server-docs/im-v1/file/create>,
/// <https://open.feishu.cn/document/server-docs/im-v1/message/get-2>.
pub(super) const CAPABILITIES: Capabilities = Capabilities {
    platform: "Feishu",
    // Entities and escapes add to this; a text that becomes too long is cut into smaller parts.
    text: Limit { unit: Unit::Bytes, max: 20_000, columns: 56 },
    max_upload_bytes: 30_000_000,
    max_download_bytes: 100_000_000,
    edits: true,
    deletes: true,
    buttons: true,
    // The tool of the agent allows fewer.
    form_fields: 48,
    idempotent_send: true,
};

/// Maximum size of a file sent as a picture, in bytes:
/// <https://open.feishu.cn/document/server-docs/im-v1/image/create>.
pub(super) const MAX_PICTURE_BYTES: u64 = 10_000_000;

pub(super) const DOCTOR: DoctorFacts = DoctorFacts {
    credentials: "credentials",
    credentials_help: "copy App ID and App Secret from the developer console into `app_id` and `app_secret`; check that \
                       `domain` is Feishu's or Lark's, wherever the app is",
    url_key: "domain",
    // The sequence numbers of cards also depend on the clock.
    clock: "events whose time differs by more than five minutes are rejected",
    grant_help: "add {} in the developer console under Permissions & Scopes, then publish a version of the app",
};

/// A scope, and a call that needs it for an object that does not exist: the platform reports a missing scope before it
/// looks for the object.
pub(super) struct ScopeProbe {
    pub(super) scope: AppScope,
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) body: fn() -> Option<Value>,
}

/// <https://open.feishu.cn/document/server-docs/application-scope/scope-list>
pub(super) const SCOPES: [ScopeProbe; 7] = [
    ScopeProbe {
        scope: needed("im:message:send_as_bot", "pudu cannot answer"),
        method: Method::POST,
        path: "im/v1/messages/om_0/reply",
        body: || Some(json!({"msg_type": "text", "content": "{\"text\":\"?\"}"})),
    },
    ScopeProbe {
        scope: useful(
            "cardkit:card:write",
            "answers are not streamed; each update replaces the whole message",
        ),
        method: Method::POST,
        path: "cardkit/v1/cards",
        // The card is created but not sent.
        body: || Some(json!({"type": "card_json", "data": FeishuPage::sign().card(true).to_string()})),
    },
    get(
        "im:resource",
        "files can be neither received nor sent",
        "im/v1/messages/om_0/resources/file_0?type=file",
    ),
    ScopeProbe {
        scope: useful("im:message.reactions:write_only", "waiting messages get no reaction"),
        method: Method::DELETE,
        path: "im/v1/messages/om_0/reactions/0",
        body: || None,
    },
    get(
        "im:message",
        "pudu cannot look up recalls and presses after a restart, forwarded messages, or files in quoted messages",
        "im/v1/messages/om_0",
    ),
    get("im:chat:readonly", "pudu cannot determine the chat of presses after a restart", "im/v1/chats/oc_0"),
    get(
        "contact:user.base:readonly",
        "in groups the agent does not know the names of users",
        "contact/v3/users/ou_0?user_id_type=open_id",
    ),
];

const fn get(name: &'static str, without: &'static str, path: &'static str) -> ScopeProbe {
    ScopeProbe { scope: useful(name, without), method: Method::GET, path, body: || None }
}

/// Failures specific to Feishu.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FeishuCase {
    /// A refusal with its code.
    #[error("{what}")]
    Refusal {
        code: i64,
        what: String,
        /// Whether the message does not exist, or can no longer change.
        gone: bool,
    },
}

impl ErrorCase for FeishuCase {
    fn general(self) -> CallError {
        match self {
            Self::Refusal { what, gone: true, .. } => Gone(what),
            Self::Refusal { what, gone: false, .. } => Refused(what),
        }
    }
}

impl PlatformCase for FeishuCase {}

/// Classification of a refusal by its code.
impl FeishuError {
    /// Returns the code of a refusal.
    pub(super) fn code(&self) -> Option<i64> {
        match self {
            Self::Special(FeishuCase::Refusal { code, .. }) => Some(*code),
            _ => None,
        }
    }

    /// Returns whether the failure is permanent: the object does not exist, or the call is refused.
    pub(super) fn is_final(&self) -> bool {
        self.code().is_some() || matches!(self, Self::Refused(_) | Self::Gone(_))
    }

    /// Returns whether the app lacks the scope that the call needs.
    pub(super) fn is_scope(&self) -> bool {
        self.code() == Some(NO_SCOPE)
    }

    /// Returns whether the message being replied to is gone, or does not accept replies.
    pub(super) fn is_unanswerable(&self) -> bool {
        self.code().is_some_and(|code| UNANSWERABLE.contains(&code))
    }

    /// Returns whether a card's stream is closed, by the platform or by pudu.
    pub(super) fn is_closed(&self) -> bool {
        self.code().is_some_and(|code| STREAM_CLOSED.contains(&code))
    }

    /// Returns whether an operation's sequence number was not greater than the last one.
    pub(super) fn is_sequence(&self) -> bool {
        self.code() == Some(SEQUENCE)
    }

    /// Returns whether a simpler form of the content may be accepted: nothing was done, and the chat is not the cause.
    pub(super) fn may_pass_otherwise(&self) -> bool {
        let is = |code| CONTENT.contains(&code) || CARD.contains(&code) || CARD_CONTENT.contains(&code);
        self.is_scope() || self.code().is_some_and(is)
    }
}

/// Classifies a response with a nonzero code. `reset` is the requested wait in seconds.
pub(super) fn failure(status: u16, code: i64, msg: &str, reset: Option<u64>) -> FeishuError {
    let refusal = |what, gone| CallError::Special(FeishuCase::Refusal { code, what, gone });
    match FAILURES.error(|known| *known == code, status, format!("{msg} (code {code})"), wait(reset)) {
        Gone(what) => refusal(what, true),
        Refused(what) => refusal(what, false),
        error => error,
    }
}

/// Classifies a response that is not the platform's own: an intermediary sent or truncated it.
pub(super) fn unreadable(status: u16, reset: Option<u64>) -> FeishuError {
    FAILURES.unreadable(status, wait(reset))
}

fn wait(reset: Option<u64>) -> Option<Duration> {
    reset.map(|seconds| Duration::from_secs(seconds).clamp(SECOND, MAX_RETRY_DELAY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        doctor::tests::check_facts,
        transport::{NoCase, check_table},
    };

    #[test]
    fn each_row_of_the_tables_is_reached() {
        check_table(&FAILURES, |code, other| code == other);
        check_facts(&DOCTOR, &SCOPES.map(|probe| probe.scope));
    }

    #[test]
    fn each_code_is_classified() {
        let wait = |seconds| CallError::<NoCase>::Wait(Duration::from_secs(seconds));
        let refused = |code: i64| Refused(format!("m (code {code})"));
        let gone = |code: i64| Gone(format!("m (code {code})"));
        let unknown = |code: i64| Unknown(format!("m (code {code})"));
        let cases = [
            // TRAP: rate limits arrive with status 400 or 200.
            (400, 99_991_400, CallError::WaitForAll(Duration::from_secs(7))),
            (429, 99_991_400, CallError::WaitForAll(Duration::from_secs(7))),
            (200, 230_020, wait(1)),
            (400, 230_020, wait(1)),
            (400, 11_232, wait(1)),
            (400, 11_233, wait(1)),
            (400, 200_810, wait(1)),
            (400, 99_991_663, StaleToken("m (code 99991663)".into())),
            (200, 99_991_668, StaleToken("m (code 99991668)".into())),
            (200, 10_003, Auth("m (code 10003)".into())),
            (200, 10_014, Auth("m (code 10014)".into())),
            (200, 2200, unknown(2200)),
            (200, 1500, unknown(1500)),
            // TRAP: refused, although the message is being sent: only the key identifies it as the same message.
            (400, 230_049, unknown(230_049)),
            (500, 4711, unknown(4711)),
            (400, 230_011, gone(230_011)),
            (400, 230_031, gone(230_031)),
            (200, 200_740, gone(200_740)),
            (400, 200_750, gone(200_750)),
            // TRAP: HTTP 200 with a failure.
            (200, 230_002, refused(230_002)),
            (400, 230_006, refused(230_006)),
            (400, 230_013, refused(230_013)),
            (400, 230_018, refused(230_018)),
            (400, 230_025, refused(230_025)),
            (400, 230_099, refused(230_099)),
            (400, 200_860, refused(200_860)),
            (403, 99_991_672, refused(99_991_672)),
        ];
        for (status, code, meaning) in cases {
            let found: CallError = failure(status, code, "m", Some(7)).into();
            assert_eq!(found, meaning, "{status} {code}");
        }
        let for_all = |seconds| CallError::WaitForAll(Duration::from_secs(seconds));
        assert_eq!(failure(400, 99_991_400, "m", None), for_all(1));
        assert_eq!(failure(400, 99_991_400, "m", Some(u64::MAX)), for_all(3600));
        assert_eq!(unreadable(429, Some(3)), for_all(3));
        assert!(unreadable(502, None).may_be_done());
    }
}
