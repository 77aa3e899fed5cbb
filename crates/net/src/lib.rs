//! One HTTP client, the SSE decoder, and the words for retrying.
