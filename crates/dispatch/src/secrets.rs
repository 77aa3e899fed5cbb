//! Text about missing secrets that skills need.

use pudu_runs::MissingSecret;
use pudu_texts::Language;

/// Returns a note on how to set secrets, if any are missing. In a room, the note adds that secrets work only in
/// private.
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
