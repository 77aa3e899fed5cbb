//! Libraries of the page: minified files of npm packages, compressed below `vendor/files/`.
//!
//! `vendor/refresh.py` fetches them and writes their versions, licences and digests to `vendor/manifest.json`.

use include_dir::{Dir, include_dir};

/// Packages, files and digests, as JSON.
pub(crate) const MANIFEST: &str = include_str!("vendor/manifest.json");

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/console/vendor/files");

/// A file of a library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VendorFile {
    /// The embedded bytes.
    pub bytes: &'static [u8],
    /// Whether the bytes are compressed with gzip.
    pub is_gzip: bool,
}

/// Returns a file by its path, such as `katex/katex.min.js`.
pub(crate) fn find(path: &str) -> Option<VendorFile> {
    let file = |path: &str| FILES.get_file(path).map(include_dir::File::contents);
    let plain = || Some(VendorFile { bytes: file(path)?, is_gzip: false });
    file(&format!("{path}.gz")).map(|bytes| VendorFile { bytes, is_gzip: true }).or_else(plain)
}

impl VendorFile {
    /// Returns the bytes as they are in the package.
    pub(crate) fn unpacked(self) -> std::io::Result<Vec<u8>> {
        let mut unpacked = Vec::new();
        if self.is_gzip {
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(self.bytes), &mut unpacked)?;
        } else {
            unpacked.extend_from_slice(self.bytes);
        }
        Ok(unpacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use sha2::{Digest, Sha256};
    use std::{collections::BTreeSet, fs, path::Path};

    /// Licences that the packages may have.
    const LICENSES: [&str; 2] = ["BSD-3-Clause", "MIT"];

    fn packages() -> Vec<Value> {
        serde_json::from_str::<Value>(MANIFEST).unwrap()["packages"].as_array().unwrap().clone()
    }

    fn text<'a>(value: &'a Value, key: &str) -> &'a str {
        value[key].as_str().unwrap()
    }

    /// Collects the paths of all files below a folder, relative to it and without `.gz`.
    fn below(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                below(&entry.path(), &format!("{name}/"), found);
            } else {
                found.insert(name.trim_end_matches(".gz").to_owned());
            }
        }
    }

    #[test]
    fn every_file_has_the_digest_of_the_manifest() {
        for package in packages() {
            for file in package["files"].as_array().unwrap() {
                let path = format!("{}/{}", text(&package, "folder"), text(file, "name"));
                let unpacked = find(&path).unwrap_or_else(|| panic!("{path} is missing")).unpacked().unwrap();
                let digest = Sha256::digest(&unpacked);
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(digest, text(file, "sha256"), "{path}");
            }
        }
    }

    #[test]
    fn the_manifest_is_complete() {
        let (mut existing, mut listed) = (BTreeSet::new(), BTreeSet::new());
        below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/vendor/files"), "", &mut existing);
        for package in packages() {
            let name = text(&package, "name");
            assert!(LICENSES.contains(&text(&package, "license")), "{name}");
            assert!(text(&package, "integrity").starts_with("sha512-"), "{name}");
            assert!(!text(&package, "version").is_empty(), "{name}");
            let folder = text(&package, "folder");
            let files = package["files"].as_array().unwrap();
            listed.extend(files.iter().map(|file| format!("{folder}/{}", text(file, "name"))));
            assert!(listed.contains(&format!("{folder}/LICENSE")), "{name}");
        }
        assert_eq!(existing, listed);
    }

    #[test]
    fn missing_files_are_not_found() {
        for path in ["", "katex", "katex/none.js", "../manifest.json", "katex/../mermaid/LICENSE"] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
