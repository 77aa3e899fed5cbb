//! Words about missing secrets that skills need.

use pudu_client::MissingSecret;
use pudu_texts::Language;

/// Returns a note on how to give secrets, if any are missing; in a room, that they work in private only.
pub(super) fn note_missing(language: Language, private: bool, missing: &[MissingSecret]) -> Option<String> {
    let line = |missing: &MissingSecret| {
        let (name, skill) = (&missing.secret.name, &missing.skill);
        match &missing.secret.about {
            _ if !private => language.secret_missing_room(name, skill),
            Some(about) => language.secret_missing_about(about, name, skill),
            None => language.secret_missing(name, skill),
        }
    };
    let lines: Vec<String> = missing.iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
