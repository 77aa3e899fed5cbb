//! Identifiers. Each kind is its own type, so that a run cannot be looked up by a thread's id.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(String);

        impl $name {
            /// Creates a new id that sorts after all earlier ones.
            #[must_use]
            pub fn fresh() -> Self {
                Self(uuid::Uuid::now_v7().to_string())
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// Names a thread: one conversation's memory, from its first message to `/new`.
    ThreadId
}
id! {
    /// Names a run: the agent's work on one turn.
    RunId
}
id! {
    /// Names a message inside a thread. A message with the same id replaces the older one.
    MessageId
}
id! {
    /// Names one call of a tool. Chosen by the model; unique inside a thread.
    CallId
}
