//! Reads rows of DeerFlow's database for the import.

use super::Import;
use crate::{error::ImportError, report::ItemOutcome, row::SourceRow, time};

/// Note for a row without a usable ID.
pub(super) const UNREADABLE: &str = "its IDs are missing or too large";

impl Import<'_> {
    pub(super) async fn rows(
        &mut self,
        table: &str,
        sql: &'static str,
    ) -> Result<Vec<SourceRow>, ImportError> {
        match &mut self.reader {
            Some(reader) => reader.rows(table, sql, &[]).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns a time, or the current one if it is missing or invalid.
    pub(super) fn time(&self, row: &SourceRow, column: &str) -> i64 {
        row.text(column).as_deref().and_then(time::millis).unwrap_or(self.now)
    }
}

/// Returns the outcome of a row, depending on whether it is new.
pub(super) fn outcome(new: bool) -> ItemOutcome {
    if new { ItemOutcome::Taken } else { ItemOutcome::Unchanged }
}
