//! Guardrails, which decide on tool calls without people: DeerFlow's `guardrails`.
//!
//! Every section is enforced, regardless of `use`: lists of tools, a URL and a passport can each deny a call. A setting
//! that cannot be enforced prevents the start.

use super::{Start, approvals, model, reader::Section};
use pudu_guardrails::{Allowlist, HttpGuardrailSettings, PassportSource};
use std::{path::Path, time::Duration};

/// The enabled guardrails.
#[derive(Clone, Debug)]
pub struct GuardrailsConfig {
    /// Whether a call is denied when a provider fails.
    pub fail_closed: bool,
    /// The passport's id in requests to providers.
    pub agent_id: Option<String>,
    /// Lists of tools.
    pub allowlist: Option<Allowlist>,
    /// A passport that pudu enforces.
    pub passport: Option<PassportSource>,
    /// A provider over HTTP.
    pub http: Option<HttpGuardrailSettings>,
}

/// Kind of provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProviderKind {
    Allowlist,
    Http,
    Passport,
}

/// The providers by their names in `use`.
const PROVIDERS: [(&str, ProviderKind); 4] = [
    ("deerflow.guardrails.builtin:AllowlistProvider", ProviderKind::Allowlist),
    ("allowlist", ProviderKind::Allowlist),
    ("http", ProviderKind::Http),
    ("passport", ProviderKind::Passport),
];
/// Help on `use`.
const CHOICE: &str = "write deerflow.guardrails.builtin:AllowlistProvider, http or passport (docs/guardrails.md). \
                      pudu does not run providers written in Python; connect such a provider over HTTP";
/// Help on `passport`.
const PASSPORT: &str = "name the file of an Open Agent Passport, or write the passport itself here";
/// Default timeout of a decision over HTTP.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the guardrails. Returns `None` if they are off.
pub(super) fn read(top: &Section<'_>, start: &Start) -> Option<GuardrailsConfig> {
    let section = top
        .section("guardrails")
        .about("Guardrails: automatic decisions on each tool call. docs/guardrails.md describes them.");
    let has_keys = section.present().any(|entry| entry.key != "enabled");
    let switch = section.flag("enabled").about("Enables guardrails.");
    let unsaid = section.entry("enabled").is_none() && !switch.spoilt;
    let enabled = switch.or(false);
    if has_keys && unsaid {
        section.refuse_here(
            "`enabled` is missing, although there are rules",
            "write `enabled: true`, or `enabled: false`",
        );
    }
    let section = section.needed(enabled);
    settings! { section =>
        /// Refuses a call when a provider fails; otherwise the other providers decide.
        fail_closed = flag().or(true);
    }
    let provider = section
        .section("provider")
        .about("The provider. All keys below `config` apply, regardless of `use`.");
    let config = provider.section("config").about("Settings of the provider.");
    let kind = kind(&provider, enabled);
    let (agent_id, passport) = passport(&section, start, kind);
    let allowlist = allowlist(&config, kind);
    let http = http(&config, kind);
    if !enabled {
        provider.ignore_rest();
        config.ignore_rest();
        return None;
    }
    Some(GuardrailsConfig { fail_closed, agent_id, allowlist, passport, http })
}

fn kind(provider: &Section<'_>, enabled: bool) -> Option<ProviderKind> {
    settings! { provider =>
        /// Provider: deerflow.guardrails.builtin:AllowlistProvider, http or passport.
        named as "use" = text().eg("http").required(CHOICE);
    }
    let named = named?;
    let known = PROVIDERS.iter().find(|(name, _)| *name == named).map(|(_, kind)| *kind);
    if known.is_none() && enabled {
        provider.refuse("use", format!("unknown guardrail provider \"{named}\""), CHOICE);
    }
    known
}

/// Returns the passport's id for requests, and the passport that pudu enforces. An id that is not a file is only
/// checked by the provider.
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
    settings! { section =>
        /// Open Agent Passport that is checked before each call: its file, or the passport itself. Another name is passed to
        /// the provider unchanged.
        named as "passport" = text().eg("passport.json").optional("none");
    }
    let Some(named) = named else {
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
        section.refuse("passport", "this is not a file, and pudu does not use registries of passports", help);
    }
    if is_path && section.is_needed() && !path.is_file() {
        let what = format!("the file {} does not exist", path.display());
        section.refuse("passport", what, PASSPORT);
    }
    if !is_path && kind == Some(ProviderKind::Allowlist) {
        let what = "this has no effect: it is not a file, and a list of tools needs no passport";
        section.warn("passport", what, "set the passport's file, or remove this");
    }
    (Some(named), is_path.then_some(PassportSource::File(path)))
}

fn allowlist(config: &Section<'_>, kind: Option<ProviderKind>) -> Option<Allowlist> {
    settings! { config =>
        /// The only tools that may be called, including those of MCP servers; an empty list allows none.
        allowed as "allowed_tools" = names().eg("[ls, read_file]").optional("all");
        /// Tools that may not be called.
        denied as "denied_tools" = names().or_described(Vec::new(), "none");
    }
    for (key, names) in [("allowed_tools", allowed.as_deref().unwrap_or_default()), ("denied_tools", &denied)]
    {
        names.iter().filter(|_| config.is_needed()).for_each(|name| approvals::check_name(config, key, name));
    }
    let has_keys = allowed.is_some() || !denied.is_empty();
    let list = Allowlist {
        allowed: allowed.map(|names| names.into_iter().collect()),
        denied: denied.into_iter().collect(),
    };
    (has_keys || kind == Some(ProviderKind::Allowlist)).then_some(list)
}

fn http(config: &Section<'_>, kind: Option<ProviderKind>) -> Option<HttpGuardrailSettings> {
    let about = "URL to which each call is posted as JSON; it may be an internal one.";
    let setting = config.url("url").about(about).eg("http://127.0.0.1:9000/judge");
    let is_spoilt = setting.spoilt;
    let url = setting.optional("none; required for `use: http`");
    if url.is_none() && !is_spoilt && kind == Some(ProviderKind::Http) && config.is_needed() {
        config.refuse("url", "this is missing or empty", "write the URL to which requests are posted");
    }
    settings! { config =>
        /// Headers of those requests.
        headers = map().or(serde_json::Map::new());
        /// Maximum time of a decision, in seconds.
        timeout as "timeout_seconds" = seconds(0.1).or(TIMEOUT);
    }
    let headers = model::headers(config, "headers", headers);
    Some(HttpGuardrailSettings { url: url?, headers, timeout })
}
