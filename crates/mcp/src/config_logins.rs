//! Logins of operators at the servers of a configuration.

use crate::{
    McpConfig,
    login::{self, LoginVault, PendingLogin},
    server::{Endpoint, TokenSource, Transport},
};
use std::sync::Arc;

impl McpConfig {
    /// Uses the logins of a vault for servers over HTTP without other credentials.
    #[must_use]
    pub fn with_logins(mut self, vault: &Arc<dyn LoginVault>) -> Self {
        for server in &mut self.servers {
            if let Transport::Http(Endpoint { tokens: Some(TokenSource::Login(login)), .. }) =
                &mut server.transport
            {
                *login = Arc::new(login.kept_in(Arc::clone(vault)));
            }
        }
        self
    }

    /// Begins an operator's login at a server. `redirect` is the address to which the browser returns.
    ///
    /// # Errors
    /// If there is no such server, it has other credentials, or a login there is not possible.
    pub async fn login(
        &self,
        name: &str,
        redirect: &str,
        vault: Arc<dyn LoginVault>,
    ) -> Result<PendingLogin, String> {
        let server = self.servers.iter().find(|server| server.name() == name);
        let server = server.ok_or_else(|| format!("MCP server '{name}' not found"))?;
        let Transport::Http(Endpoint { url, tokens: Some(TokenSource::Login(login)), .. }) =
            &server.transport
        else {
            return Err("only servers over http without other credentials have logins".to_owned());
        };
        let started = login::begin(name, url, &login.client, redirect, vault).await;
        started.map_err(|why| server.label.hide_and_cut(&why))
    }
}
