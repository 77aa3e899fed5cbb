//! A simulated Feishu.
