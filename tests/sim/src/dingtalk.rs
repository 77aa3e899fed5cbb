//! A simulated DingTalk.
