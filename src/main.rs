//! pudu: a super-agent that lives in a team's chats.

mod cli;

/// Returns memory to the system after bursts of messages, and is faster than the C library's: see docs/decisions.md.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    // Sandboxes and supervisors of MCP servers are this program, started again. Their code must run first.
    pudu_sandbox::enter();
    pudu_mcp::enter();
    pudu_net::install_crypto();
    cli::main()
}
