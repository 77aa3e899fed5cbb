//! References to models by their names.

use super::{declare::Setting, model::ModelConfig, reader::Section};

impl<'r> Section<'r> {
    /// Reads the name of one of the models, and refuses any other.
    pub(super) fn model<'s>(&'s self, key: &'s str, models: &[ModelConfig]) -> Setting<'s, 'r, String> {
        let setting = self.text(key);
        let names: Vec<&str> = models.iter().map(|model| model.settings.name.as_str()).collect();
        if let Some(name) = &setting.value
            && !names.contains(&name.as_str())
        {
            let help = match names.as_slice() {
                [] => "describe it under `models`".to_owned(),
                names => format!("use one of `models`: {}", names.join(", ")),
            };
            self.refuse(key, format!("there is no model {name}"), help);
        }
        setting
    }
}
