//! Repairs heads that are not valid YAML. People write `description: Reads files: tables and texts`, which YAML treats
//! as a nested key; other agents read it as plain text.

/// Quotes the texts of a head that YAML cannot parse without quotes. Also returns the keys of these texts. `is_yaml`
/// returns whether a text is YAML.
pub(super) fn quote(head: &str, is_yaml: impl Fn(&str) -> bool) -> (String, Vec<String>) {
    let (mut quoted, mut keys) = (String::new(), Vec::new());
    for entry in entries(head) {
        match plain_text(&entry).filter(|_| !is_yaml(&entry)) {
            Some((key, text)) => {
                // JSON strings are valid YAML.
                quoted.push_str(&format!("{key}: {}\n", serde_json::Value::from(text)));
                keys.push(key.to_owned());
            }
            None => quoted.push_str(&entry),
        }
    }
    (quoted, keys)
}

/// Splits a head into its top-level keys, each with the lines below it. Leading tabs become spaces.
fn entries(head: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in head.lines() {
        let text = line.trim_start_matches([' ', '\t']);
        let indent = line.get(..line.len() - text.len()).unwrap_or_default().replace('\t', "  ");
        let line = format!("{indent}{}\n", text.trim_end());
        match entries.last_mut() {
            // The items of a list may follow their key without indentation.
            Some(entry) if !indent.is_empty() || text.is_empty() || text.starts_with("- ") => {
                entry.push_str(&line);
            }
            _ => entries.push(line),
        }
    }
    entries
}

/// Returns the key and the text of an entry whose value is one text, possibly on several lines.
fn plain_text(entry: &str) -> Option<(&str, String)> {
    let (key, value) = entry.split_once(':')?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if key.is_empty() || !key.chars().all(is_key) {
        return None;
    }
    let value = value.strip_prefix([' ', '\t'])?.trim();
    let lines: Vec<&str> = value.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_block = |line: &&str| matches!(*line, ">" | "|" | ">-" | "|-" | ">+" | "|+");
    let text = lines.get(usize::from(lines.first().is_some_and(is_block))..).unwrap_or_default().join(" ");
    // A text that gets here and has the same quote at both ends contains further quotes, or it would be valid YAML.
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    let text = inner.map_or_else(|| text.clone(), str::to_owned);
    (!text.is_empty()).then_some((key, text))
}
