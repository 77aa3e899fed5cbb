//! Any body posted to the webhooks of Slack, Feishu and Telegram, unsigned and signed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pudu_channels::fuzzing::webhooks(data));
