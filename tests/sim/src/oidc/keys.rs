//! Keys of the simulated provider, and the tokens signed with them: RS256, ES256, and invalid signatures.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use hmac::{Hmac, KeyInit, Mac};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
        RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};
use sha2::Sha256;
use std::io;

/// A key for tests only: PKCS #1, in base64.
const RSA_TEST_KEY: &str = include_str!("rsa_test_key.txt");

/// How tokens are signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenSigning {
    /// With the newest key.
    #[default]
    Newest,
    /// With a foreign key, under the newest key's ID.
    Forged,
    /// Unsigned: `alg` is `none`.
    Unsigned,
    /// With HMAC, whose secret is the newest public key.
    HmacOfPublicKey,
}

enum PrivateKey {
    Rsa(Box<RsaKeyPair>),
    Ec(Box<EcdsaKeyPair>),
}

/// A key with its name.
pub(super) struct SigningKey {
    id: String,
    key: PrivateKey,
}

fn broken(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("the key cannot be made: {error}"))
}

impl SigningKey {
    /// Returns the RSA key.
    pub(super) fn rsa(id: &str) -> io::Result<Self> {
        let bytes = STANDARD.decode(RSA_TEST_KEY.trim()).map_err(|error| broken(&error))?;
        let key = RsaKeyPair::from_der(&bytes).map_err(|error| broken(&error))?;
        Ok(Self { id: id.to_owned(), key: PrivateKey::Rsa(Box::new(key)) })
    }

    /// Creates a P-256 key.
    pub(super) fn fresh(id: &str) -> io::Result<Self> {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let bytes = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|error| broken(&error))?;
        let key =
            EcdsaKeyPair::from_pkcs8(algorithm, bytes.as_ref(), &random).map_err(|error| broken(&error))?;
        Ok(Self { id: id.to_owned(), key: PrivateKey::Ec(Box::new(key)) })
    }

    /// Returns the public part as a JSON Web Key.
    pub(super) fn public(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match &self.key {
            PrivateKey::Rsa(key) => {
                let public: RsaPublicKeyComponents<Vec<u8>> = key.public().into();
                json!({
                    "kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.id, "n": text(&public.n),
                    "e": text(&public.e),
                })
            }
            PrivateKey::Ec(key) => {
                let (x, y) = key.public_key().as_ref().get(1..).unwrap_or_default().split_at(32);
                json!({
                    "kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": self.id, "x": text(x),
                    "y": text(y),
                })
            }
        }
    }

    /// Signs a token.
    pub(super) fn token(&self, claims: &Value, signing: TokenSigning) -> io::Result<String> {
        let algorithm = match (signing, &self.key) {
            (TokenSigning::Unsigned, _) => "none",
            (TokenSigning::HmacOfPublicKey, _) => "HS256",
            (_, PrivateKey::Rsa(_)) => "RS256",
            (_, PrivateKey::Ec(_)) => "ES256",
        };
        let header = json!({ "alg": algorithm, "typ": "JWT", "kid": self.id });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = match signing {
            TokenSigning::Unsigned => Vec::new(),
            TokenSigning::HmacOfPublicKey => {
                let secret = self.public().to_string();
                let mac =
                    Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| broken(&error))?;
                mac.chain_update(signed.as_bytes()).finalize().into_bytes().to_vec()
            }
            TokenSigning::Forged => match &self.key {
                PrivateKey::Ec(_) => Self::fresh(&self.id)?.signature(signed.as_bytes())?,
                PrivateKey::Rsa(_) => {
                    let mut signature = self.signature(signed.as_bytes())?;
                    signature.reverse();
                    signature
                }
            },
            TokenSigning::Newest => self.signature(signed.as_bytes())?,
        };
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn signature(&self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.key {
            PrivateKey::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature)
                    .map_err(|error| broken(&error))?;
                Ok(signature)
            }
            PrivateKey::Ec(key) => {
                Ok(key.sign(&random, bytes).map_err(|error| broken(&error))?.as_ref().to_vec())
            }
        }
    }
}
