//! pudu: a super-agent that lives in a team's chats.

mod cli;

/// Gives back what a flood of messages took, and costs less of a turn's time than the C library's: docs/decisions.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    // Sandboxes and the wardens of MCP servers are this program, started anew. Nothing may come before.
    pudu_client::sandbox::enter();
    pudu_client::mcp::enter();
    pudu_client::net::install_crypto();
    cli::main()
}
