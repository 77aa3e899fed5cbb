//! Parts of a request that have no effect. A response header names them.

use axum::http::{HeaderName, HeaderValue};

/// Header that names ignored parts, separated by commas.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-pudu-ignored");
/// Maximum number of names in the header.
const MAX_NAMES: usize = 32;
/// Maximum length of one name, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Names of the parts of a request that have no effect.
#[derive(Debug, Default)]
pub(crate) struct Ignored(Vec<String>);

impl Ignored {
    /// Collects stream modes without frames and other ignored options of a run.
    pub(crate) fn of_run(modes: Vec<String>, options: Vec<String>) -> Self {
        Self(modes.into_iter().map(|mode| format!("stream_mode.{mode}")).chain(options).collect())
    }

    /// Returns the header; `None` if nothing was ignored.
    pub(crate) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let names: Vec<String> = self.0.iter().take(MAX_NAMES).map(|name| visible(name)).collect();
        let value = HeaderValue::from_str(&names.join(", ")).ok()?;
        (!names.is_empty()).then_some((HEADER, value))
    }
}

/// Replaces the characters of a name that are invalid in a header or that separate names.
fn visible(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_graphic() && c != ',' { c } else { '?' };
    name.chars().take(MAX_NAME_CHARS).map(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_a_header_whatever_they_contain() {
        let header = |names: &[&str]| {
            let ignored = Ignored(names.iter().map(|name| (*name).to_owned()).collect());
            ignored.header().map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        assert_eq!(header(&[]), None);
        assert_eq!(header(&["stream_mode.tools", "config.tags"]).unwrap(), "stream_mode.tools, config.tags");
        assert_eq!(header(&["a,b\r\nx: y", "标"]).unwrap(), "a?b??x:?y, ?");
        assert_eq!(header(&["x"; 100]).unwrap().split(", ").count(), MAX_NAMES);
        assert_eq!(header(&[&"x".repeat(100)]).unwrap().len(), MAX_NAME_CHARS);
    }
}
