//! A simulated Slack.
