//! Tests of the whole configuration, as an operator uses it.

mod acp;
mod budgets;
mod context;
mod documented;
mod errors;
mod feishu;
mod guardrails;
mod model_blocks;
mod near_misses;
mod sections;
mod values;
mod web;

use super::*;

/// Reads a file's text in an empty folder with this environment.
fn read<const N: usize>(text: &str, env: [(&str, &str); N]) -> Result<LoadedConfig, ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(&file, text).unwrap();
    let start = Start { env: Env::from(env), dir: "/d".into(), ..Start::default() };
    match load_file(&start, Some(&file)) {
        Ok(mut loaded) => {
            loaded.report.file = Some("config.yaml".into());
            Ok(loaded)
        }
        Err(ConfigError::Wrong(report)) => {
            Err(ConfigError::Wrong(Report { file: Some("config.yaml".into()), ..report }))
        }
        Err(error) => Err(error),
    }
}

/// Reads a file that must be valid.
fn good<const N: usize>(text: &str, env: [(&str, &str); N]) -> LoadedConfig {
    read(text, env).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads any file, with the current version added, and returns the messages.
fn messages<const N: usize>(text: &str, env: [(&str, &str); N]) -> String {
    let text = format!("config_version: {VERSION}\n{text}");
    match read(&text, env) {
        Ok(loaded) => loaded.report.to_string(),
        Err(error) => error.to_string(),
    }
}
