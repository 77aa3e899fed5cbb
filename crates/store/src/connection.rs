//! One connection to the database, outside of all pools.

use crate::StoreError;
use sqlx::{AnyConnection, ConnectOptions, any::AnyConnectOptions};
use std::time::Duration;

/// How long a caller waits for a connection.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens a connection and prepares it.
pub(crate) async fn open(
    options: &AnyConnectOptions,
    prepare: &'static str,
) -> Result<AnyConnection, StoreError> {
    let slow = |_| StoreError::Unavailable(format!("no answer within {} s", ACQUIRE_TIMEOUT.as_secs()));
    let mut connection = tokio::time::timeout(ACQUIRE_TIMEOUT, options.connect()).await.map_err(slow)??;
    sqlx::raw_sql(prepare).execute(&mut connection).await?;
    Ok(connection)
}
