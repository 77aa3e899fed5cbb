//! Usage reports of several wires.

use pudu_base::Usage;

/// A report. Whether its numbers overlap depends on the provider.
pub(crate) struct UsageReport {
    /// The numbers as reported.
    pub(crate) reported: Usage,
    /// Audio tokens of the prompt.
    pub(crate) audio: u64,
    /// The provider's total.
    pub(crate) total: Option<u64>,
}

/// Returns a usage whose input includes audio and cached tokens, and whose output includes thoughts. Some providers
/// count these separately, as the total reveals: xAI counts thoughts separately, Mistral audio, and some gateways
/// cached tokens.
pub(crate) fn to_usage(report: &UsageReport) -> Usage {
    let UsageReport { reported, audio, total } = *report;
    let Usage { input, output, cached, cache_writes, reasoning } = reported;
    let from_cache = cached.saturating_add(cache_writes);
    let beside = total.and_then(|total| total.checked_sub(reported.total())).unwrap_or(0);
    let sums = [
        (0, 0),
        (0, reasoning),
        (audio, 0),
        (from_cache, 0),
        (audio, reasoning),
        (from_cache, reasoning),
        (audio.saturating_add(from_cache), 0),
    ];
    let fitting = sums.into_iter().find(|(input, output)| input.saturating_add(*output) == beside);
    let (more_input, more_output) = fitting.unwrap_or((0, 0));
    let input = input.saturating_add(more_input);
    // A prompt is never smaller than its cached part.
    let input = if from_cache > input { input.saturating_add(from_cache) } else { input };
    Usage { input, output: output.saturating_add(more_output), ..reported }
}
