//! Response types, in a short notation.
//!
//! Most response types come from the handlers. Some handlers build their responses with `json!`, in the shapes of
//! DeerFlow's API; the notation lists the keys of such a response: `{id: string, title?: string|null, files: [File],
//! more: any}`. A capitalised name refers to a component of the document; `?` after a key makes it optional, `|`
//! separates alternatives. Objects may have further keys.

use serde_json::{Map, Value, json};

/// Named types, which become components of the document.
pub(super) const NAMED: &[(&str, &str)] = &[
    ("Accepted", "{duplicate: boolean}"),
    (
        "ThreadState",
        "{values: object, next: [string], tasks: [object], metadata: object, created_at: string, checkpoint: object, \
         checkpoint_id: string|null, parent_checkpoint: object|null, parent_checkpoint_id: string|null}",
    ),
    (
        "Run",
        "{run_id: string, thread_id: string, assistant_id: string, status: string, metadata: object, kwargs: object, \
         multitask_strategy: string, created_at: string, updated_at: string, model_name: string|null, \
         total_input_tokens: integer, total_output_tokens: integer, total_tokens: integer, llm_call_count: integer}",
    ),
    ("Goal", "{goal: object|null}"),
    (
        "Row",
        "{thread_id: string, run_id: string|null, user_id: string, seq: integer, event_type: string, category: string, \
         content: any, metadata: object, created_at: string}",
    ),
    (
        "Memory",
        "{version: string, revision: integer, lastUpdated: string, user: object, history: object, facts: [object]}",
    ),
    (
        "Account",
        "{id: string, email: string, system_role: string, needs_setup: boolean, oauth_provider: string|null, created_at?: string}",
    ),
    (
        "Token",
        "{id: string, name: string, scopes: [string], expires_at: string|null, last_used_at: string|null, \
         created_at: string, revoked_at: null, user?: string, token?: string}",
    ),
];

/// Returns the schema of a type in this notation, or an error.
pub(super) fn schema(text: &str) -> Result<Value, String> {
    let mut reader = ShapeReader { text };
    let schema = reader.alternatives()?;
    match reader.text.trim() {
        "" => Ok(schema),
        rest => Err(format!("`{rest}` is too much")),
    }
}

struct ShapeReader<'a> {
    text: &'a str,
}

impl ShapeReader<'_> {
    fn takes(&mut self, token: char) -> bool {
        let rest = self.text.trim_start();
        let found = rest.strip_prefix(token);
        self.text = found.unwrap_or(rest);
        found.is_some()
    }

    fn word(&mut self) -> String {
        let rest = self.text.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.text = rest;
        word.to_owned()
    }

    fn alternatives(&mut self) -> Result<Value, String> {
        let mut all = vec![self.one()?];
        while self.takes('|') {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { json!({ "anyOf": all }) })
    }

    fn one(&mut self) -> Result<Value, String> {
        if self.takes('{') {
            return self.object();
        }
        if self.takes('[') {
            let items = self.alternatives()?;
            return self
                .takes(']')
                .then(|| json!({ "type": "array", "items": items }))
                .ok_or("`]` is missing".into());
        }
        let word = self.word();
        match word.as_str() {
            "any" => Ok(json!({})),
            "string" | "integer" | "number" | "boolean" | "object" | "null" => Ok(json!({ "type": word })),
            name if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
                Ok(json!({ "$ref": format!("#/components/schemas/{name}") }))
            }
            other => Err(format!("`{other}` is not a type")),
        }
    }

    fn object(&mut self) -> Result<Value, String> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        while !self.takes('}') {
            let key = self.word();
            if !self.takes('?') {
                required.push(key.clone());
            }
            if key.is_empty() || !self.takes(':') {
                return Err(format!("a key is missing before `{}`", self.text));
            }
            properties.insert(key, self.alternatives()?);
            self.takes(',');
        }
        Ok(json!({ "type": "object", "properties": properties, "required": required }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_types_are_valid() {
        for (name, text) in NAMED {
            assert!(schema(text).is_ok(), "{name}: {:?}", schema(text));
        }
    }

    #[test]
    fn the_notation_describes_keys_alternatives_and_lists() {
        let actual = schema("{id: string, of?: [Run]|null, rest: any}").unwrap();
        let run = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Run" } });
        let expected = json!({
            "type": "object",
            "properties": { "id": { "type": "string" }, "of": { "anyOf": [run, { "type": "null" }] }, "rest": {} },
            "required": ["id", "rest"],
        });
        assert_eq!(actual, expected);
        for wrong in ["", "text", "{id}", "{id: string", "[string", "string string", "{: string}", "string|"]
        {
            assert!(schema(wrong).is_err(), "{wrong}");
        }
    }
}
