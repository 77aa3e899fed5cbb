//! The shared TLS configuration: the system's hundreds of root certificates are read once per process instead of by
//! every client and WebSocket.

use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt;
use std::sync::OnceLock;

/// Makes ring the process's TLS provider. Two providers in one build make a `wss` connection panic, so this runs first
/// in `main` and in tests; calling it again does nothing.
pub fn install_crypto() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // An error means that a provider is already installed.
        rustls::crypto::ring::default_provider().install_default().ok();
    });
}

/// Returns the configuration, without application protocols. The first call reads the system's root certificates, which
/// takes about ten milliseconds. `None` if they cannot be loaded: the caller's own attempt then reports the reason.
#[must_use]
pub fn tls() -> Option<ClientConfig> {
    static TLS: OnceLock<Option<ClientConfig>> = OnceLock::new();
    install_crypto();
    TLS.get_or_init(|| ClientConfig::with_platform_verifier().ok()).clone()
}

/// Returns a builder of an HTTP client with this TLS configuration.
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
