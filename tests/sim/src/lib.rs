//! Simulated platforms and the scripted model.
