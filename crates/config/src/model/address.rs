//! Addresses of model APIs.

use super::super::{env::Env, reader::Section};
use pudu_model::{Vendor, WireKind};
use pudu_net as net;
use url::Url;

/// Returns the base URL. Adds the vendor's path to an address without one, as the native clients of some providers do.
pub(super) fn base_url(
    section: &Section<'_>,
    vendor: &'static Vendor,
    wire: WireKind,
    model: Option<&str>,
    env: &Env,
) -> Option<Url> {
    if vendor.name == "azure" {
        return azure_url(section, wire, model, env);
    }
    settings! { section =>
        /// Base URL of the API.
        base_url = url().eg("https://api.openai.com/v1").optional("the provider's");
    }
    if let Some(mut url) = base_url {
        refuse_call(section, &url);
        if url.path() == "/" && !vendor.path.is_empty() {
            url.set_path(vendor.path);
        }
        return Some(url);
    }
    let from_env = env.first(vendor.url_variables).and_then(|(_, url)| address(url));
    from_env.or_else(|| Url::parse(vendor.base_url).ok())
}

/// Paths of API calls, which are not part of the base URL.
const CALLS: [&str; 8] = [
    "/api/chat",
    "/api/generate",
    "/audio/transcriptions",
    "/chat/completions",
    "/completions",
    "/embeddings",
    "/messages",
    "/responses",
];

/// Refuses the URL of a single call where the base URL is expected.
fn refuse_call(section: &Section<'_>, url: &Url) {
    let path = url.path().trim_end_matches('/');
    let gemini = path
        .find("/models/")
        .filter(|_| path.contains(":generateContent") || path.contains(":streamGenerateContent"));
    let call = match gemini {
        Some(at) => path.get(at..),
        // Some servers ignore letter case.
        None => {
            let lower = path.to_ascii_lowercase();
            let call = CALLS.into_iter().find(|call| lower.ends_with(call));
            call.and_then(|call| path.get(path.len() - call.len()..))
        }
    };
    let Some(call) = call else { return };
    let mut shorter = url.clone();
    shorter.set_path(path.strip_suffix(call).unwrap_or(path));
    // The displayed address omits the query and credentials, which would be lost if a person copied it.
    let is_shown_whole = url.query().is_none() && url.username().is_empty() && url.password().is_none();
    let help = match (section.variable("base_url").is_some(), is_shown_whole) {
        (true, _) => format!("remove `{call}` from the end"),
        (false, true) => format!("write `base_url: {}`", net::shown_url(&shorter)),
        (false, false) => format!("remove `{call}` from it"),
    };
    section.refuse("base_url", format!("it ends with `{call}`, which pudu adds to each call"), help);
}

/// Parses an address as the providers' own clients do: Ollama's is often `host:port`, or the address that it listens
/// on.
fn address(text: &str) -> Option<Url> {
    let text = text.trim();
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&with_scheme).ok().filter(Url::has_host)?;
    Url::parse(&url.as_str().replacen("//0.0.0.0", "//127.0.0.1", 1)).ok()
}

/// Returns the URL of an Azure deployment, built from its resource, its name and the API version.
fn azure_url(section: &Section<'_>, wire: WireKind, model: Option<&str>, env: &Env) -> Option<Url> {
    settings! { section =>
        /// Azure: URL of the resource.
        written as "azure_endpoint" = url().eg("https://NAME.openai.azure.com").optional("AZURE_OPENAI_ENDPOINT");
        /// Azure: name of the deployment.
        deployment as "azure_deployment" = text().eg("gpt-5-mini").optional("the model's name");
        /// Azure: version of the API.
        version as "api_version" = text().or("2024-10-21".to_owned());
        /// Base URL of the API.
        whole as "base_url" = url().eg("https://api.openai.com/v1").optional("the provider's");
    }
    let from_env = || env.first(&["AZURE_OPENAI_ENDPOINT"]).and_then(|(_, url)| Url::parse(url).ok());
    let Some(mut url) = written.or_else(|| if whole.is_none() { from_env() } else { None }) else {
        if whole.is_none() {
            let help = "write the resource's address, such as https://NAME.openai.azure.com, or set AZURE_OPENAI_ENDPOINT";
            section.refuse("azure_endpoint", "this is missing", help);
        }
        return whole;
    };
    let deployment = deployment.or_else(|| model.map(str::to_owned))?;
    let path: &[&str] = match wire {
        WireKind::Responses => &["openai", "v1"],
        _ => &["openai", "deployments", &deployment],
    };
    url.path_segments_mut().ok()?.pop_if_empty().extend(path);
    if wire == WireKind::Chat {
        url.query_pairs_mut().append_pair("api-version", &version);
    }
    Some(url)
}

/// Returns whether an address is on this machine.
pub(in super::super) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
