//! Runs the simulated platforms and the scripted model on given ports, for manual use and for the official clients.
//! Users are controlled over HTTP, at `/sim/`.

use clap::Parser;
use pudu_sim::{
    Aio, DingTalk, Discord, Docker, Feishu, Kubernetes, Model, Oidc, Slack, Telegram, dingtalk, discord,
    docker, feishu,
    model::{Answer, Cause, Reply, RetryAfter, Trouble},
    slack,
    telegram::Options,
};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Simulated platforms and a scripted model.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Port of the Telegram Bot API; 0 for a free one
    #[arg(long, default_value_t = 8081)]
    telegram_port: u16,
    /// Port of the model's API; 0 for a free one
    #[arg(long, default_value_t = 8082)]
    model_port: u16,
    /// Port of DingTalk; not started by default; 0 for a free one
    #[arg(long)]
    dingtalk_port: Option<u16>,
    /// Port of Feishu's open platform; not started by default; 0 for a free one
    #[arg(long)]
    feishu_port: Option<u16>,
    /// Port of Slack; not started by default; 0 for a free one
    #[arg(long)]
    slack_port: Option<u16>,
    /// Port of Discord; not started by default; 0 for a free one
    #[arg(long)]
    discord_port: Option<u16>,
    /// Port of a Kubernetes API server; not started by default; 0 for a free one
    #[arg(long)]
    kubernetes_port: Option<u16>,
    /// Port of a Docker engine; not started by default; 0 for a free one
    #[arg(long)]
    docker_port: Option<u16>,
    /// Port of an OpenID Connect provider; not started by default; 0 for a free one
    #[arg(long)]
    oidc_port: Option<u16>,
    /// Port of the all-in-one sandbox's API, whose commands run on this machine; not started by default
    #[arg(long)]
    aio_port: Option<u16>,
    /// Working directory of its commands
    #[arg(long, default_value = ".")]
    aio_folder: std::path::PathBuf,
    /// Token of the bot
    #[arg(long)]
    token: Option<String>,
    /// Answer with this number of words instead of an echo
    #[arg(long)]
    words: Option<u32>,
    /// Duration of the words, in milliseconds
    #[arg(long, default_value_t = 800)]
    words_ms: u64,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let args = Args::parse();
    let mut options = Options::default();
    options.token = args.token.unwrap_or(options.token);
    let telegram = Telegram::bind(local(args.telegram_port), options).await?;
    let model = Model::bind(local(args.model_port)).await?;
    script(&model, args.words.map(|words| Reply::words(words, Duration::from_millis(args.words_ms))));
    println!("telegram {}", telegram.url());
    println!("token {}", telegram.token());
    let _running = (
        start_feishu(args.feishu_port).await?,
        start_dingtalk(args.dingtalk_port).await?,
        start_slack(args.slack_port).await?,
        start_discord(args.discord_port).await?,
        start_kubernetes(args.kubernetes_port).await?,
        start_docker(args.docker_port).await?,
        start_aio(args.aio_port, args.aio_folder).await?,
        start_oidc(args.oidc_port).await?,
    );
    println!("model-root {}", model.root());
    println!("model {}", model.url());
    tokio::signal::ctrl_c().await
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Starts Feishu if it has a port, and prints its configuration.
async fn start_feishu(port: Option<u16>) -> io::Result<Option<Feishu>> {
    let Some(port) = port else { return Ok(None) };
    let feishu = Feishu::bind(local(port), feishu::Options::default()).await?;
    println!("feishu {}", feishu.url());
    println!("feishu-app-id {}", feishu.app_id());
    println!("feishu-app-secret {}", feishu.app_secret());
    Ok(Some(feishu))
}

/// Starts a provider on its port and prints its configuration.
async fn start_oidc(port: Option<u16>) -> io::Result<Option<Oidc>> {
    let Some(port) = port else { return Ok(None) };
    let provider = Oidc::bind(local(port)).await?;
    println!("oidc {}", provider.issuer());
    println!("oidc-client {}", pudu_sim::oidc::CLIENT_ID);
    println!("oidc-secret {}", pudu_sim::oidc::CLIENT_SECRET);
    Ok(Some(provider))
}

async fn start_dingtalk(port: Option<u16>) -> io::Result<Option<DingTalk>> {
    let Some(port) = port else { return Ok(None) };
    let dingtalk = DingTalk::bind(local(port), dingtalk::Options::default()).await?;
    let options = dingtalk.options();
    println!("dingtalk {}", dingtalk.url());
    println!("dingtalk-id {}", options.client_id);
    println!("dingtalk-secret {}", options.client_secret);
    println!("dingtalk-template {}", options.template);
    Ok(Some(dingtalk))
}

/// Starts Slack on its port and prints its configuration.
async fn start_slack(port: Option<u16>) -> io::Result<Option<Slack>> {
    let Some(port) = port else { return Ok(None) };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let slack = Slack::bind(address, slack::Options::default()).await?;
    let options = slack.options();
    println!("slack {}", slack.url());
    println!("slack-bot-token {}", options.bot_token);
    println!("slack-app-token {}", options.app_token);
    Ok(Some(slack))
}

/// Starts Discord on its port and prints its configuration.
async fn start_discord(port: Option<u16>) -> io::Result<Option<Discord>> {
    let Some(port) = port else { return Ok(None) };
    let discord = Discord::bind(local(port), discord::Options::default()).await?;
    println!("discord {}", discord.url());
    println!("discord-bot-token {}", discord.options().token);
    Ok(Some(discord))
}

/// Starts a cluster on its port and prints its configuration.
async fn start_kubernetes(port: Option<u16>) -> io::Result<Option<Kubernetes>> {
    let Some(port) = port else { return Ok(None) };
    let cluster = Kubernetes::bind(local(port)).await?;
    println!("kubernetes {}", cluster.url());
    println!("kubernetes-token {}", pudu_sim::kubernetes::TOKEN);
    Ok(Some(cluster))
}

/// Starts a Docker engine on its port and prints its address.
async fn start_docker(port: Option<u16>) -> io::Result<Option<Docker>> {
    let Some(port) = port else { return Ok(None) };
    let docker = Docker::bind(local(port), docker::Options::default()).await?;
    println!("docker {}", docker.host());
    Ok(Some(docker))
}

/// Starts the all-in-one sandbox's API on its port and prints its address.
async fn start_aio(port: Option<u16>, folder: std::path::PathBuf) -> io::Result<Option<Aio>> {
    let Some(port) = port else { return Ok(None) };
    let aio = Aio::start_on(port, folder.canonicalize()?).await?;
    println!("aio {}", aio.url());
    Ok(Some(aio))
}

/// Supports these commands in messages: `tool NAME {json}`, `status CODE`, `busy once`, `refuse WHY`, `cut`, `fail`,
/// and `think` before any of them. Other messages are echoed.
fn script(model: &Model, words: Option<Reply>) {
    let busy = AtomicBool::new(true);
    model.otherwise(move |ask| {
        let said = ask.last_user();
        if ask.last_role() == "tool" {
            return Reply::text(&format!("the tool said: {}", ask.last_tool())).into();
        }
        match said.strip_prefix("think ") {
            None => reply(&said, &busy, words.as_ref()),
            Some(rest) => match reply(rest, &busy, words.as_ref()) {
                Reply::Answer(answer) => answer.reasoning("let me see").into(),
                other => other,
            },
        }
    });
}

fn reply(said: &str, busy: &AtomicBool, words: Option<&Reply>) -> Reply {
    let mut parts = said.splitn(3, ' ');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("tool"), Some(name), arguments) => {
            Answer::default().raw_tool(name, arguments.unwrap_or("{}")).into()
        }
        (Some("status"), Some(code), None) => Reply::status(code.parse().unwrap_or(500)).into(),
        (Some("busy"), Some("once"), None) if busy.swap(false, Ordering::Relaxed) => {
            Reply::status(429).retry_after(RetryAfter::Millis(50)).into()
        }
        (Some("refuse"), Some("ratelimit"), None) => Reply::refused(Cause::RateLimit).into(),
        (Some("refuse"), Some("overloaded"), None) => Reply::refused(Cause::Overloaded).into(),
        (Some("refuse"), Some("overflow"), None) => Reply::refused(Cause::Overflow).into(),
        (Some("cut"), None, None) => Reply::text("one two three").cut_after(2).into(),
        (Some("fail"), None, None) => {
            Reply::text("one two three").trouble(2, Trouble::Error("Overloaded".to_owned())).into()
        }
        _ => words.cloned().unwrap_or_else(|| Reply::text(&format!("echo: {said}")).into()),
    }
}
