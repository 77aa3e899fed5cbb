//! A row of DeerFlow's database. Columns have different types in SQLite and PostgreSQL, and SQLite stores any type in
//! any column.

use crate::error::ImportError;
use rusqlite::types::ValueRef;
use sqlx::{Column, Row, TypeInfo, ValueRef as _, postgres::PgRow};

/// A row, with the names of its columns.
pub(crate) struct SourceRow(Vec<(String, SourceValue)>);

enum SourceValue {
    Null,
    Number(i64),
    Bytes(Vec<u8>),
}

impl SourceRow {
    pub(crate) fn of_sqlite(columns: &[String], row: &rusqlite::Row<'_>) -> Result<Self, ImportError> {
        let value = |(at, name): (usize, &String)| {
            let value = match row.get_ref(at)? {
                ValueRef::Null => SourceValue::Null,
                ValueRef::Integer(number) => SourceValue::Number(number),
                ValueRef::Real(number) => SourceValue::Bytes(number.to_string().into_bytes()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => SourceValue::Bytes(bytes.to_vec()),
            };
            Ok((name.clone(), value))
        };
        columns.iter().enumerate().map(value).collect::<Result<_, ImportError>>().map(Self)
    }

    pub(crate) fn of_postgres(row: &PgRow) -> Result<Self, ImportError> {
        let value = |column: &sqlx::postgres::PgColumn| {
            let at = column.ordinal();
            let value = match column.type_info().name() {
                _ if row.try_get_raw(at).is_ok_and(|raw| raw.is_null()) => SourceValue::Null,
                "INT8" => SourceValue::Number(row.try_get(at)?),
                "INT4" => SourceValue::Number(row.try_get::<i32, _>(at)?.into()),
                "INT2" => SourceValue::Number(row.try_get::<i16, _>(at)?.into()),
                "BOOL" => SourceValue::Number(row.try_get::<bool, _>(at)?.into()),
                "BYTEA" => SourceValue::Bytes(row.try_get(at)?),
                _ => SourceValue::Bytes(row.try_get::<String, _>(at)?.into_bytes()),
            };
            Ok((column.name().to_owned(), value))
        };
        row.columns().iter().map(value).collect::<Result<_, _>>().map(Self).map_err(ImportError::database)
    }

    fn value(&self, column: &str) -> &SourceValue {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or(&SourceValue::Null, |(_, value)| value)
    }

    /// Returns the bytes of a column.
    pub(crate) fn bytes(&self, column: &str) -> Option<&[u8]> {
        match self.value(column) {
            SourceValue::Bytes(bytes) => Some(bytes),
            SourceValue::Null | SourceValue::Number(_) => None,
        }
    }

    /// Returns the text of a column. Invalid UTF-8, and NUL, which PostgreSQL cannot store, are replaced.
    pub(crate) fn text(&self, column: &str) -> Option<String> {
        let text = match self.value(column) {
            SourceValue::Null => return None,
            SourceValue::Number(number) => number.to_string(),
            SourceValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        };
        Some(text.replace('\0', "\u{fffd}"))
    }

    /// Returns the number of a column; 0 if it is null.
    pub(crate) fn number(&self, column: &str) -> Result<i64, ImportError> {
        as_number(column, self.value(column))
    }

    /// Returns the number of the first column, such as a count.
    pub(crate) fn first_number(&self) -> Result<i64, ImportError> {
        self.0.first().map_or(Ok(0), |(column, value)| as_number(column, value))
    }
}

fn as_number(column: &str, value: &SourceValue) -> Result<i64, ImportError> {
    match value {
        SourceValue::Number(number) => Ok(*number),
        SourceValue::Null => Ok(0),
        SourceValue::Bytes(_) => {
            Err(ImportError::Source(format!("a value in the column {column} is not a number")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_place_of_a_number_is_an_error() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let mut statement = connection.prepare("SELECT 7 AS seven, NULL AS none, 'x' AS text").unwrap();
        let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let mut rows = statement.query([]).unwrap();
        let row = SourceRow::of_sqlite(&columns, rows.next().unwrap().unwrap()).unwrap();
        let number = |column: &str| row.number(column).map_err(|error| error.to_string());
        assert_eq!((number("seven"), number("none"), row.first_number().unwrap()), (Ok(7), Ok(0), 7));
        assert!(number("text").unwrap_err().contains("the column text"));
    }
}
