//! TLS as everything here speaks it: one configuration, so that the system's hundreds of root certificates are
//! read once a process and not by every client and every new WebSocket.

use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt;
use std::sync::OnceLock;

/// Makes ring the process's TLS provider. Two providers in one tree make a `wss` connection panic, so
/// this comes first in `main` and in tests; calling it again does nothing.
pub fn install_crypto() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // An error means that a provider is already there, which is what was wanted.
        rustls::crypto::ring::default_provider().install_default().ok();
    });
}

/// Returns the configuration, without application protocols. The first call reads the system's root certificates,
/// which takes some ten milliseconds. `None` if they cannot be loaded: who goes on without it finds out why.
#[must_use]
pub fn tls() -> Option<ClientConfig> {
    static TLS: OnceLock<Option<ClientConfig>> = OnceLock::new();
    install_crypto();
    TLS.get_or_init(|| ClientConfig::with_platform_verifier().ok()).clone()
}

/// Begins an HTTP client that speaks TLS so.
pub fn builder() -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder();
    match tls() {
        Some(mut tls) => {
            tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            builder.tls_backend_preconfigured(tls)
        }
        None => builder,
    }
}
