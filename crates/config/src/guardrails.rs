//! Guardrails, which decide without people whether a tool may be called: DeerFlow's `guardrails`.
//!
//! Every section is obeyed, regardless of `use`: lists of tools, a URL and a passport each refuse on their own. A
//! setting that cannot be obeyed stops the start.

use super::{Start, approvals, model, reader::Section};
use pudu_client::guardrails::{Allowlist, HttpGuardrailSettings, PassportSource};
use std::{path::Path, time::Duration};

/// The guardrails that are on.
#[derive(Clone, Debug)]
pub struct GuardrailsConfig {
    /// Whether a call is refused when a provider fails.
    pub fail_closed: bool,
    /// The passport, as requests to providers name it.
    pub agent_id: Option<String>,
    /// Tools by their names.
    pub allowlist: Option<Allowlist>,
    /// A passport that pudu checks itself.
    pub passport: Option<PassportSource>,
    /// A provider that is asked over HTTP.
    pub http: Option<HttpGuardrailSettings>,
}

/// The provider that `use` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProviderKind {
    Allowlist,
    Http,
    Passport,
}

/// The providers by the names that `use` may have.
const PROVIDERS: [(&str, ProviderKind); 4] = [
    ("deerflow.guardrails.builtin:AllowlistProvider", ProviderKind::Allowlist),
    ("allowlist", ProviderKind::Allowlist),
    ("http", ProviderKind::Http),
    ("passport", ProviderKind::Passport),
];
/// Help on `use`.
const CHOICE: &str = "write deerflow.guardrails.builtin:AllowlistProvider, http or passport; docs/guardrails.md says what each \
                      needs. pudu runs no provider written in Python: let one answer over HTTP";
/// Help on `passport`.
const PASSPORT: &str = "name the file of an Open Agent Passport, or write the passport itself here";
/// Time for one decision over HTTP.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reads them; `None` if they are off.
pub(super) fn read(top: &Section<'_>, start: &Start) -> Option<GuardrailsConfig> {
    let section = top.section("guardrails");
    let says = section.present().any(|entry| entry.key != "enabled");
    let switch = section.flag("enabled");
    let unsaid = section.entry("enabled").is_none() && !switch.is_spoilt();
    let enabled = switch.or(false);
    if says && unsaid {
        section.refuse_here(
            "this does not say whether it is on, and it guards something",
            "write `enabled: true`, or `enabled: false`",
        );
    }
    let section = section.needed(enabled);
    let provider = section.section("provider");
    let config = provider.section("config");
    let kind = kind(&provider, enabled);
    let (agent_id, passport) = passport(&section, start, kind);
    let allowlist = allowlist(&config, kind);
    let http = http(&config, kind);
    let fail_closed = section.flag("fail_closed").or(true);
    if !enabled {
        provider.ignore_rest();
        config.ignore_rest();
        return None;
    }
    Some(GuardrailsConfig { fail_closed, agent_id, allowlist, passport, http })
}

fn kind(provider: &Section<'_>, enabled: bool) -> Option<ProviderKind> {
    let named = provider.text("use").required(CHOICE)?;
    let known = PROVIDERS.iter().find(|(name, _)| *name == named).map(|(_, kind)| *kind);
    if known.is_none() && enabled {
        provider.refuse("use", format!("pudu has no guardrail provider \"{named}\""), CHOICE);
    }
    known
}

/// Returns the passport as requests name it, and as pudu checks it. A name that is no file's is the provider's to check.
fn passport(
    section: &Section<'_>,
    start: &Start,
    kind: Option<ProviderKind>,
) -> (Option<String>, Option<PassportSource>) {
    let inline = section.entry("passport").is_some_and(|entry| !entry.node.entries().is_empty());
    if inline {
        let map = section.map("passport").foreign();
        return (None, map.map(|map| PassportSource::Inline(map.into())));
    }
    let Some(named) = section.text("passport").optional("none") else {
        if kind == Some(ProviderKind::Passport) && section.is_needed() {
            section.refuse("passport", "this is missing or empty", PASSPORT);
        }
        return (None, None);
    };
    let path = start.dir.join(&named);
    let is_json = Path::new(&named).extension().is_some_and(|end| end.eq_ignore_ascii_case("json"));
    let is_path = named.contains('/') || is_json || path.is_file();
    if !is_path && kind == Some(ProviderKind::Passport) && section.is_needed() {
        let help = "name a file that ends in .json or has a folder before it";
        section.refuse("passport", "this names no file, and pudu asks no registry of passports", help);
    }
    if is_path && section.is_needed() && !path.is_file() {
        let what = format!("there is no file {}", path.display());
        section.refuse("passport", what, PASSPORT);
    }
    if !is_path && kind == Some(ProviderKind::Allowlist) {
        let what = "nobody checks this: it names no file, and a list of tools has no use for it";
        section.warn("passport", what, "name the passport's file, which pudu checks, or remove this");
    }
    (Some(named), is_path.then_some(PassportSource::File(path)))
}

fn allowlist(config: &Section<'_>, kind: Option<ProviderKind>) -> Option<Allowlist> {
    let allowed = config.names("allowed_tools").optional("all");
    let denied = config.names("denied_tools").or_told(Vec::new(), "none");
    for (key, names) in [("allowed_tools", allowed.as_deref().unwrap_or_default()), ("denied_tools", &denied)]
    {
        names.iter().filter(|_| config.is_needed()).for_each(|name| approvals::check_name(config, key, name));
    }
    let says = allowed.is_some() || !denied.is_empty();
    let list = Allowlist {
        allowed: allowed.map(|names| names.into_iter().collect()),
        denied: denied.into_iter().collect(),
    };
    (says || kind == Some(ProviderKind::Allowlist)).then_some(list)
}

fn http(config: &Section<'_>, kind: Option<ProviderKind>) -> Option<HttpGuardrailSettings> {
    let setting = config.url("url");
    let is_spoilt = setting.is_spoilt();
    let url = setting.optional("none; `use: http` needs one");
    if url.is_none() && !is_spoilt && kind == Some(ProviderKind::Http) && config.is_needed() {
        config.refuse("url", "this is missing or empty", "write the URL to which requests are posted");
    }
    let headers = model::headers(config, "headers");
    let timeout = config.seconds("timeout_seconds", 0.1).or(TIMEOUT);
    Some(HttpGuardrailSettings { url: url?, headers, timeout })
}
