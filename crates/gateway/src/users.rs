//! Users, everything that is stored of one, and that one is forgotten.

use super::{GatewayState, JsonReply, errors::refuse};
use crate::json::Json;
use anyhow::Result;
use axum::{
    body::Body,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use pudu_client::{PersonError, base::MessageId};
use pudu_kit::home;
use pudu_people::rights::{self, KnownUser};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

/// Lists all users with stored data.
pub(super) async fn list(State(gateway): State<GatewayState>) -> JsonReply {
    match gateway.known().await {
        Ok(known) => {
            let users: Vec<Value> = known.iter().map(KnownUser::to_json).collect();
            (StatusCode::OK, Json(json!({ "users": users })))
        }
        Err(error) => failed(&error),
    }
}

/// Returns an archive with everything of a person.
pub(super) async fn export(State(gateway): State<GatewayState>, Path(wanted): Path<String>) -> Response {
    let who = match gateway.pick(&wanted).await {
        Ok(who) => who,
        Err(reply) => return reply.into_response(),
    };
    let shared = &gateway.0.shared;
    let folder = home::scratch(&shared.home);
    let file = folder.join(format!("{}.zip", MessageId::fresh()));
    let written = match tokio::fs::create_dir_all(&folder).await {
        Ok(()) => {
            // It comes to its end when the caller goes, so that nothing half-written stays.
            let (own, to) = (shared.clone(), file.clone());
            let work =
                async move { rights::export(&own.db, &own.client.people(), &who, &to).await.map(drop) };
            shared.tasks.spawn(work).await.unwrap_or_else(|error| Err(error.into()))
        }
        Err(error) => Err(error.into()),
    };
    if let Err(error) = written {
        return failed(&error).into_response();
    }
    let opened = tokio::fs::File::open(&file).await;
    // The open file stays readable, and disappears afterwards.
    tokio::fs::remove_file(&file).await.ok();
    match opened {
        Ok(opened) => {
            let kind = [(header::CONTENT_TYPE, "application/zip")];
            (kind, Body::from_stream(ReaderStream::new(opened))).into_response()
        }
        Err(error) => failed(&error.into()).into_response(),
    }
}

/// Deletes everything of a person.
pub(super) async fn forget(State(gateway): State<GatewayState>, Path(wanted): Path<String>) -> Response {
    let who = match gateway.pick(&wanted).await {
        Ok(who) => who,
        Err(reply) => return reply.into_response(),
    };
    let shared = &gateway.0.shared;
    // It comes to its end when the caller goes.
    let own = shared.clone();
    let work = async move {
        let keys = who.keys();
        let forgotten = rights::forget(&own.db, &who, own.client.forget_person(&keys)).await?;
        own.forget_people(&keys.people);
        Ok(forgotten)
    };
    match shared.tasks.spawn(work).await.unwrap_or(Err(PersonError::Broken)) {
        Ok(forgotten) => Json(rights::forgotten_to_json(&forgotten)).into_response(),
        Err(error @ PersonError::AtWork) => refuse(StatusCode::CONFLICT, &error.to_string()),
        Err(error) => failed(&error.into()).into_response(),
    }
}

impl GatewayState {
    pub(super) async fn known(&self) -> Result<Vec<KnownUser>> {
        let shared = &self.0.shared;
        rights::known(&shared.db, &shared.home, self.0.watcher.current().timing.unpaired).await
    }

    async fn pick(&self, wanted: &str) -> Result<KnownUser, JsonReply> {
        let known = self.known().await.map_err(|error| failed(&error))?;
        let missing =
            |error: anyhow::Error| (StatusCode::NOT_FOUND, Json(json!({ "detail": error.to_string() })));
        rights::pick(&known, wanted).cloned().map_err(missing)
    }
}

fn failed(error: &anyhow::Error) -> JsonReply {
    tracing::error!("failed to look after a person's data: {error:#}");
    (
        StatusCode::INTERNAL_SERVER_ERROR,
        Json(json!({ "detail": "that could not be done just now; the log says why" })),
    )
}
