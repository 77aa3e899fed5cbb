//! Passwords of login accounts: requirements, hashing and verification.
//!
//! New hashes use argon2id. DeerFlow's hashes (`$dfv2$`, `$dfv1$` and plain bcrypt) are accepted and replaced at the
//! next sign-in. Hashing takes a fraction of a second of CPU time and 19 MiB, so it runs on separate threads with a
//! limit.

use anyhow::{Context, Result, anyhow};
use argon2::{
    Argon2,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::{OnceCell, Semaphore};

/// Maximum number of passwords hashed at once.
const MAX_CONCURRENT_HASHES: usize = 2;
/// Minimum length, in characters.
const MIN_CHARS: usize = 8;
/// Maximum length, in bytes.
const MAX_BYTES: usize = 1024;
/// Maximum cost of a bcrypt hash; verifying a more expensive one takes too long.
const MAX_BCRYPT_COST: u32 = 15;
const V2: &str = "$dfv2$";
const V1: &str = "$dfv1$";

/// Common passwords in lower case; shorter ones are refused anyway.
const COMMON: &[&str] = &[
    "00000000",
    "11111111",
    "12341234",
    "123123123",
    "12345678",
    "123456789",
    "1234567890",
    "123qweasd",
    "1q2w3e4r",
    "1q2w3e4r5t",
    "1qaz2wsx",
    "87654321",
    "88888888",
    "987654321",
    "aa123456",
    "abc12345",
    "abc123456",
    "abcd1234",
    "admin123",
    "admin1234",
    "administrator",
    "asdf1234",
    "asdfasdf",
    "asdfghjkl",
    "baseball",
    "basketball",
    "batman123",
    "changeme",
    "changeme1",
    "charlie1",
    "chocolate",
    "computer",
    "corvette",
    "danielle",
    "deerflow",
    "dragon123",
    "football",
    "football1",
    "hello123",
    "iloveyou",
    "iloveyou1",
    "internet",
    "jennifer",
    "jonathan",
    "letmein1",
    "letmein123",
    "liverpool",
    "lovely12",
    "master123",
    "maverick",
    "mercedes",
    "michael1",
    "michelle",
    "midnight",
    "monkey12",
    "monkey123",
    "mustang1",
    "p@ssw0rd",
    "p@ssword",
    "pa55word",
    "passw0rd",
    "passw0rd1",
    "password",
    "password!",
    "password1",
    "password12",
    "password123",
    "password1234",
    "princess",
    "princess1",
    "q1w2e3r4",
    "qazwsxedc",
    "qwer1234",
    "qwerty12",
    "qwerty123",
    "qwertyui",
    "qwertyuiop",
    "rush2112",
    "samantha",
    "scorpion",
    "secret12",
    "secret123",
    "shadow12",
    "snoopy12",
    "starwars",
    "sunshine",
    "sunshine1",
    "superman",
    "superman1",
    "superuser",
    "test1234",
    "testtest",
    "trustno1",
    "victoria",
    "welcome1",
    "welcome123",
    "whatever",
    "xxxxxxxx",
    "zaq12wsx",
    "zxcvbnm1",
    "zxcvbnm123",
];

/// Hashes and verifies passwords.
#[derive(Clone)]
pub struct Passwords {
    permits: Arc<Semaphore>,
    /// Hash of a random password, so that checking an unknown user takes as long as checking a known one.
    dummy_hash: Arc<OnceCell<String>>,
}

/// Result of a password check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordCheck {
    /// The password is wrong, or there is none.
    Wrong,
    /// The password is right.
    Right,
    /// The password is right, but its hash has an old format.
    Outdated,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)), dummy_hash: Arc::default() }
    }
}

impl Passwords {
    /// Hashes a password.
    pub async fn hash(&self, password: &SecretString) -> Result<String> {
        let password = password.clone();
        self.work(move || hash(password.expose_secret())).await?
    }

    /// Checks a password against a hash. Without a hash, the check takes just as long and fails.
    pub async fn check(&self, password: &SecretString, hash: Option<&str>) -> Result<PasswordCheck> {
        let dummy_hash = self.dummy_hash.get_or_try_init(|| async {
            let mut bytes = [0u8; 32];
            getrandom::fill(&mut bytes)
                .map_err(|error| anyhow!("the system's random number generator failed: {error}"))?;
            self.hash(&STANDARD.encode(bytes).into()).await
        });
        let (known, hash) = match hash {
            Some(hash) => (true, hash.to_owned()),
            None => (false, dummy_hash.await?.clone()),
        };
        let password = password.clone();
        let found = self.work(move || check(password.expose_secret(), &hash)).await?;
        Ok(if known { found } else { PasswordCheck::Wrong })
    }

    async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let permit = self.permits.clone().acquire_owned().await?;
        let work = move || {
            let done = work();
            drop(permit);
            done
        };
        tokio::task::spawn_blocking(work).await.context("a password could not be hashed")
    }
}

/// Returns the reason why a new password is refused.
pub fn objection(password: &SecretString) -> Option<&'static str> {
    let password = password.expose_secret();
    if password.chars().count() < MIN_CHARS {
        return Some("Password must have at least 8 characters.");
    }
    if password.len() > MAX_BYTES {
        return Some("Password must have at most 1024 bytes.");
    }
    let lower = password.to_lowercase();
    let mut chars = lower.chars();
    let first = chars.next();
    let is_one_char = chars.all(|c| Some(c) == first);
    (is_one_char || COMMON.contains(&lower.as_str()))
        .then_some("Password is too common; choose a stronger password.")
}

fn hash(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    Ok(hash.map_err(|error| anyhow!("a password could not be hashed: {error}"))?.to_string())
}

fn check(password: &str, hash: &str) -> PasswordCheck {
    if hash.starts_with("$argon2") {
        let right = PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok());
        return if right { PasswordCheck::Right } else { PasswordCheck::Wrong };
    }
    let right = match hash.strip_prefix(V2) {
        Some(hash) => is_of_bcrypt(STANDARD.encode(Sha256::digest(password)).as_bytes(), hash),
        None => is_of_bcrypt(password.as_bytes(), hash.strip_prefix(V1).unwrap_or(hash)),
    };
    if right { PasswordCheck::Outdated } else { PasswordCheck::Wrong }
}

fn is_of_bcrypt(password: &[u8], hash: &str) -> bool {
    let cost = hash.split('$').nth(2).and_then(|cost| cost.parse::<u32>().ok());
    cost.is_some_and(|cost| cost <= MAX_BCRYPT_COST) && bcrypt::verify(password, hash).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn passwords_are_verified_against_every_kind_of_hash() {
        let passwords = Passwords::default();
        let (right, wrong) = (SecretString::from("correct horse"), SecretString::from("Correct horse"));
        let own = passwords.hash(&right).await.unwrap();
        assert!(own.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{own}");
        assert_ne!(passwords.hash(&right).await.unwrap(), own, "each hash has its own salt");
        let check = async |password, hash: &str| passwords.check(password, Some(hash)).await.unwrap();
        assert_eq!(check(&right, &own).await, PasswordCheck::Right);
        assert_eq!(check(&wrong, &own).await, PasswordCheck::Wrong);
        let bare = bcrypt::hash("correct horse", 4).unwrap();
        let hashed = bcrypt::hash(STANDARD.encode(Sha256::digest("correct horse")), 4).unwrap();
        let old = [bare.clone(), format!("{V1}{bare}"), format!("{V2}{hashed}")];
        for hash in &old {
            assert_eq!(check(&right, hash).await, PasswordCheck::Outdated, "{hash}");
            assert_eq!(check(&wrong, hash).await, PasswordCheck::Wrong, "{hash}");
        }
        // A hash computed by another program.
        let known = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
        let vector = SecretString::from("U*U");
        assert_eq!(check(&vector, known).await, PasswordCheck::Outdated);
        for hash in
            ["", "x", "$argon2id$", "$2b$31$abcdefghijklmnopqrstuuJx7wC1Qh0Xy0m1wq3n4o5p6q7r8s9tu", V2]
        {
            assert_eq!(check(&right, hash).await, PasswordCheck::Wrong, "{hash}");
        }
        assert_eq!(passwords.check(&right, None).await.unwrap(), PasswordCheck::Wrong);
    }

    #[test]
    fn short_and_common_passwords_are_refused() {
        for (password, good) in [
            ("correct horse", true),
            ("1234567", false),
            ("Password123", false),
            ("zzzzzzzzzzzz", false),
            ("李李李李李李李虎", true),
        ] {
            assert_eq!(objection(&password.into()).is_none(), good, "{password}");
        }
        assert!(objection(&"ab".repeat(600).into()).is_some());
    }
}
