//! Causes of an error in words.

use std::error::Error;

/// Adds the causes of an error to its text.
#[must_use]
pub fn with_causes(text: String, error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&source| source.source());
    causes.fold(text, |text, cause| format!("{text}: {cause}"))
}
