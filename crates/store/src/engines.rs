//! The two engines: connections, statements, rows, migrations and the claim on a database.

mod claim;
mod connections;
mod engine;
mod lock;
mod postgres;
mod readers;
mod row;
mod schema;
mod sqlite;
mod statement;
mod transaction;
mod waiter;

pub use claim::Claim;
pub(crate) use connections::{ReadLink, WriteLink, connect};
pub(crate) use engine::DbEngine;
#[cfg(test)]
pub(crate) use postgres::PgWriter;
pub(crate) use row::{Column, ColumnValue, FromRow, Row, from_row};
pub(crate) use sqlite::{connect as open_file, step as disk_step};
pub(crate) use statement::{BoundValue, Statement, Tx, query};
pub(crate) use transaction::{CommitError, Transaction};
