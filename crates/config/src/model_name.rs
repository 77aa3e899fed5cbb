//! References to models by their names.

use super::{model::ModelConfig, reader::Section};

/// Reads the name of one of the models, and refuses any other.
pub(super) fn named(
    section: &Section<'_>,
    key: &str,
    models: &[ModelConfig],
    default: &str,
) -> Option<String> {
    let name = section.text(key).optional(default)?;
    let names: Vec<&str> = models.iter().map(|model| model.settings.name.as_str()).collect();
    if !names.contains(&name.as_str()) {
        let help = match names.as_slice() {
            [] => "describe it under `models`".to_owned(),
            names => format!("name one of `models`: {}", names.join(", ")),
        };
        section.refuse(key, format!("there is no model {name}"), help);
    }
    Some(name)
}
