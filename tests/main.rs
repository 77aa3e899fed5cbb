//! The daemon as people and platforms see it: the real binary against simulated platforms.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::string_slice, clippy::str_to_string, reason = "tests")]

mod accounts;
mod agents;
mod api;
mod artifacts;
mod asks;
mod attacks;
mod busy;
mod chat;
mod commands;
mod containers;
mod crash;
mod crash_rare;
mod dingtalk;
mod discord;
mod documents;
mod elsewhere;
mod escape;
mod feishu;
mod files;
mod house;
mod lifecycle;
mod numbers;
mod output;
mod page;
mod people;
mod platforms;
mod postgres;
mod scenarios;
mod skills;
mod slack;
mod talk;
mod tidy;
mod trouble;
mod web;
