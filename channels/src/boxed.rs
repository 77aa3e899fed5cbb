//! Boxed futures of the dynamic ports.

/// A boxed future, written by hand so that the cost of a dynamic port is visible.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
