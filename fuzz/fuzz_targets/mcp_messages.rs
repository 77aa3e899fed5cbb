//! Any bytes as the output of an MCP server: each request gets one answer at most, and tools have names and schemas that
//! providers take.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pudu_mcp::fuzzing::messages(data));
