//! Text of an error's causes.

use std::error::Error;

/// Appends the causes of an error to its text.
#[must_use]
pub fn with_causes(text: String, error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&source| source.source());
    causes.fold(text, |text, cause| format!("{text}: {cause}"))
}
