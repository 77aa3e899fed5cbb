//! Rows of either engine, and their conversion to types.

use crate::{InboxItemId, Result, StoreError, TurnId};
use pudu_base::{RunId, ThreadId, UserId};
use rusqlite::types::FromSql;
use sqlx::{Column as _, Row as _, TypeInfo as _, postgres::PgRow};

/// A result row.
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r PgRow),
}

/// A column, by its index or its name.
#[derive(Clone, Copy)]
pub(crate) enum Column<'c> {
    Place(usize),
    Name(&'c str),
}

impl From<usize> for Column<'_> {
    fn from(place: usize) -> Self {
        Self::Place(place)
    }
}

impl<'c> From<&'c str> for Column<'c> {
    fn from(name: &'c str) -> Self {
        Self::Name(name)
    }
}

impl Row<'_> {
    /// Returns the value of a column.
    pub(crate) fn column<'c, T: FromColumn>(&self, at: impl Into<Column<'c>>) -> Result<T> {
        T::from_column(self, at.into())
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Sqlite(row) => row.as_ref().column_names(),
            Self::Postgres(row) => row.columns().iter().map(sqlx::Column::name).collect(),
        }
    }

    fn number(&self, at: Column<'_>) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(row) => sqlite(row, at),
            Self::Postgres(row) => {
                let index = place(row, at)?;
                match row.try_column(index)?.type_info().name() {
                    // The type of a number literal in a statement.
                    "INT4" => Ok(row.try_get::<Option<i32>, _>(index)?.map(i64::from)),
                    _ => Ok(row.try_get(index)?),
                }
            }
        }
    }

    fn text(&self, at: Column<'_>) -> Result<Option<String>> {
        match self {
            Self::Sqlite(row) => sqlite(row, at),
            Self::Postgres(row) => Ok(row.try_get(place(row, at)?)?),
        }
    }
}

fn sqlite<T: FromSql>(row: &rusqlite::Row<'_>, at: Column<'_>) -> Result<Option<T>> {
    Ok(match at {
        Column::Place(place) => row.get(place),
        Column::Name(name) => row.get(name),
    }?)
}

fn place(row: &PgRow, at: Column<'_>) -> Result<usize> {
    Ok(match at {
        Column::Place(place) => place,
        Column::Name(name) => row.try_column(name)?.ordinal(),
    })
}

/// The value of a column that is not NULL.
pub(crate) trait ColumnValue: Sized {
    /// Returns the value, or `None` for NULL.
    fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>>;
}

/// The value of a column.
pub(crate) trait FromColumn: Sized {
    fn from_column(row: &Row<'_>, at: Column<'_>) -> Result<Self>;
}

impl<T: ColumnValue> FromColumn for T {
    fn from_column(row: &Row<'_>, at: Column<'_>) -> Result<Self> {
        T::read(row, at)?.ok_or_else(|| StoreError::Corrupt("a column without a value".to_owned()))
    }
}

impl<T: ColumnValue> FromColumn for Option<T> {
    fn from_column(row: &Row<'_>, at: Column<'_>) -> Result<Self> {
        T::read(row, at)
    }
}

impl ColumnValue for i64 {
    fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>> {
        row.number(at)
    }
}

impl ColumnValue for String {
    fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>> {
        row.text(at)
    }
}

impl ColumnValue for UserId {
    fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>> {
        let id = |text: String| Self::from_raw(&text).map_err(|error| StoreError::Corrupt(error.to_string()));
        row.text(at)?.map(id).transpose()
    }
}

macro_rules! column_values {
    ($($type:ty = $raw:ident($make:expr)),* $(,)?) => {
        $(impl ColumnValue for $type {
            fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>> {
                Ok(row.$raw(at)?.map($make))
            }
        })*
    };
}

column_values! {
    bool = number(|number| number != 0),
    InboxItemId = number(InboxItemId),
    TurnId = text(TurnId),
    ThreadId = text(ThreadId::from),
    RunId = text(RunId::from),
}

/// A type that can be read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> Result<Self>;
}

/// Reads a single value from the first column.
impl<T: FromColumn> FromRow for T {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        row.column(0)
    }
}

/// Reads no column. Used to check that a row exists.
impl FromRow for () {
    fn from_row(_: &Row<'_>) -> Result<Self> {
        Ok(())
    }
}

/// Implements `FromRow` for a struct, from columns named after its fields or as given. `field = value` reads no column.
macro_rules! from_row {
    ($type:ident { $($field:ident $(: $column:literal)? $(= $value:expr)?),* $(,)? }) => {
        impl $crate::engines::FromRow for $type {
            fn from_row(row: &$crate::engines::Row<'_>) -> $crate::Result<Self> {
                Ok(Self { $($field: $crate::engines::from_row!(@read row $field $($column)? $(= $value)?)),* })
            }
        }
    };
    (@read $row:ident $field:ident) => { $row.column(stringify!($field))? };
    (@read $row:ident $field:ident $column:literal) => { $row.column($column)? };
    (@read $row:ident $field:ident = $value:expr) => { $value };
}
pub(crate) use from_row;

macro_rules! tuples {
    (($($column:ident $at:literal)*)) => {};
    (($($column:ident $at:literal)*) $next:ident $place:literal $($rest:tt)*) => {
        impl<$($column: FromColumn,)* $next: FromColumn> FromRow for ($($column,)* $next,) {
            fn from_row(row: &Row<'_>) -> Result<Self> {
                Ok(($(row.column($at)?,)* row.column($place)?,))
            }
        }
        tuples!(($($column $at)* $next $place) $($rest)*);
    };
}

tuples!(() A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13);
