//! The language of a response.

use crate::GatewayState;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use pudu_dispatch::local;
use pudu_texts::Language;
use std::convert::Infallible;

/// The configured language, or else the one preferred by the request's `Accept-Language`.
pub(crate) struct PreferredLanguage(pub(crate) Language);

impl PreferredLanguage {
    /// Returns the language of the response to a request with these headers.
    pub(crate) fn from_headers(gateway: &GatewayState, headers: &HeaderMap) -> Self {
        Self(local::language(&gateway.0.shared, preferred(headers)))
    }
}

impl FromRequestParts<GatewayState> for PreferredLanguage {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, gateway: &GatewayState) -> Result<Self, Infallible> {
        Ok(Self::from_headers(gateway, &parts.headers))
    }
}

/// Returns the available language that a browser prefers.
fn preferred(headers: &HeaderMap) -> Option<Language> {
    let weight = |part: &str| part.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
    let weighted = |tag| {
        let mut parts = str::split(tag, ';');
        let tag = parts.next().unwrap_or_default().trim();
        (parts.find_map(weight).unwrap_or(1.0), tag)
    };
    let tags = headers.get(header::ACCEPT_LANGUAGE)?.to_str().ok()?.split(',').map(weighted);
    let mut tags: Vec<(f32, &str)> = tags.filter(|(weight, _)| *weight > 0.0).collect();
    // At equal weights, the first is preferred.
    tags.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    tags.into_iter().find_map(|(_, tag)| Language::of_person(tag))
}
