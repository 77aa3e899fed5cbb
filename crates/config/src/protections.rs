//! Sections of DeerFlow that protect people. A section that pudu has not built stops the start if it is switched
//! on: a note would leave people without the protection that they rely on. A section that pudu always enforces cannot
//! be switched off.
//!
//! Deliberately absent: sections that are built as DeerFlow has them (`guardrails.rs`, `loops.rs`, `progress.rs`,
//! `model.rs`, `subagents.rs`, `budgets.rs`), and those that only do something useful (`later.rs`).

use super::reader::Section;

/// A section with a switch that stops the start: its key, the missing protection, and the remedy.
type Unbuilt = (&'static str, &'static str, &'static str);

const UNBUILT: &[Unbuilt] = &[(
    "authorization",
    "this version does not give tools to roles: everyone with access may use all of them",
    "name who may speak with `allowed_users` and who approves with `approvers`; then write `enabled: false`",
)];

/// Sections whose protection is always enforced: key and effect.
const ALWAYS: &[(&str, &str)] = &[
    ("read_before_write", "a file is read before it is changed"),
    ("safety_finish_reason", "an answer that a provider's filter cut calls no tool"),
    ("skill_scan", "a skill is looked through before it is installed"),
];

/// Refuses sections that are switched on and not built, and reports where switching off has no effect.
pub(super) fn check(top: &Section<'_>) {
    for (key, what, help) in UNBUILT {
        refuse_if_on(&top.section(key), what, help);
    }
    for (key, what) in ALWAYS {
        let section = top.section(key);
        section.ignore_rest();
        if section.flag("enabled").foreign() == Some(false) {
            section.warn("enabled", format!("{what}, whatever is said here"), "remove it, or write true");
        }
    }
    bound_identity(&top.section("channel_connections"));
    own_code(top);
}

/// Refuses a section that is switched on, or that says something without saying whether it is.
fn refuse_if_on(section: &Section<'_>, what: &str, help: &str) {
    section.ignore_rest();
    let says = section.present().any(|entry| entry.key != "enabled");
    let enabled = section.flag("enabled");
    if enabled.spoilt {
        return;
    }
    match enabled.foreign() {
        Some(true) => section.refuse("enabled", what, help),
        None if says => section.refuse_here(what, help),
        Some(false) | None => {}
    }
}

/// Refuses the requirement that people connect themselves in DeerFlow's frontend: pudu cannot enforce it, so strangers
/// would be let in.
fn bound_identity(section: &Section<'_>) {
    section.ignore_rest();
    let enabled = section.flag("enabled").foreign();
    let required = section.flag("require_bound_identity").foreign();
    if matches!((enabled, required), (Some(true), None | Some(true)) | (None, Some(true))) {
        let key = if required.is_some() { "require_bound_identity" } else { "enabled" };
        section.refuse(
            key,
            "this version admits people who are bound to no account, so strangers would be let in",
            "write `pairing: true` in each account, which admits people by a code; people bind themselves with `/connect`; then write `enabled: false` here",
        );
    }
}

/// Code of the operator's own may be a guard, and no Python runs here.
fn own_code(top: &Section<'_>) {
    let none = "remove it; if it guards something, use `approvals`";
    let extensions = top.section("extensions");
    if extensions.names("middlewares").foreign().is_some_and(|names| !names.is_empty()) {
        extensions.refuse("middlewares", "pudu runs no middlewares written in Python", none);
    }
    let safety = top.section("safety_finish_reason");
    if safety.entry("detectors").is_some() {
        safety.refuse(
            "detectors",
            "pudu runs no detectors written in Python; it has those of DeerFlow",
            none,
        );
    }
}
