//! Rules that no official client tries.
