//! Agents of the Agent Client Protocol.

use super::*;
use std::time::Duration;

fn agents<const N: usize>(text: &str, env: [(&str, &str); N]) -> Vec<AcpAgent> {
    good(text, env).config.hot.acp_agents.to_vec()
}

#[test]
fn an_agent_has_deerflows_keys_and_no_more_of_the_environment_than_it_names() {
    let text = "acp_agents:\n  coder:\n    command: npx\n    args: [-y, \"a,b\", 7]\n    description: writes code\n    \
                env: {KEY: $TEST_KEY, GONE: $NOT_SET, PLAIN: 1}\n";
    let env = [("TEST_KEY", "k"), ("OTHER_KEY", "o"), ("PATH", "/bin")];
    let [agent] = &agents(text, env)[..] else { panic!("there is not one agent") };
    let args: Vec<&str> = agent.command.args.iter().map(ExposeSecret::expose_secret).collect();
    assert_eq!(
        (agent.name.as_str(), agent.command.program.as_str(), args),
        ("coder", "npx", vec!["-y", "a,b", "7"])
    );
    let mut given: Vec<(&str, &str)> =
        agent.command.env.iter().map(|(key, value)| (key.as_str(), value.expose_secret())).collect();
    given.sort_unstable();
    let expected =
        [("GONE", ""), ("HOME", "/"), ("KEY", "k"), ("LANG", "C.UTF-8"), ("PATH", "/bin"), ("PLAIN", "1")];
    assert_eq!(given, expected);
    assert_eq!((agent.auto_approve, agent.timeout, &agent.model), (false, Duration::from_secs(1800), &None));
    assert!(agent.mcp_servers.is_empty(), "no server is passed on unless it is named");
    let own = "acp_agents: {a: {command: a, description: b, model: m, auto_approve_permissions: true, timeout_seconds: 5, mcp_servers: [files, search]}}\n";
    let [agent] = &agents(own, [])[..] else { panic!("there is not one agent") };
    assert_eq!(
        (agent.auto_approve, agent.timeout, agent.model.as_deref()),
        (true, Duration::from_secs(5), Some("m"))
    );
    assert_eq!(agent.mcp_servers, ["files", "search"]);
}

#[test]
fn an_agent_that_cannot_work_is_an_error() {
    for (agent, expect) in [
        ("{command: a}", "acp_agents.x.description: this is missing or empty"),
        ("{description: a}", "acp_agents.x.command: this is missing or empty"),
        ("{command: npx -y thing, description: a}", "this is a command line, not a program"),
        ("{command: a, description: b, timeout_seconds: 0}", "acp_agents.x.timeout_seconds"),
        ("{command: a, description: b, args: {}}", "expected a list of texts"),
        ("{command: a, description: b, args: [$GONE]}", "the environment variable GONE is not set"),
        ("{command: a, description: b, env: 7}", "acp_agents.x.env: found a number, expected a mapping"),
    ] {
        let report = messages(&format!("acp_agents: {{x: {agent}}}\n"), []);
        assert!(report.contains(expect), "{agent}: {report}");
    }
}
