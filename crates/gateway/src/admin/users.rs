//! Users, everything that is stored of one, and that one is forgotten.

use crate::{ApiError, GatewayState, Json};
use axum::{
    body::Body,
    extract::Path,
    http::header,
    response::{IntoResponse, Response},
};
use pudu_client::{PersonError, base::MessageId};
use pudu_kit::home;
use pudu_people::rights::{self, KnownUser};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

/// Lists all users with stored data.
pub(crate) async fn list(gateway: GatewayState) -> Result<Json<Value>, ApiError> {
    let users: Vec<Value> = gateway.known().await?.iter().map(KnownUser::to_json).collect();
    Ok(Json(json!({ "users": users })))
}

/// Returns an archive with everything of a person.
pub(crate) async fn export(gateway: GatewayState, Path(wanted): Path<String>) -> Result<Response, ApiError> {
    let (who, shared) = (gateway.pick(&wanted).await?, &gateway.0.shared);
    let folder = home::scratch(&shared.home);
    let file = folder.join(format!("{}.zip", MessageId::fresh()));
    tokio::fs::create_dir_all(&folder).await.map_err(anyhow::Error::from)?;
    // It comes to its end when the caller goes, so that nothing half-written stays.
    let (own, to) = (shared.clone(), file.clone());
    let work = async move { rights::export(&own.db, &own.client.people(), &who, &to).await.map(drop) };
    shared.tasks.spawn(work).await.map_err(anyhow::Error::from)??;
    let opened = tokio::fs::File::open(&file).await;
    // The open file stays readable, and disappears afterwards.
    tokio::fs::remove_file(&file).await.ok();
    let kind = [(header::CONTENT_TYPE, "application/zip")];
    let body = Body::from_stream(ReaderStream::new(opened.map_err(anyhow::Error::from)?));
    Ok((kind, body).into_response())
}

/// Deletes everything of a person.
pub(crate) async fn forget(
    gateway: GatewayState,
    Path(wanted): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let (who, shared) = (gateway.pick(&wanted).await?, &gateway.0.shared);
    // It comes to its end when the caller goes.
    let own = shared.clone();
    let work = async move {
        let keys = who.keys();
        let forgotten = rights::forget(&own.db, &who, own.client.forget_person(&keys)).await?;
        own.forget_people(&keys.people);
        Ok(forgotten)
    };
    match shared.tasks.spawn(work).await.unwrap_or(Err(PersonError::Broken)) {
        Ok(forgotten) => Ok(Json(rights::forgotten_to_json(&forgotten))),
        Err(error @ PersonError::AtWork) => Err(ApiError::conflict(error.to_string())),
        Err(error) => Err(anyhow::Error::from(error).into()),
    }
}

impl GatewayState {
    pub(crate) async fn known(&self) -> anyhow::Result<Vec<KnownUser>> {
        let shared = &self.0.shared;
        rights::known(&shared.db, &shared.home, self.config().timing.unpaired).await
    }

    async fn pick(&self, wanted: &str) -> Result<KnownUser, ApiError> {
        let known = self.known().await?;
        let missing = |error: anyhow::Error| ApiError::not_found(error.to_string());
        rights::pick(&known, wanted).cloned().map_err(missing)
    }
}
