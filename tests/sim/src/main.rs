//! Runs the simulated platforms and the scripted model on given ports, for playing by hand and for the
//! official clients. People are played over HTTP, at `/sim/`.

use clap::Parser;
use pudu_sim::{
    Discord, Model, Platform, Telegram, discord,
    model::{Reply, RetryAfter},
    telegram::Options,
};
use serde_json::json;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// Simulated platforms and a scripted model.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The port of the Telegram Bot API; 0 takes a free one
    #[arg(long, default_value_t = 8081)]
    telegram_port: u16,
    /// The port of the model's API; 0 takes a free one
    #[arg(long, default_value_t = 8082)]
    model_port: u16,
    /// The port of a simulated Discord; 0 takes a free one. Not started unless asked for
    #[arg(long)]
    discord_port: Option<u16>,
    /// The bot's token
    #[arg(long)]
    token: Option<String>,
    /// Answer with so many words instead of an echo
    #[arg(long)]
    words: Option<u32>,
    /// Over how long the words come, in milliseconds
    #[arg(long, default_value_t = 800)]
    words_ms: u64,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let args = Args::parse();
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut options = Options::default();
    options.token = args.token.unwrap_or(options.token);
    let telegram = Telegram::bind(local(args.telegram_port), options).await?;
    let model = Model::bind(local(args.model_port)).await?;
    script(&model, args.words.map(|words| Reply::words(words, Duration::from_millis(args.words_ms))));
    println!("telegram {}", telegram.url());
    println!("token {}", telegram.token());
    println!("model {}", model.url());
    let discord = start_discord(args.discord_port).await?;
    let ended = tokio::signal::ctrl_c().await;
    drop(discord);
    ended
}

async fn start_discord(port: Option<u16>) -> io::Result<Option<Discord>> {
    let Some(port) = port else { return Ok(None) };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let discord = Discord::bind(address, discord::Options::default()).await?;
    println!("discord {}", discord.url());
    for line in discord.settings().lines() {
        println!("discord.{line}");
    }
    Ok(Some(discord))
}

/// What can be asked for in words: `tool NAME {json}`, `status CODE`, `busy once`. The rest is an echo.
fn script(model: &Model, words: Option<Reply>) {
    let busy = std::sync::atomic::AtomicBool::new(true);
    model.otherwise(move |ask| {
        let said = ask.last_user();
        let mut parts = said.splitn(3, ' ');
        match (parts.next(), parts.next(), parts.next()) {
            (Some("tool"), Some(name), arguments) if ask.last_role() == "user" => {
                let arguments = arguments.and_then(|text| serde_json::from_str(text).ok());
                Reply::tool(name, &arguments.unwrap_or_else(|| json!({}))).into()
            }
            (Some("status"), Some(code), None) => Reply::status(code.parse().unwrap_or(500)).into(),
            (Some("busy"), Some("once"), None) if busy.swap(false, std::sync::atomic::Ordering::Relaxed) => {
                Reply::status(429).retry_after(RetryAfter::Millis(50)).into()
            }
            _ if ask.last_role() == "tool" => {
                Reply::text(&format!("the tool said: {}", ask.last_tool())).into()
            }
            _ => words.clone().unwrap_or_else(|| Reply::text(&format!("echo: {said}")).into()),
        }
    });
}
