//! The statements of recall that differ between the engines.

use crate::engines::DbEngine;

/// SQL that differs between the engines.
pub(super) struct RecallSql {
    /// Inserts an entry and returns its id.
    pub(super) insert: &'static str,
    /// Adds the words `$2` of the entry `$1`, separated by spaces, to the full-text index.
    pub(super) add_words: &'static str,
    /// Removes the same words before the entry itself is deleted.
    pub(super) remove_words: Option<&'static str>,
    /// Adds to the number of entries of a scope `$1` that contain a word, for a list `$2` of words and numbers.
    pub(super) count_words: &'static str,
    /// Deletes the words of the same list that are no longer in any entry.
    pub(super) drop_words: &'static str,
    /// Returns the number of entries of a scope `$1` that contain each word of a list `$2`.
    pub(super) counts: &'static str,
    /// Returns the index of each expression in a list `$1`, and the ids of the newest entries that match it, at most
    /// `$2`, separated by spaces.
    pub(super) matches: &'static str,
    /// Returns one text for a list `$1` of ids: each entry's id, time and words, separated by `|`.
    pub(super) bags: &'static str,
    /// Returns the entries of a list `$1` of ids that are in the scope `$2`. Avoids the index on the scope, because it
    /// would read the whole scope.
    pub(super) docs: &'static str,
}

/// Statements shared by both engines. `$each` is the engine's expression for the elements of a list.
macro_rules! shared {
    (insert) => {
        "INSERT INTO recall_docs (scope, doc, thread, author, at, confidence, text)
            VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id"
    };
    (count, $each:literal) => {
        concat!(
            "INSERT INTO recall_words (scope, word, docs)
                SELECT CAST($1 AS BIGINT), item.value ->> 0, CAST(item.value ->> 1 AS BIGINT) FROM ",
            $each,
            " WHERE 1 = 1 ON CONFLICT (scope, word) DO UPDATE SET docs = recall_words.docs + excluded.docs"
        )
    };
    (drop, $each:literal) => {
        concat!(
            "DELETE FROM recall_words WHERE scope = $1 AND docs <= 0 AND word IN (SELECT item.value ->> 0 FROM ",
            $each,
            ")"
        )
    };
    (counts, $each:literal) => {
        concat!(
            "SELECT word, docs FROM recall_words WHERE scope = $1 AND word IN (SELECT item.value ->> 0 FROM ",
            $each,
            ")"
        )
    };
    (bags, $each:literal) => {
        concat!(
            "SELECT COALESCE(string_agg(CAST(id AS TEXT) || ' ' || CAST(at AS TEXT) || ' ' || words, '|'), '')
                FROM recall_bags WHERE id IN (SELECT CAST(item.value ->> 0 AS BIGINT) FROM ",
            $each,
            ")"
        )
    };
    (docs, $each:literal) => {
        concat!(
            "SELECT id, doc, thread, author, at, confidence, text FROM recall_docs
                WHERE scope + 0 = $2 AND id IN (SELECT CAST(item.value ->> 0 AS BIGINT) FROM ",
            $each,
            ")"
        )
    };
}

const SQLITE: RecallSql = RecallSql {
    insert: shared!(insert),
    add_words: "INSERT INTO recall_index (rowid, tokens) VALUES ($1, $2)",
    remove_words: Some("INSERT INTO recall_index (recall_index, rowid, tokens) VALUES ('delete', $1, $2)"),
    count_words: shared!(count, "json_each($2) item"),
    drop_words: shared!(drop, "json_each($2) item"),
    counts: shared!(counts, "json_each($2) item"),
    matches:
        "SELECT item.key, COALESCE((SELECT string_agg(id, ' ') FROM (SELECT rowid AS id FROM recall_index
                WHERE recall_index MATCH (item.value ->> 0) ORDER BY rowid DESC LIMIT $2)), '')
            FROM json_each($1) item",
    bags: shared!(bags, "json_each($1) item"),
    docs: shared!(docs, "json_each($1) item"),
};

const POSTGRES: RecallSql = RecallSql {
    insert: shared!(insert),
    add_words: "UPDATE recall_docs SET tokens = array_to_tsvector(string_to_array(CAST($2 AS TEXT), ' ')) WHERE id = $1",
    // The words are in the entry's row.
    remove_words: None,
    count_words: shared!(count, "json_array_elements(CAST(CAST($2 AS TEXT) AS json)) item"),
    drop_words: shared!(drop, "json_array_elements(CAST(CAST($2 AS TEXT) AS json)) item"),
    counts: shared!(counts, "json_array_elements(CAST(CAST($2 AS TEXT) AS json)) item"),
    matches: "SELECT item.place - 1, COALESCE((SELECT string_agg(CAST(id AS TEXT), ' ') FROM (SELECT id FROM recall_docs
            WHERE tokens @@ CAST(item.value ->> 0 AS tsquery) ORDER BY id DESC LIMIT $2) newest), '')
        FROM json_array_elements(CAST(CAST($1 AS TEXT) AS json)) WITH ORDINALITY item (value, place)",
    bags: shared!(bags, "json_array_elements(CAST(CAST($1 AS TEXT) AS json)) item"),
    docs: shared!(docs, "json_array_elements(CAST(CAST($1 AS TEXT) AS json)) item"),
};

impl RecallSql {
    pub(super) fn for_engine(engine: DbEngine) -> &'static Self {
        match engine {
            DbEngine::Sqlite => &SQLITE,
            DbEngine::Postgres => &POSTGRES,
        }
    }
}

/// Returns a word in the form of the index: prefixed by its scope's number.
pub(super) fn token(scope: i64, word: &str) -> String {
    // SQLite's tokenizer treats the separator as part of a word, and our words never contain it.
    format!("{scope}\u{b7}{word}")
}

/// Returns an expression that matches the entries containing all these words.
pub(super) fn all_of(engine: DbEngine, scope: i64, words: &[&str]) -> String {
    let (quote, and) = match engine {
        DbEngine::Sqlite => ('"', " AND "),
        DbEngine::Postgres => ('\'', " & "),
    };
    // Words consist of letters and digits only, so they contain no quotes, backslashes or operators.
    let quoted = |word: &&str| format!("{quote}{}{quote}", token(scope, word));
    words.iter().map(quoted).collect::<Vec<_>>().join(and)
}
