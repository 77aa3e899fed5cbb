//! The gateway section: the address at which browsers and programs reach pudu.
//!
//! The address comes from, in order of precedence: `--bind`, `GATEWAY_HOST` and `GATEWAY_PORT`, `gateway.host` and
//! `gateway.port`, and the defaults.

use super::{Start, problem::Problem, reader::Section};
use secrecy::{ExposeSecret, SecretString};
use std::net::{IpAddr, Ipv6Addr};
use url::Url;

/// The HTTP API and the page.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The host name or IP address to listen on.
    pub host: String,
    /// The port; 0 means any free one.
    pub port: u16,
    /// Token that a caller must present; without it every client that reaches the port may use pudu.
    pub token: Option<SecretString>,
    /// Public URL; links to files begin with it.
    pub public_url: Option<Url>,
}

impl GatewayConfig {
    /// Returns the URL of a daemon with this configuration on this machine, or `None` if the port is 0.
    pub fn url(&self) -> Option<String> {
        let host = match self.host.as_str() {
            "0.0.0.0" | "::" => "127.0.0.1".to_owned(),
            host if host.contains(':') => format!("[{host}]"),
            host => host.to_owned(),
        };
        (self.port != 0).then(|| format!("http://{host}:{}", self.port))
    }
}

pub(super) fn read(top: &Section<'_>, start: &Start) -> GatewayConfig {
    let section = top.section("gateway").about(
        "HTTP API and page. `--bind` overrides GATEWAY_HOST and GATEWAY_PORT, which override this section.",
    );
    settings! { section =>
        /// Host name or IP address to listen on; 0.0.0.0 accepts other machines.
        host = text().or("127.0.0.1".to_owned());
        /// Port to listen on; 0 takes any free port.
        port = number(0..=u16::MAX).or(8001);
        /// Token that callers must present; without it pudu generates one where other machines or commands can reach the
        /// gateway.
        token = secret().eg("$PUDU_TOKEN").optional("none");
        /// Public URL of the gateway; a file too large for a chat becomes a link below it, valid for a day.
        public_url = url().eg("https://pudu.example.com").optional("none");
    }
    let (host, port) = from_env(&section, start, host, port);
    let (host, port) = from_flag(&section, start, host, port);
    let plain = |c: char| c.is_ascii_graphic() && !";,\"\\".contains(c);
    if token.as_ref().is_some_and(|token| !token.expose_secret().chars().all(plain)) {
        let what = "it has characters that a header or a cookie cannot contain";
        section.note(Problem::error(
            None,
            "gateway.token",
            what,
            "use letters, digits and punctuation, but no space ; , \" or \\",
        ));
    }
    if !is_host(&host) {
        let what = format!("\"{host}\" is not a host name or an address");
        section.refuse(
            "host",
            what,
            "write 127.0.0.1, 0.0.0.0 or a host name, without the port, which has its own key",
        );
    } else if token.is_none() && !is_local(&host) {
        let what = format!("other machines can reach \"{host}\", and no token is set");
        section.warn(
            "token",
            what,
            "set gateway.token, or use the token that pudu generates in its home folder",
        );
    }
    GatewayConfig { host, port, token, public_url }
}

/// Reads the programs that MCP servers added through the API may start.
pub(super) fn mcp_commands(top: &Section<'_>) -> Vec<String> {
    let section = top.section("gateway");
    settings! { section =>
        /// Programs that MCP servers added over HTTP may start; if empty, only the operator's file can name a program.
        mcp_commands = names().or(Vec::new());
    }
    mcp_commands
}

fn from_env(section: &Section<'_>, start: &Start, host: String, port: u16) -> (String, u16) {
    let host = start.env.first(&["GATEWAY_HOST"]).map_or(host, |(_, host)| host.to_owned());
    let Some((name, text)) = start.env.first(&["GATEWAY_PORT"]) else { return (host, port) };
    let Ok(port) = text.trim().parse() else {
        section.note(Problem::error(None, name, "the value is not a port", "set it to 0 to 65535"));
        return (host, port);
    };
    (host, port)
}

fn from_flag(section: &Section<'_>, start: &Start, host: String, port: u16) -> (String, u16) {
    let Some(text) = &start.bind else { return (host, port) };
    let Some((named, numbered)) = parse_bind(text) else {
        let what = format!("\"{text}\" is not an address");
        section.note(Problem::error(None, "--bind", what, "write HOST:PORT, HOST or :PORT"));
        return (host, port);
    };
    (named.unwrap_or(host), numbered.unwrap_or(port))
}

/// Parses `HOST:PORT`, `HOST`, `:PORT` or `[IPV6]:PORT`.
fn parse_bind(text: &str) -> Option<(Option<String>, Option<u16>)> {
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<Ipv6Addr>() {
        return Some((Some(ip.to_string()), None));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (text, None),
    };
    let host = host.trim_matches(['[', ']']);
    let odd = |c: char| c.is_whitespace() || c == '/';
    if host.contains(odd) || (host.is_empty() && port.is_none()) {
        return None;
    }
    Some((Some(host.to_owned()).filter(|host| !host.is_empty()), port))
}

fn is_host(host: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    host.parse::<IpAddr>().is_ok() || host.chars().all(plain)
}

fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_address_may_be_omitted() {
        let host = |text: &str| Some(text.to_owned());
        let cases = [
            ("0.0.0.0:80", Some((host("0.0.0.0"), Some(80)))),
            ("localhost", Some((host("localhost"), None))),
            (":9000", Some((None, Some(9000)))),
            ("[::1]:9000", Some((host("::1"), Some(9000)))),
            ("::1", Some((host("::1"), None))),
            ("host:port", None),
            ("http://x:1", None),
            ("host:70000", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bind(text), expected, "{text}");
        }
    }

    #[test]
    fn the_url_of_a_daemon_can_be_called() {
        let check = |host: &str, port: u16, expect: Option<&str>| {
            let gateway = GatewayConfig { host: host.into(), port, token: None, public_url: None };
            assert_eq!(gateway.url().as_deref(), expect, "{host}:{port}");
        };
        check("127.0.0.1", 8001, Some("http://127.0.0.1:8001"));
        check("0.0.0.0", 80, Some("http://127.0.0.1:80"));
        check("::1", 80, Some("http://[::1]:80"));
        check("localhost", 0, None);
    }
}
