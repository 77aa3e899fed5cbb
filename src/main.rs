//! pudu: a super-agent that lives in a team's chats.

mod cli;
mod logging;

/// Returns memory to the system after a burst of messages, and is faster than the C library's: see docs/decisions.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    // Sandboxes and the supervisors of MCP servers are this program, restarted. This must run first.
    pudu_client::sandbox::enter();
    pudu_client::mcp::enter();
    pudu_client::net::install_crypto();
    cli::main()
}
