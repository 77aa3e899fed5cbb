//! Tools of Model Context Protocol servers.
