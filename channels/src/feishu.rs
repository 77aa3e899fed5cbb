//! Feishu.
