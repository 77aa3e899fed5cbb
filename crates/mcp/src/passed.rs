//! Servers of the configuration for an agent with its own MCP client.

use crate::{
    McpConfig, Skipped,
    server::{Endpoint, TokenSource, Transport},
};
use secrecy::SecretString;

/// A server for another agent, which gets the values of its entry.
#[derive(Clone, Debug)]
pub struct PassedServer {
    /// Its name in the configuration.
    pub name: String,
    /// How the agent reaches it.
    pub transport: PassedTransport,
}

/// How another agent reaches a server.
#[derive(Clone, Debug)]
pub enum PassedTransport {
    /// A child process.
    Stdio {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<SecretString>,
        /// Its environment variables.
        env: Vec<(String, SecretString)>,
    },
    /// Streamable HTTP.
    Http {
        /// The URL.
        url: SecretString,
        /// The headers of each request.
        headers: Vec<(String, SecretString)>,
    },
}

/// The servers for another agent, and the reasons why it does not get the others.
#[derive(Clone, Debug, Default)]
pub struct PassedServers {
    /// The servers.
    pub servers: Vec<PassedServer>,
    /// A sentence for each server that is left out.
    pub omitted: Vec<String>,
}

impl McpConfig {
    /// Returns the servers of these names for another agent. Servers with disabled tools are omitted, because the agent would
    /// have these tools, and so are servers to which it could not sign in.
    #[must_use]
    pub fn pass(&self, names: &[String]) -> PassedServers {
        let mut passed = PassedServers::default();
        for name in names {
            match self.passed(name) {
                Ok(server) => passed.servers.push(server),
                Err(why) => passed.omitted.push(format!("MCP server {name} is not available: {why}")),
            }
        }
        passed
    }

    fn passed(&self, name: &str) -> Result<PassedServer, String> {
        if let Some(Skipped { failure, .. }) = self.unusable.iter().find(|skipped| skipped.server == name) {
            return Err(failure.to_string());
        }
        if self.disabled.iter().any(|disabled| disabled == name) {
            return Err("it is disabled".to_owned());
        }
        let server = self.servers.iter().find(|server| server.name() == name);
        let server = server.ok_or("the extensions file has no such server")?;
        if !server.off.is_empty() {
            return Err("some of its tools are disabled, and another agent would have them".to_owned());
        }
        let transport = match &server.transport {
            Transport::Stdio(command) => PassedTransport::Stdio {
                program: command.program.clone(),
                args: command.args.clone(),
                env: command.env.clone(),
            },
            Transport::Http(Endpoint { tokens: Some(TokenSource::Grant(_)), .. }) => {
                return Err("it needs OAuth tokens, which only pudu itself has".to_owned());
            }
            Transport::Http(endpoint) => {
                let text = |value: &[u8]| SecretString::from(String::from_utf8_lossy(value).into_owned());
                let headers = endpoint.headers.iter();
                PassedTransport::Http {
                    url: endpoint.url.to_string().into(),
                    headers: headers.map(|(key, value)| (key.to_string(), text(value.as_bytes()))).collect(),
                }
            }
        };
        Ok(PassedServer { name: name.to_owned(), transport })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;
    use std::collections::HashMap;

    #[test]
    fn another_agent_gets_the_named_servers_only_and_none_with_hidden_tools() {
        let file = r#"{"mcpServers": {
            "files": {"command": "files", "args": ["--all"], "env": {"KEY": "v"}},
            "maps": {"url": "https://maps.example/mcp", "headers": {"X-Key": "k"}},
            "cut": {"command": "cut", "tools": {"delete": {"enabled": false}}},
            "off": {"command": "off", "enabled": false},
            "odd": {"type": "smoke"},
            "other": {"command": "other"}
        }}"#;
        let config = McpConfig::parse(file, &HashMap::new()).unwrap();
        let names = ["files", "maps", "cut", "off", "odd", "none"].map(str::to_owned);
        let PassedServers { servers, omitted } = config.pass(&names);
        let [files, maps] = &servers[..] else { panic!("{servers:?}") };
        let PassedTransport::Stdio { program, args, env } = &files.transport else { panic!("{files:?}") };
        assert_eq!((program.as_str(), args[0].expose_secret()), ("files", "--all"));
        assert!(env.iter().any(|(key, value)| key == "KEY" && value.expose_secret() == "v"));
        let PassedTransport::Http { headers, .. } = &maps.transport else { panic!("{maps:?}") };
        assert_eq!((headers[0].0.as_str(), headers[0].1.expose_secret()), ("x-key", "k"));
        let reasons =
            ["some of its tools are disabled", "it is disabled", "`type` is smoke", "has no such server"];
        assert_eq!(omitted.len(), reasons.len());
        for (text, reason) in omitted.iter().zip(reasons) {
            assert!(text.contains(reason), "{text}");
        }
    }
}
