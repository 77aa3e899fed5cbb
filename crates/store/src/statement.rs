//! One statement, on either kind of connection.
//!
//! A file's connection does a statement at once, in the thread that asks. One by way of a pool may be a server's, or a
//! database in memory. The SQL is the same.

use crate::StoreError;
use futures_util::TryStreamExt;
use rusqlite::types::{FromSql, ToSql, ToSqlOutput, ValueRef};
use sqlx::{Any, AnyConnection, AssertSqlSafe, Column, Row, any::AnyRow};
use std::borrow::Cow;

/// A transaction of the writer, or the connection of a reader.
pub(crate) enum Tx<'c> {
    File(&'c mut rusqlite::Connection),
    Pooled(&'c mut AnyConnection),
}

/// A statement and its values.
pub(crate) struct Statement<'q> {
    sql: Cow<'static, str>,
    values: Vec<BoundValue<'q>>,
}

/// A value of a statement. Columns are BIGINT and TEXT only.
#[derive(Clone)]
pub(crate) enum BoundValue<'q> {
    Number(Option<i64>),
    Text(Option<Cow<'q, str>>),
}

/// Returns a text as both engines store it: PostgreSQL refuses a NUL, which output of programs may have.
fn storable(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Makes a statement; `$1` is the first bound value.
pub(crate) fn query<'q>(sql: impl Into<Cow<'static, str>>) -> Statement<'q> {
    Statement { sql: sql.into(), values: Vec::new() }
}

impl<'q> Statement<'q> {
    pub(crate) fn bind(mut self, value: impl Into<BoundValue<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Runs it and returns how many rows it changed.
    pub(crate) async fn execute(self, tx: &mut Tx<'_>) -> Result<u64, StoreError> {
        match tx {
            Tx::File(connection) => {
                let mut statement = self.prepared(connection)?;
                Ok(u64::try_from(statement.raw_execute()?).unwrap_or(u64::MAX))
            }
            Tx::Pooled(connection) => Ok(self.pooled().execute(&mut **connection).await?.rows_affected()),
        }
    }

    /// Runs it and gives its rows to `take`, one after the other.
    pub(crate) async fn each<R: FromColumns>(
        self,
        tx: &mut Tx<'_>,
        mut take: impl FnMut(R) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match tx {
            Tx::File(connection) => {
                let mut statement = self.prepared(connection)?;
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next()? {
                    take(R::from_columns(row)?)?;
                }
            }
            Tx::Pooled(connection) => {
                let mut rows = self.pooled().fetch(&mut **connection);
                while let Some(row) = rows.try_next().await? {
                    take(R::from_columns(&row)?)?;
                }
            }
        }
        Ok(())
    }

    /// Runs it and returns its rows.
    pub(crate) async fn fetch_all<R: FromColumns>(self, tx: &mut Tx<'_>) -> Result<Vec<R>, StoreError> {
        let mut all = Vec::new();
        self.each(tx, |row| {
            all.push(row);
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// Runs it and returns its row, if there is one.
    pub(crate) async fn fetch_optional<R: FromColumns>(
        self,
        tx: &mut Tx<'_>,
    ) -> Result<Option<R>, StoreError> {
        Ok(self.fetch_all(tx).await?.into_iter().next())
    }

    /// Runs it and returns whether it finds a row.
    pub(crate) async fn finds(self, tx: &mut Tx<'_>) -> Result<bool, StoreError> {
        Ok(self.fetch_optional::<()>(tx).await?.is_some())
    }

    /// Runs it and returns its row.
    pub(crate) async fn fetch_one<R: FromColumns>(self, tx: &mut Tx<'_>) -> Result<R, StoreError> {
        let row = self.fetch_optional(tx).await?;
        row.ok_or_else(|| StoreError::Rejected("a statement returned no row".to_owned()))
    }

    /// Returns the statement as a file's connection runs it. SQLite takes `$1` for a name, whose place is that of its
    /// first use.
    fn prepared<'c>(
        &self,
        connection: &'c rusqlite::Connection,
    ) -> rusqlite::Result<rusqlite::CachedStatement<'c>> {
        let mut statement = connection.prepare_cached(&self.sql)?;
        for place in 1..=statement.parameter_count() {
            let name = statement.parameter_name(place).unwrap_or_default();
            let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
            let value = number.and_then(|number| self.values.get(number.checked_sub(1)?));
            let value = value.ok_or_else(|| rusqlite::Error::InvalidParameterName(name.to_owned()))?;
            statement.raw_bind_parameter(place, value)?;
        }
        Ok(statement)
    }

    /// Returns it as a pool's connection runs it.
    fn pooled(self) -> sqlx::query::Query<'q, Any, <Any as sqlx::Database>::Arguments> {
        let query = match self.sql {
            Cow::Borrowed(sql) => sqlx::query(sql),
            // The text is one of ours, not user input.
            Cow::Owned(sql) => sqlx::query(AssertSqlSafe(sql)),
        };
        self.values.into_iter().fold(query, |query, value| match value {
            BoundValue::Number(number) => query.bind(number),
            BoundValue::Text(None) => query.bind(None::<String>),
            BoundValue::Text(Some(Cow::Borrowed(text))) => query.bind(text),
            BoundValue::Text(Some(Cow::Owned(text))) => query.bind(text),
        })
    }
}

impl From<i64> for BoundValue<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for BoundValue<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl<'q> From<&'q str> for BoundValue<'q> {
    fn from(text: &'q str) -> Self {
        Self::Text(Some(storable(text)))
    }
}

impl<'q> From<&'q String> for BoundValue<'q> {
    fn from(text: &'q String) -> Self {
        Self::Text(Some(storable(text)))
    }
}

impl<'q> From<Option<&'q str>> for BoundValue<'q> {
    fn from(text: Option<&'q str>) -> Self {
        Self::Text(text.map(storable))
    }
}

impl ToSql for BoundValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Number(Some(number)) => ValueRef::Integer(*number),
            Self::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Self::Number(None) | Self::Text(None) => ValueRef::Null,
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// The value of a column.
pub(crate) trait ColumnValue: FromSql + for<'r> sqlx::Decode<'r, Any> + sqlx::Type<Any> {}

impl<T: FromSql + for<'r> sqlx::Decode<'r, Any> + sqlx::Type<Any>> ColumnValue for T {}

/// A row of either kind of connection.
pub(crate) trait Columns {
    /// Returns the names of the columns.
    fn names(&self) -> Vec<&str>;

    /// Returns the value of the column at a place, or of a name.
    fn column<T: ColumnValue, I: rusqlite::RowIndex + sqlx::ColumnIndex<AnyRow>>(
        &self,
        at: I,
    ) -> Result<T, StoreError>;
}

impl Columns for AnyRow {
    fn names(&self) -> Vec<&str> {
        self.columns().iter().map(Column::name).collect()
    }

    fn column<T: ColumnValue, I: rusqlite::RowIndex + sqlx::ColumnIndex<AnyRow>>(
        &self,
        at: I,
    ) -> Result<T, StoreError> {
        Ok(self.try_get(at)?)
    }
}

impl Columns for rusqlite::Row<'_> {
    fn names(&self) -> Vec<&str> {
        self.as_ref().column_names()
    }

    fn column<T: ColumnValue, I: rusqlite::RowIndex + sqlx::ColumnIndex<AnyRow>>(
        &self,
        at: I,
    ) -> Result<T, StoreError> {
        Ok(self.get(at)?)
    }
}

/// A type that a row can be read as.
pub(crate) trait FromColumns: Sized {
    fn from_columns(row: &impl Columns) -> Result<Self, StoreError>;
}

macro_rules! scalars {
    ($($scalar:ty),*) => {
        $(impl FromColumns for $scalar {
            fn from_columns(row: &impl Columns) -> Result<Self, StoreError> {
                row.column(0)
            }
        })*
    };
}

scalars!(i64, Option<i64>, String, Option<String>);

/// A row without columns to read: it exists.
impl FromColumns for () {
    fn from_columns(_: &impl Columns) -> Result<Self, StoreError> {
        Ok(())
    }
}

macro_rules! tuples {
    (($($column:ident $at:literal)*)) => {};
    (($($column:ident $at:literal)*) $next:ident $place:literal $($rest:tt)*) => {
        impl<$($column: ColumnValue,)* $next: ColumnValue> FromColumns for ($($column,)* $next,) {
            fn from_columns(row: &impl Columns) -> Result<Self, StoreError> {
                Ok(($(row.column($at)?,)* row.column($place)?,))
            }
        }
        tuples!(($($column $at)* $next $place) $($rest)*);
    };
}

tuples!(() A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13);
