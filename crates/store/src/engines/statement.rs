//! Statements with the same SQL text for both engines.

use super::{
    row::{FromRow, Row},
    waiter::Waiter,
};
use crate::{InboxItemId, Result, StoreError, TurnId, engines::DbEngine};
use futures_util::TryStreamExt;
use pudu_base::{RunId, ThreadId, UserId};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use sqlx::{AssertSqlSafe, PgConnection, Postgres, postgres::PgArguments};
use std::{borrow::Cow, time::Duration};

/// A connection on which a job runs its statements, inside a transaction if the job writes. Each statement blocks
/// the thread of the job until it is answered.
pub(crate) enum Tx<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres { connection: &'c mut PgConnection, waiter: &'c Waiter },
}

impl Tx<'_> {
    pub(crate) fn engine(&self) -> DbEngine {
        match self {
            Self::Sqlite(_) => DbEngine::Sqlite,
            Self::Postgres { .. } => DbEngine::Postgres,
        }
    }

    /// Sleeps between two tries on a server.
    pub(super) fn pause(&self, time: Duration) -> Result<()> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres { waiter, .. } => waiter.wait(async {
                tokio::time::sleep(time).await;
                Ok(())
            }),
        }
    }

    /// Runs statements without bound values.
    pub(crate) fn run(&mut self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Self::Postgres { connection, waiter } => {
                let run = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **connection);
                waiter.wait(async { Ok(run.await.map(drop)?) })
            }
        }
    }
}

/// A statement and its bound values.
#[derive(Clone)]
pub(crate) struct Statement<'q> {
    sql: Cow<'static, str>,
    values: Vec<BoundValue<'q>>,
}

/// A bound value. All columns are BIGINT or TEXT.
#[derive(Clone)]
pub(crate) enum BoundValue<'q> {
    Number(Option<i64>),
    Text(Option<Cow<'q, str>>),
}

/// Creates a statement. `$1` is the first bound value.
pub(crate) fn query<'q>(sql: impl Into<Cow<'static, str>>) -> Statement<'q> {
    Statement { sql: sql.into(), values: Vec::new() }
}

impl<'q> Statement<'q> {
    pub(crate) fn bind(mut self, value: impl Into<BoundValue<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Binds several values.
    pub(crate) fn bind_all(mut self, values: impl IntoIterator<Item: Into<BoundValue<'q>>>) -> Self {
        self.values.extend(values.into_iter().map(Into::into));
        self
    }

    /// Returns the statement with owned values.
    pub(crate) fn into_owned(self) -> Statement<'static> {
        let owned = |value| match value {
            BoundValue::Number(number) => BoundValue::Number(number),
            BoundValue::Text(text) => BoundValue::Text(text.map(|text| Cow::Owned(text.into_owned()))),
        };
        Statement { sql: self.sql, values: self.values.into_iter().map(owned).collect() }
    }

    /// Runs the statement and returns the number of changed rows.
    pub(crate) fn execute(&self, tx: &mut Tx<'_>) -> Result<u64> {
        match tx {
            Tx::Sqlite(connection) => {
                let mut statement = self.on_sqlite(connection)?;
                Ok(u64::try_from(statement.raw_execute()?).unwrap_or(u64::MAX))
            }
            Tx::Postgres { connection, waiter } => {
                let run = self.on_postgres().execute(&mut **connection);
                waiter.wait(async { Ok(run.await?.rows_affected()) })
            }
        }
    }

    /// Runs the statement and passes each row to `take`.
    pub(crate) fn each<R: FromRow>(
        &self,
        tx: &mut Tx<'_>,
        mut take: impl FnMut(R) -> Result<()>,
    ) -> Result<()> {
        match tx {
            Tx::Sqlite(connection) => {
                let mut statement = self.on_sqlite(connection)?;
                let mut rows = statement.raw_query();
                while let Some(row) = rows.next()? {
                    take(R::from_row(&Row::Sqlite(row))?)?;
                }
                Ok(())
            }
            Tx::Postgres { connection, waiter } => waiter.wait(async {
                let mut rows = self.on_postgres().fetch(&mut **connection);
                while let Some(row) = rows.try_next().await? {
                    take(R::from_row(&Row::Postgres(&row))?)?;
                }
                Ok(())
            }),
        }
    }

    /// Runs the statement and returns its rows.
    pub(crate) fn fetch_all<R: FromRow>(&self, tx: &mut Tx<'_>) -> Result<Vec<R>> {
        let mut all = Vec::new();
        self.each(tx, |row| {
            all.push(row);
            Ok(())
        })?;
        Ok(all)
    }

    /// Runs the statement and returns its row, if there is one.
    pub(crate) fn fetch_optional<R: FromRow>(&self, tx: &mut Tx<'_>) -> Result<Option<R>> {
        Ok(self.fetch_all(tx)?.into_iter().next())
    }

    /// Runs the statement and returns whether it finds a row.
    pub(crate) fn finds(&self, tx: &mut Tx<'_>) -> Result<bool> {
        Ok(self.fetch_optional::<()>(tx)?.is_some())
    }

    /// Runs the statement and returns its only row.
    pub(crate) fn fetch_one<R: FromRow>(&self, tx: &mut Tx<'_>) -> Result<R> {
        let row = self.fetch_optional(tx)?;
        row.ok_or_else(|| StoreError::Rejected("a statement returned no row".to_owned()))
    }

    /// Prepares the statement. SQLite treats `$1` as a name, and numbers names in the order of their first use.
    fn on_sqlite<'c>(
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

    fn on_postgres(&self) -> sqlx::query::Query<'_, Postgres, PgArguments> {
        let query = match &self.sql {
            Cow::Borrowed(sql) => sqlx::query(*sql),
            // The text is from our code, not from users.
            Cow::Owned(sql) => sqlx::query(AssertSqlSafe(sql.as_str())),
        };
        self.values.iter().fold(query, |query, value| match value {
            BoundValue::Number(number) => query.bind(number),
            BoundValue::Text(text) => query.bind(text.as_deref()),
        })
    }
}

/// Returns a text that both engines can store: PostgreSQL rejects NUL, which can occur in the output of programs.
fn storable(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

macro_rules! bound {
    ($($type:ty: $value:ident => $bound:expr),* $(,)?) => {
        $(impl<'q> From<$type> for BoundValue<'q> {
            fn from($value: $type) -> Self {
                $bound
            }
        })*
    };
}

bound! {
    i64: number => Self::Number(Some(number)),
    &'q i64: number => Self::Number(Some(*number)),
    bool: flag => Self::Number(Some(flag.into())),
    Option<i64>: number => Self::Number(number),
    InboxItemId: id => Self::Number(Some(id.0)),
    &'q str: text => Self::Text(Some(storable(text))),
    &'q &'q str: text => Self::Text(Some(storable(text))),
    &'q String: text => Self::Text(Some(storable(text))),
    &'q ThreadId: id => id.as_str().into(),
    &'q RunId: id => id.as_str().into(),
    &'q UserId: id => id.as_str().into(),
    &'q TurnId: id => id.0.as_str().into(),
    Option<&'q str>: text => Self::Text(text.map(storable)),
    &'q Option<String>: text => text.as_deref().into(),
    Option<&'q RunId>: id => id.map(RunId::as_str).into(),
    Option<&'q UserId>: id => id.map(UserId::as_str).into(),
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
