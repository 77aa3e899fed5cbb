//! Users: the list, the export of a user's data, and its deletion.

use crate::{ApiError, GatewayState, Json};
use axum::{
    body::Body,
    extract::Path,
    http::header,
    response::{IntoResponse, Response},
};
use pudu_base::MessageId;
use pudu_kit::home;
use pudu_people::{
    person::{PersonData, PersonError, forget_person},
    rights::{self, KnownUser},
};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

/// Message about unfinished work when no daemon runs.
const UNFINISHED: &str = "an unfinished run uses messages of this user, and no daemon is running: \
                          start pudu, let the run end, and repeat the request";

/// Lists all users with stored data.
pub(crate) async fn list(gateway: GatewayState) -> Result<Json<Value>, ApiError> {
    let users: Vec<Value> = gateway.known().await?.iter().map(KnownUser::to_json).collect();
    Ok(Json(json!({ "users": users })))
}

/// Returns an archive with all data of a user.
pub(crate) async fn export(gateway: GatewayState, Path(wanted): Path<String>) -> Result<Response, ApiError> {
    let (who, shared) = (gateway.pick(&wanted).await?, &gateway.0.shared);
    let folder = home::scratch(&shared.home);
    let file = folder.join(format!("{}.zip", MessageId::fresh()));
    tokio::fs::create_dir_all(&folder).await.map_err(anyhow::Error::from)?;
    // The export finishes even if the caller disconnects, so that no partial file remains.
    let (own, to) = (shared.clone(), file.clone());
    let work = async move {
        rights::export(&own.db, &PersonData::from_agent(&own.agent), &who, &to).await.map(drop)
    };
    shared.tasks.spawn(work).await.map_err(anyhow::Error::from)??;
    let opened = tokio::fs::File::open(&file).await;
    // The open file stays readable, and is freed once it is closed.
    tokio::fs::remove_file(&file).await.ok();
    let kind = [(header::CONTENT_TYPE, "application/zip")];
    let body = Body::from_stream(ReaderStream::new(opened.map_err(anyhow::Error::from)?));
    Ok((kind, body).into_response())
}

/// Deletes all data of a user.
pub(crate) async fn forget(
    gateway: GatewayState,
    Path(wanted): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let (shared, is_lone) = (&gateway.0.shared, gateway.is_lone_command());
    let picked = gateway.pick(&wanted).await;
    if is_lone && picked.is_err() {
        // A crash may have happened after the rows were deleted and before the file was compacted.
        PersonData::from_agent(&shared.agent).compact().await.map_err(anyhow::Error::from)?;
    }
    let who = picked?;
    // The deletion finishes even if the caller disconnects.
    let own = shared.clone();
    let work = async move {
        let keys = who.keys();
        if is_lone {
            PersonData::from_agent(&own.agent).end_left_work(&keys).await?;
        }
        let forgotten = rights::forget(&own.db, &who, forget_person(&own.agent, &keys)).await?;
        own.forget_people(&keys.people);
        Ok(forgotten)
    };
    match shared.tasks.spawn(work).await.unwrap_or(Err(PersonError::Broken)) {
        Ok(forgotten) => Ok(Json(rights::forgotten_to_json(&forgotten))),
        Err(PersonError::AtWork) if is_lone => Err(ApiError::conflict(UNFINISHED)),
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
