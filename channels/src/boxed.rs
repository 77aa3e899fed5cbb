//! Boxed futures for object-safe traits.

/// A boxed future. Spelled out in signatures, so that the cost of dynamic dispatch is visible.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
