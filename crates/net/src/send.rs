//! Sends requests to the network, or to the thread's simulated network, which answers in memory.

use reqwest::{Request, RequestBuilder, Response};
use std::{cell::Cell, pin::Pin};

/// Answer of a simulated network.
pub type SimulatedAnswer = Pin<Box<dyn Future<Output = Result<Response, reqwest::Error>> + Send>>;

/// A simulated network: a function that answers requests.
type SimulatedNetwork = fn(Request) -> SimulatedAnswer;

thread_local! {
    static SIMULATED: Cell<Option<SimulatedNetwork>> = const { Cell::new(None) };
}

/// Makes a function answer all requests of this thread until the thread ends. The function has to apply the requests'
/// timeouts.
pub fn simulate(answer: SimulatedNetwork) {
    SIMULATED.set(Some(answer));
}

/// Sends a request and returns the answer once its headers have arrived.
///
/// # Errors
/// When the request is invalid, or is not answered.
pub async fn send(request: RequestBuilder) -> Result<Response, reqwest::Error> {
    let (client, request) = request.build_split();
    match SIMULATED.get() {
        None => client.execute(request?).await,
        Some(answer) => answer(request?).await,
    }
}
