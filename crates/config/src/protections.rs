//! Sections of DeerFlow that protect people. A section that pudu does not implement prevents the start if it is
//! switched on: a mere warning would leave people without the protection that they rely on. A section that pudu always
//! enforces cannot be switched off.
//!
//! Deliberately absent: sections that are implemented as in DeerFlow (`guardrails.rs`, `loops.rs`, `progress.rs`,
//! `model.rs`, `subagents.rs`, `budgets.rs`), and sections that do not protect (`later.rs`).

use super::reader::Section;

/// A section that prevents the start if it is switched on: its key, the missing protection, and the fix.
type Unbuilt = (&'static str, &'static str, &'static str);

const UNBUILT: &[Unbuilt] = &[(
    "authorization",
    "this version does not restrict tools by role: every user may use all tools",
    "list the users in `allowed_users` and the approvers in `approvers`; then write `enabled: false`",
)];

/// Sections whose protection is always enforced: their keys and effects.
const ALWAYS: &[(&str, &str)] = &[
    ("read_before_write", "pudu always reads a file before a change"),
    ("safety_finish_reason", "pudu never calls tools from an answer that a provider's filter cut"),
    ("skill_scan", "pudu always scans a skill before its installation"),
];

/// Refuses unimplemented sections that are switched on, and reports sections that cannot be switched off.
pub(super) fn check(top: &Section<'_>) {
    for (key, what, help) in UNBUILT {
        refuse_if_on(&top.section(key), what, help);
    }
    for (key, what) in ALWAYS {
        let section = top.section(key);
        note_others(&section, &["enabled", "detectors"]);
        if section.flag("enabled").foreign() == Some(false) {
            section.warn("enabled", format!("{what}; this key has no effect"), "remove it, or write true");
        }
    }
    bound_identity(&top.section("channel_connections"));
    own_code(top);
}

/// Refuses a section that is switched on, or that has keys but no switch.
fn refuse_if_on(section: &Section<'_>, what: &str, help: &str) {
    section.ignore_rest();
    let has_keys = section.present().any(|entry| entry.key != "enabled");
    let enabled = section.flag("enabled");
    if enabled.spoilt {
        return;
    }
    match enabled.foreign() {
        Some(true) => section.refuse("enabled", what, help),
        None if has_keys => section.refuse_here(what, help),
        Some(false) | None => {}
    }
}

/// Refuses the requirement that people link themselves in DeerFlow's frontend. pudu cannot enforce it, so strangers
/// would be admitted.
fn bound_identity(section: &Section<'_>) {
    section.ignore_rest();
    let enabled = section.flag("enabled").foreign();
    let required = section.flag("require_bound_identity").foreign();
    if matches!((enabled, required), (Some(true), None | Some(true)) | (None, Some(true))) {
        let key = if required.is_some() { "require_bound_identity" } else { "enabled" };
        return section.refuse(
            key,
            "this version also admits users without an account, so strangers would be admitted",
            "write `pairing: true` in each account, which admits users by a code; users link themselves with \
             `/connect`; then write `enabled: false` here",
        );
    }
    if enabled == Some(true) {
        note_others(section, &["enabled", "require_bound_identity"]);
    }
}

/// Reports the keys of a section that have no effect: all but the given ones.
fn note_others(section: &Section<'_>, used: &[&str]) {
    section.ignore_rest();
    let others = section.present().map(|entry| entry.key.as_str()).filter(|key| !used.contains(key));
    section.note_unused(&others.collect::<Vec<_>>());
}

/// Refuses the operator's own Python code, which pudu cannot run and which may be a protection.
fn own_code(top: &Section<'_>) {
    let none = "remove it, or use `approvals` instead";
    let extensions = top.section("extensions");
    if extensions.names("middlewares").foreign().is_some_and(|names| !names.is_empty()) {
        extensions.refuse("middlewares", "pudu does not run middlewares written in Python", none);
    }
    let safety = top.section("safety_finish_reason");
    if safety.entry("detectors").is_some() {
        safety.refuse(
            "detectors",
            "pudu does not run detectors written in Python; it includes DeerFlow's",
            none,
        );
    }
}
