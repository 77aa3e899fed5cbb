//! DingTalk.
