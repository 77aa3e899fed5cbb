//! Failure of a call to a platform. The variants correspond to the caller's next step.

use crate::SendError;
use pudu_net::{reqwest, retry};
use std::{error::Error, fmt::Debug, time::Duration};

/// Why a call failed. `C` contains the cases specific to one platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError<C = NoCase> {
    /// Calls of this kind have to wait. Nothing was done.
    #[error("the platform asks to wait {0:?}")]
    Wait(Duration),
    /// All calls of the bot have to wait. Nothing was done.
    #[error("the platform asks to wait {0:?}")]
    WaitForAll(Duration),
    /// The credentials are invalid. Nothing was done.
    #[error("the platform refuses the credentials: {0}")]
    Auth(String),
    /// The access token is no longer valid. Nothing was done.
    #[error("the access token is not valid: {0}")]
    StaleToken(String),
    /// The message does not exist, or can no longer change: a new one has to replace it.
    #[error("{0}")]
    Gone(String),
    /// Permanent failure. Nothing was done.
    #[error("{0}")]
    Refused(String),
    /// No connection was established. Nothing was done.
    #[error("{0}")]
    Unconnected(String),
    /// The call may or may not have succeeded.
    #[error("{0}")]
    Unknown(String),
    /// The file to send could not be read. Nothing was done.
    #[error("{0}")]
    File(String),
    /// A case specific to this platform.
    #[error("{0}")]
    Special(C),
}

/// Cases of failure besides the general ones.
pub(crate) trait ErrorCase: Error + Clone {
    /// Returns the general error for callers that do not distinguish the case.
    fn general(self) -> CallError;

    /// Returns whether the platform, or the network to it, is failing.
    fn is_outage(&self) -> bool {
        false
    }
}

/// The cases of one platform: any type except [`NoCase`], which needs no conversion.
pub(crate) trait PlatformCase: ErrorCase {}

/// No cases besides the general ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoCase {}

/// Wait if a platform does not specify one.
pub(crate) const DEFAULT_WAIT: Duration = Duration::from_secs(2);

impl<C: ErrorCase> CallError<C> {
    /// Returns whether the call may have had its effect.
    pub(crate) fn may_be_done(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Special(case) => case.clone().general().is_unknown(),
            _ => false,
        }
    }

    /// Returns whether the platform, or the network to it, is failing.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            // For `StaleToken`, a fresh token was refused, too.
            Self::StaleToken(_) | Self::Unconnected(_) | Self::Unknown(_) => true,
            Self::Special(case) => case.is_outage(),
            _ => false,
        }
    }

    /// Returns whether the platform refuses the content of the call. Nothing was done.
    pub(crate) fn is_refused(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Special(case) => matches!(case.clone().general(), CallError::Refused(_)),
            _ => false,
        }
    }

    /// Returns how long the platform asks to wait.
    pub(crate) fn wait(&self) -> Option<Duration> {
        match self {
            Self::Wait(after) | Self::WaitForAll(after) => Some(*after),
            Self::Special(case) => case.clone().general().wait(),
            _ => None,
        }
    }

    /// Returns whether the same call may succeed later without any other change, once the platform has recovered or the
    /// credentials are valid.
    pub(crate) fn is_passing(&self) -> bool {
        self.wait().is_some() || matches!(self, Self::Auth(_)) || self.is_outage()
    }

    /// Converts the error of a call that only prepared another one, or has no visible effect, to an error that means
    /// that nothing was done.
    pub(crate) fn before(self) -> Self {
        match self {
            Self::Unknown(what) => Self::Unconnected(what),
            Self::Special(case) if case.clone().general().is_unknown() => Self::Unconnected(case.to_string()),
            other => other,
        }
    }

    /// Classifies an error of the HTTP client, described without the URL, which may contain secrets.
    pub(crate) fn of_client(error: reqwest::Error) -> Self {
        let unconnected = error.is_connect() || error.is_builder();
        let text = describe(error);
        if unconnected { Self::Unconnected(text) } else { Self::Unknown(text) }
    }

    /// Classifies a response that is not the platform's own: an intermediary sent or truncated it. `wait` is the delay
    /// requested by its headers.
    pub(crate) fn of_status(status: u16, wait: Option<Duration>) -> Self {
        match status {
            413 => Self::Refused("the request is too large".to_owned()),
            429 => Self::Wait(wait.unwrap_or(DEFAULT_WAIT)),
            _ => Self::Unknown(format!("an unreadable response (HTTP {status})")),
        }
    }

    /// Converts the platform's cases to general ones.
    fn general(self) -> CallError {
        match self {
            Self::Wait(after) => CallError::Wait(after),
            Self::WaitForAll(after) => CallError::WaitForAll(after),
            Self::Auth(what) => CallError::Auth(what),
            Self::StaleToken(what) => CallError::StaleToken(what),
            Self::Gone(what) => CallError::Gone(what),
            Self::Refused(what) => CallError::Refused(what),
            Self::Unconnected(what) => CallError::Unconnected(what),
            Self::Unknown(what) => CallError::Unknown(what),
            Self::File(what) => CallError::File(what),
            Self::Special(case) => case.general(),
        }
    }

    fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

impl ErrorCase for NoCase {
    fn general(self) -> CallError {
        match self {}
    }
}

impl<C: PlatformCase> From<CallError<C>> for CallError {
    fn from(error: CallError<C>) -> Self {
        error.general()
    }
}

impl<C: PlatformCase> From<CallError<C>> for SendError {
    fn from(error: CallError<C>) -> Self {
        error.general().into()
    }
}

impl From<CallError> for SendError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Wait(after) | CallError::WaitForAll(after) => {
                Self::Later { after: after.min(retry::MAX_RETRY_DELAY) }
            }
            // New credentials may be configured at any time, and the reply is still wanted then.
            CallError::Auth(what)
            | CallError::StaleToken(what)
            | CallError::Unconnected(what)
            | CallError::Unknown(what) => Self::Unreachable(what),
            CallError::File(what) => Self::File(what),
            CallError::Gone(what) | CallError::Refused(what) => Self::Refused(what),
            CallError::Special(case) => match case {},
        }
    }
}

/// Describes an error of the HTTP client without the URL, which may contain secrets.
pub(crate) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let text = if error.is_timeout() { "the call timed out".to_owned() } else { error.to_string() };
    pudu_net::with_causes(text, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    enum TestCase {
        #[error("crowded")]
        Crowded(Duration),
        #[error("strange")]
        Strange,
        #[error("too old")]
        TooOld,
    }

    impl ErrorCase for TestCase {
        fn general(self) -> CallError {
            match self {
                Self::Crowded(after) => CallError::Wait(after),
                Self::Strange => CallError::Unknown("strange".into()),
                Self::TooOld => CallError::Refused("too old".into()),
            }
        }

        fn is_outage(&self) -> bool {
            *self == Self::Strange
        }
    }

    impl PlatformCase for TestCase {}

    #[test]
    fn a_platform_case_counts_as_its_general_error() {
        let second = Duration::from_secs(1);
        let later = SendError::Later { after: second };
        let cut = |what: &str| SendError::Unreachable(what.into());
        // The error; whether it is temporary, an outage, possibly done, a refusal; and the error of the
        // reply.
        let cases: [(CallError<TestCase>, [bool; 4], SendError); 12] = [
            (CallError::Wait(second), [true, false, false, false], later.clone()),
            (CallError::WaitForAll(second), [true, false, false, false], later.clone()),
            (CallError::Auth("no".into()), [true, false, false, false], cut("no")),
            (CallError::StaleToken("no".into()), [true, true, false, false], cut("no")),
            (CallError::Gone("no".into()), [false; 4], SendError::Refused("no".into())),
            (CallError::Refused("no".into()), [false, false, false, true], SendError::Refused("no".into())),
            (CallError::Unconnected("no".into()), [true, true, false, false], cut("no")),
            (CallError::Unknown("no".into()), [true, true, true, false], cut("no")),
            (CallError::File("no".into()), [false; 4], SendError::File("no".into())),
            (CallError::Special(TestCase::Crowded(second)), [true, false, false, false], later),
            (CallError::Special(TestCase::Strange), [true, true, true, false], cut("strange")),
            (
                CallError::Special(TestCase::TooOld),
                [false, false, false, true],
                SendError::Refused("too old".into()),
            ),
        ];
        for (error, expected, reply_error) in cases {
            let found = [error.is_passing(), error.is_outage(), error.may_be_done(), error.is_refused()];
            assert_eq!(found, expected, "{error:?}");
            assert!(!error.clone().before().may_be_done(), "{error:?}");
            assert_eq!(SendError::from(error), reply_error);
        }
        let for_ever = CallError::<TestCase>::Wait(Duration::MAX);
        assert_eq!(SendError::from(for_ever), SendError::Later { after: retry::MAX_RETRY_DELAY });
    }

    #[test]
    fn a_status_alone_is_classified_cautiously() {
        let nine = Duration::from_secs(9);
        let check =
            |status, wait, expected: CallError| assert_eq!(CallError::of_status(status, wait), expected);
        check(413, None, CallError::Refused("the request is too large".into()));
        check(429, None, CallError::Wait(DEFAULT_WAIT));
        check(429, Some(nine), CallError::Wait(nine));
        check(502, Some(nine), CallError::Unknown("an unreadable response (HTTP 502)".into()));
        check(200, None, CallError::Unknown("an unreadable response (HTTP 200)".into()));
    }

    #[tokio::test]
    async fn an_exchange_without_a_connection_has_no_effect() {
        let client = pudu_net::client().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let get = async |url: String| {
            let request = client.get(url).timeout(Duration::from_millis(200));
            CallError::<NoCase>::of_client(request.send().await.unwrap_err())
        };
        let silent = get(format!("http://{address}/secret")).await;
        assert!(silent.may_be_done() && !silent.to_string().contains("secret"), "{silent:?}");
        drop(listener);
        for url in [format!("http://{address}/secret"), "no address".to_owned()] {
            let nobody = get(url).await;
            assert!(matches!(&nobody, CallError::Unconnected(why) if !why.contains("secret")), "{nobody:?}");
        }
    }
}
