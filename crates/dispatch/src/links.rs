//! Links to files that are too large for a chat: signed, and valid for a day.
//!
//! A link names a thread and one of its output files; nothing is stored. Everyone with the link can open the file, as
//! with any file in a chat. Links cannot be made without the key, which is in the home folder.

use anyhow::{Context, Result};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use pudu_base::ThreadId;
use pudu_kit::clock;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::{io::Write, os::unix::fs::OpenOptionsExt, path::Path, time::Duration};
use url::Url;

/// Prefix of a path that names a file kept by `sent.rs`.
const SENT_PREFIX: &str = "sent:";

/// Lifetime of a link.
pub const GOOD_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Name of the key's file in the home folder.
const FILE: &str = "link-key";
/// Length of the key, in bytes: SHA-256's block size, so that HMAC uses the key unchanged.
const KEY: usize = 64;

/// Creates and verifies links.
pub struct Links {
    key: [u8; KEY],
    base: Option<Url>,
}

/// Content of a link.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenedLink {
    /// The thread.
    #[serde(rename = "t")]
    pub thread: ThreadId,
    /// The file, as the agent names it.
    #[serde(rename = "p")]
    pub path: String,
    /// When the link expires, in milliseconds since 1970.
    #[serde(rename = "e")]
    until: i64,
}

impl OpenedLink {
    /// Returns the name of the kept file that the link opens; `None` if it opens a file of the thread.
    pub fn kept(&self) -> Option<&str> {
        self.path.strip_prefix(SENT_PREFIX)
    }
}

impl Links {
    /// Reads the key of a home folder, or creates it. Without a public URL, no links are made.
    pub fn open(home: &Path, base: Option<Url>) -> Result<Self> {
        let path = home.join(FILE);
        let key = match std::fs::read(&path).ok().and_then(|bytes| bytes.try_into().ok()) {
            Some(key) => key,
            None => fresh(&path).with_context(|| format!("cannot write {}", path.display()))?,
        };
        Ok(Self { key, base })
    }

    /// Creates a link to a file of a thread; `None` without a public URL.
    pub fn to(&self, thread: &ThreadId, path: &str, now: i64) -> Option<Url> {
        let until = now + clock::millis(GOOD_FOR);
        let opened = OpenedLink { thread: thread.clone(), path: path.to_owned(), until };
        let text = serde_json::to_vec(&opened).ok()?;
        let mac = self.mac(&text).finalize().into_bytes();
        let token = format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(mac));
        let mut url = self.base.clone()?;
        url.path_segments_mut().ok()?.pop_if_empty().extend(["files", &token]);
        Some(url)
    }

    /// Creates a link to a kept file; `None` without a public URL.
    pub fn to_kept(&self, thread: &ThreadId, path: &Path, now: i64) -> Option<Url> {
        self.to(thread, &format!("{SENT_PREFIX}{}", path.file_name()?.to_str()?), now)
    }

    /// Verifies and reads a link; `None` if it is forged or has expired.
    pub fn read(&self, token: &str, now: i64) -> Option<OpenedLink> {
        let (text, mac) = token.split_once('.')?;
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        // Compares in constant time.
        self.mac(&text).verify_slice(&mac).ok()?;
        let opened: OpenedLink = serde_json::from_slice(&text).ok()?;
        (now < opened.until).then_some(opened)
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        // HMAC accepts a key of any length, so this cannot fail.
        let mut mac = Hmac::<Sha256>::new(&self.key.into());
        mac.update(text);
        mac
    }
}

fn fresh(path: &Path) -> Result<[u8; KEY]> {
    let mut key = [0; KEY];
    getrandom::fill(&mut key)
        .map_err(|error| anyhow::anyhow!("the system's random number generator failed: {error}"))?;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;
    const DAY: i64 = 24 * 60 * 60 * 1000;

    fn token(links: &Links) -> String {
        let url = links.to(&"thread".into(), "/mnt/user-data/outputs/a b.zip", NOW).unwrap();
        let (base, token) = url.as_str().rsplit_once('/').unwrap();
        assert_eq!(base, "https://x.org/pudu/files");
        token.to_owned()
    }

    #[test]
    fn a_link_opens_its_file_for_a_day_and_after_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let open = || Links::open(home.path(), Some("https://x.org/pudu/".parse().unwrap())).unwrap();
        let token = token(&open());
        let opened = open().read(&token, NOW + DAY - 1).unwrap();
        assert_eq!(
            (opened.thread.as_str(), opened.path.as_str()),
            ("thread", "/mnt/user-data/outputs/a b.zip")
        );
        assert_eq!(open().read(&token, NOW + DAY), None);
    }

    #[test]
    fn forged_links_are_refused() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let base = || Some("https://x.org/pudu".parse().unwrap());
        let links = Links::open(home.path(), base()).unwrap();
        let token = token(&links);
        assert_eq!(Links::open(other.path(), base()).unwrap().read(&token, NOW), None);
        let forged =
            URL_SAFE_NO_PAD.encode(r#"{"t":"thread","p":"/mnt/user-data/outputs/b","e":9999999999999}"#);
        let (text, mac) = token.split_once('.').unwrap();
        for wrong in
            [format!("{forged}.{mac}"), format!("{text}."), text.to_owned(), ".".into(), "é.é".into()]
        {
            assert_eq!(links.read(&wrong, NOW), None, "{wrong}");
        }
    }

    #[test]
    fn without_a_public_url_there_are_no_links() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Links::open(home.path(), None).unwrap().to(&"t".into(), "/x", NOW), None);
    }
}
