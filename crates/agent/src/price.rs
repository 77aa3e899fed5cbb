//! Prices of models, and costs of calls.

use pudu_base::Usage;
use pudu_store::Cost;

/// The price of a model, per million tokens of each kind.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPrice {
    /// The currency's code, such as `USD`.
    pub currency: String,
    /// Tokens of the prompt.
    pub input: f64,
    /// Tokens of the reply, including its thoughts.
    pub output: f64,
    /// Tokens of the prompt from the provider's cache; the price of `input` if `None`.
    pub cached: Option<f64>,
    /// Tokens of the prompt written to the cache; the price of `input` if `None`.
    pub cache_writes: Option<f64>,
}

impl ModelPrice {
    /// Returns the cost of a call.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> Cost {
        Cost { currency: self.currency.clone(), micros: self.micros(usage) }
    }

    /// Returns the cost of a call in millionths of the currency.
    pub(crate) fn micros(&self, usage: Usage) -> i64 {
        let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_writes);
        let parts = [
            (fresh, self.input),
            (usage.cached, self.cached.unwrap_or(self.input)),
            (usage.cache_writes, self.cache_writes.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        #[allow(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
        // A price per million tokens equals the price of one token in millionths.
        let micros: f64 = parts.into_iter().map(|(tokens, price)| tokens as f64 * price).sum();
        #[allow(clippy::cast_possible_truncation, reason = "the value is rounded and saturates")]
        let rounded = micros.round() as i64;
        rounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let usage = Usage { input: 1_000, output: 100, cached: 600, cache_writes: 100, reasoning: 50 };
        let price = ModelPrice {
            currency: "USD".into(),
            input: 3.0,
            output: 15.0,
            cached: Some(0.3),
            cache_writes: Some(3.75),
        };
        let cost = |price: &ModelPrice| price.cost(usage).micros;
        assert_eq!(cost(&price), 900 + 180 + 375 + 1_500);
        assert_eq!(cost(&ModelPrice { cached: None, cache_writes: None, ..price }), 3_000 + 1_500);
    }
}
