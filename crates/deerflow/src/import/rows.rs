//! Rows of DeerFlow's database, read column by column.

use super::Import;
use crate::{database, error::ImportError, report::ItemOutcome, time};
use sqlx::{Row, any::AnyRow};

/// Note for a row without a usable ID.
pub(super) const UNREADABLE: &str = "its ids are missing or too large";

impl Import<'_> {
    pub(super) async fn rows(&mut self, table: &str, sql: &'static str) -> Result<Vec<AnyRow>, ImportError> {
        match &mut self.reader {
            Some(reader) => reader.rows(table, sql, &[]).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns a time; now if it is missing or invalid.
    pub(super) fn time(&self, row: &AnyRow, column: &str) -> Result<i64, ImportError> {
        Ok(database::text(row, column)?.as_deref().and_then(time::millis).unwrap_or(self.now))
    }
}

/// Returns the outcome of a row, depending on whether it is new.
pub(super) fn outcome(new: bool) -> ItemOutcome {
    if new { ItemOutcome::Taken } else { ItemOutcome::Unchanged }
}

pub(super) fn number(row: &AnyRow, column: &str) -> Result<i64, ImportError> {
    // Databases return conditions as integers of different width.
    let wide: Result<Option<i64>, _> = row.try_get(column);
    let narrow = |_| row.try_get::<Option<i32>, _>(column).map(|number| number.map(i64::from));
    Ok(wide.or_else(narrow).map_err(ImportError::database)?.unwrap_or_default())
}
