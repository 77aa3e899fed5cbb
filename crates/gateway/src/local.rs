//! Responses to requests that the process makes itself. If no daemon is running, a command answers in its place.

use crate::{GatewayState, http::guests::Guests};
use axum::{
    body::Body,
    extract::{ConnectInfo, Request},
    http::{Method, header},
    response::Response,
};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use tower::ServiceExt;

/// The process that answers requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnsweringProcess {
    /// A daemon that listens at an address.
    Daemon(SocketAddr),
    /// A command, while no other process uses the store: unfinished work belongs to a daemon that died.
    Command,
    /// A command that reads the store while other processes use it.
    Reader,
}

impl AnsweringProcess {
    /// Returns whether only this machine can send requests.
    pub(crate) fn is_local(self) -> bool {
        !matches!(self, Self::Daemon(address) if !address.ip().is_loopback())
    }
}

impl GatewayState {
    /// Answers a request with the operator's rights, without a connection. `target` is the path with its query.
    ///
    /// # Errors
    /// If the target is invalid.
    pub async fn answer(
        &self,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Response> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (visitor, _guest) = Guests::new(1).enter(address.ip());
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, self.0.guard.bearer()?)
            .header(header::CONTENT_TYPE, "application/json")
            .extension(ConnectInfo(address))
            .extension(visitor)
            .body(body.map_or_else(Body::empty, |body| Body::from(body.to_string())))?;
        let Ok(answer) = self.clone().router().oneshot(request).await;
        Ok(answer)
    }

    /// Returns whether no other process uses the store, so that unfinished work belongs to a daemon that died.
    pub(crate) fn is_lone_command(&self) -> bool {
        self.0.process == AnsweringProcess::Command
    }
}
