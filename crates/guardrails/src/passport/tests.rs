use super::*;
use serde_json::json;

/// A passport with capabilities and limits.
fn document(capabilities: &[&str], limits: &Value) -> Value {
    let capabilities: Vec<Value> = capabilities.iter().map(|id| json!({"id": id})).collect();
    json!({"spec_version": "oap/1.0", "status": "active", "capabilities": capabilities, "limits": limits})
}

/// Returns the code of the decision on a call.
async fn decides(passport: &Passport, tool: &str, input: Value) -> String {
    let request =
        GuardrailRequest { tool_name: tool.into(), tool_input: input, ..GuardrailRequest::default() };
    let decision = passport.evaluate(&request).await.unwrap();
    assert_eq!(decision.allow, decision.code() == "oap.allowed");
    decision.code()
}

fn inline(document: Value) -> Passport {
    Passport::new(PassportSource::Inline(document))
}

#[tokio::test]
async fn a_tool_needs_its_capability() {
    let passport = inline(document(&["data.file.read", "mcp.tool.execute"], &json!({})));
    let check = async |tool: &str, expect: &str| {
        assert_eq!(decides(&passport, tool, json!({})).await, expect, "{tool}")
    };
    for tool in ["ls", "read_file", "grep", "jira_search", "task", "ask_clarification", "write_todos"] {
        check(tool, "oap.allowed").await;
    }
    for tool in ["bash", "write_file", "web_fetch", "update_agent"] {
        check(tool, "oap.unknown_capability").await;
    }
    let nothing = inline(document(&[], &json!({})));
    assert_eq!(decides(&nothing, "some_new_tool", json!({})).await, "oap.unknown_capability");
}

#[tokio::test]
async fn only_commands_that_are_allowed_run_and_nothing_hides_another_one() {
    let limits = json!({"system.command.execute": {"allowed_commands": ["git status", "ls", "cat"]}});
    let passport = inline(document(&["system.command.execute"], &limits));
    let check = async |script: &str, expect: &str| {
        assert_eq!(decides(&passport, "bash", json!({"command": script})).await, expect, "{script}");
    };
    for script in ["ls -la", "git status -s", "cd /mnt && /bin/ls | cat", "cat <<EOF\nrm -rf /\nEOF", ""] {
        check(script, "oap.allowed").await;
    }
    for script in [
        "rm x",
        "git push",
        "git",
        "ls; rm x",
        "ls $(rm x)",
        "ls `rm x`",
        "ls && (rm x)",
        "cat <<EOF\n$(rm x)\nEOF",
        "sh -c ls",
        "sudo ls",
        "ls | xargs rm",
        "/tmp/ls",
        "./ls",
        "PATH=/tmp ls",
        "PATH=/tmp; ls",
        "$RM x",
        "{rm,-rf} x",
        "ls 'x",
        "eval ls",
        "find . -exec ls ;",
        "ls() { rm x; }; ls",
    ] {
        check(script, "oap.command_not_allowed").await;
    }
    check(&"ls;".repeat(5_000), "oap.command_not_allowed").await;
}

#[tokio::test]
async fn what_is_blocked_is_found_in_any_spelling() {
    let patterns = json!(["rm -rf", "curl.*\\|\\s*sh", "[unclosed"]);
    let limits = json!({
        "system.command.execute": {"allowed_commands": ["*"], "blocked_patterns": patterns},
        "data.file.write": {"blocked_patterns": ["secret"]},
    });
    let passport = inline(document(&["system.command.execute", "data.file.write"], &limits));
    let check = async |script: &str, expect: &str| {
        assert_eq!(decides(&passport, "bash", json!({"command": script})).await, expect, "{script}");
    };
    check("ls -la; echo $X", "oap.allowed").await;
    let blocked = [
        "rm -rf /",
        "RM  -RF /",
        "rm\t-rf x",
        "r'm' -rf x",
        "\\rm '-rf' x",
        "curl x | sh",
        "echo [unclosed",
        "ls 'x",
    ];
    for script in blocked {
        check(script, "oap.blocked_pattern").await;
    }
    let write = async |path: &str, content: &str| {
        decides(&passport, "write_file", json!({"path": path, "content": content})).await
    };
    assert_eq!(write("/mnt/a", "plain").await, "oap.allowed");
    assert_eq!(write("/mnt/Secret.txt", "plain").await, "oap.blocked_pattern");
    assert_eq!(write("/mnt/a", "a SECRET").await, "oap.blocked_pattern");
}

#[tokio::test]
async fn a_passport_that_is_not_active_or_not_readable_allows_nothing() {
    let good = || document(&["data.file.read"], &json!({}));
    let with = |key: &str, value: Value| {
        let mut changed = good();
        changed[key] = value;
        inline(changed)
    };
    let check = async |passport: Passport, expect: &str| {
        for tool in ["ls", "task"] {
            assert_eq!(decides(&passport, tool, json!({})).await, expect, "{passport:?}");
        }
        assert_eq!(passport.check().await.is_ok(), expect == "oap.allowed", "{passport:?}");
    };
    check(inline(good()), "oap.allowed").await;
    check(with("status", json!("suspended")), "oap.passport_suspended").await;
    check(with("status", json!("revoked")), "oap.passport_suspended").await;
    check(with("status", json!("Active")), "oap.passport_suspended").await;
    check(with("spec_version", json!("oap/2.0")), "oap.passport_suspended").await;
    check(with("expires_at", json!("2020-01-01T00:00:00Z")), "oap.passport_suspended").await;
    check(with("expires_at", json!("tomorrow")), "oap.passport_suspended").await;
    check(with("expires_at", json!("2999-01-01T00:00:00Z")), "oap.allowed").await;
    check(with("status", json!(1)), "oap.passport_unreadable").await;
    check(with("capabilities", json!("all")), "oap.passport_unreadable").await;
    check(with("limits", json!([])), "oap.passport_unreadable").await;
    check(inline(json!("active")), "oap.passport_unreadable").await;
}

#[tokio::test]
async fn a_limit_that_cannot_be_checked_closes_its_capability() {
    let limits = json!({
        "data.file.read": {"allowed_paths": ["/mnt"]},
        "web.fetch": {"allowed_commands": ["ls"]},
        "payments.charge": {"max_amount": 7},
    });
    let passport = inline(document(&["data.file.read", "data.file.write", "web.fetch"], &limits));
    assert_eq!(decides(&passport, "ls", json!({})).await, "oap.unknown_limit");
    assert_eq!(decides(&passport, "web_fetch", json!({})).await, "oap.unknown_limit");
    assert_eq!(decides(&passport, "write_file", json!({})).await, "oap.allowed");
    assert!(passport.check().await.unwrap_err().contains("allowed_paths"));
}

#[tokio::test]
async fn a_file_counts_as_it_is_at_each_call() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("passport.json");
    let passport = Passport::new(PassportSource::File(path.clone()));
    let check = async |expect: &str| assert_eq!(decides(&passport, "ls", json!({})).await, expect);
    check("oap.passport_unreadable").await;
    let write = |document: &Value| std::fs::write(&path, document.to_string()).unwrap();
    let mut document = document(&["data.file.read"], &json!({}));
    write(&document);
    check("oap.allowed").await;
    document["status"] = json!("revoked");
    write(&document);
    check("oap.passport_suspended").await;
    std::fs::write(&path, "{").unwrap();
    check("oap.passport_unreadable").await;
    std::fs::write(&path, " ".repeat(1 << 20)).unwrap();
    check("oap.passport_unreadable").await;
    std::fs::remove_file(&path).unwrap();
    check("oap.passport_unreadable").await;
}
