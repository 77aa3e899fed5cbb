//! Ends streams when their credentials become invalid: a session, when its account is deleted or gets another password;
//! a token, when it is revoked; and access without accounts, when the first account is added.

use super::ShownRequest;
use crate::{GatewayState, auth, http::guests::Visitor};
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::Response,
};
use futures_util::StreamExt;
use std::{net::IpAddr, time::Duration};

/// Interval between two checks of a proof.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// A request whose proof is checked again later.
pub(crate) struct StreamWatch {
    gateway: GatewayState,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    from: IpAddr,
    visitor: Visitor,
}

impl StreamWatch {
    pub(crate) fn new(gateway: &GatewayState, request: &Request, from: IpAddr, visitor: &Visitor) -> Self {
        Self {
            gateway: gateway.clone(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            from,
            visitor: visitor.clone(),
        }
    }

    /// Ends a streamed response when the proof of its request becomes invalid. Other responses are passed through.
    pub(crate) fn over(self, answer: Response) -> Response {
        let kind = answer.headers().get(header::CONTENT_TYPE);
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
            return answer;
        }
        let (parts, body) = answer.into_parts();
        let stream = body.into_data_stream().take_until(Box::pin(self.ended()));
        Response::from_parts(parts, Body::from_stream(stream))
    }

    /// Returns when the proof becomes invalid. A store failure does not end the stream.
    async fn ended(self) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let request = ShownRequest {
                method: &self.method,
                path: self.uri.path(),
                query: self.uri.query(),
                headers: &self.headers,
                from: self.from,
                visitor: &self.visitor,
            };
            match auth::identify(&self.gateway, request).await {
                Err(refusal) if refusal.status() != StatusCode::SERVICE_UNAVAILABLE => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}
