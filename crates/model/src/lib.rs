//! Models: the OpenAI-compatible wire and the offline model.
