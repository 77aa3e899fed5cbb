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
async fn only_allowed_commands_run_and_none_is_hidden() {
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

/// Commands that run, or might run, `rm` or a program in the folder `evil` with some version of a shell or tool.
const HOSTILE: &[&str] = &[
    "'[[' x; rm x",
    "\\[[ x\nrm x",
    "\"[\"[ x; rm x",
    "[[ 'a[$(rm x)]' -eq 0 ]]",
    "[[ 0 -eq 'a[$(rm x)]' ]]",
    "[[ -v 'a[$(rm x)]' ]]",
    "test -v 'a[$(rm x)]'",
    "[ -v 'a[$(rm x)]' ]",
    "o=-v; test $o 'a[$(rm x)]'",
    "o=-v; [ \"$o\" 'a[$(rm x)]' ]",
    "o='-v a[$(rm${IFS}x)]'; [ $o ]",
    "x='a[$(rm x)]'; [[ x -gt 0 ]]",
    "cat <<$'E\\x4fF'\nhere\nEOF\nrm x\nE\\x4fF",
    "cat <<$'E\\117F'\nhere\nEOF\nrm x\nE117F",
    "cat <<E\\\nOF\n$(rm x)\nEOF",
    "cat <<EOF\nhere\nE\\\nOF\nrm x\nEOF",
    "cat <<EOF\n`rm x`\nEOF",
    "cat <<EOF\n${y:-$(rm x)}\nEOF",
    "cat <<EOF\n$(ls; rm x)\nEOF",
    "cat <<-EOF\n\tEOF\nrm x\nEOF",
    "cat <<'A' <<'B'\nB\nA\nB\nrm x",
    "function git while rm x; do exit; done; git status",
    "function git { rm x; }; git status",
    "git() { rm x; }; git status",
    "ls() (rm x); ls",
    "for PATH in evil; do git status; done",
    "for PATH\nin evil\ndo git status; done",
    "for LC_ALL in zh_CN.GBK; do ls; done\necho \"€\\\"\nrm x\n: \"",
    "LC_ALL=zh_CN.GBK\necho \"€\\\"\nrm x\n: \"",
    "LANG=C; LANG+=x; ls",
    "for f do rm x; done; rm x",
    "for f in a; do rm x; done",
    "for f in $(rm x); do ls; done",
    "for f in a; { rm x; }",
    "for f in rm; do $f x; done",
    "for ((i=a[$(rm x)]; i<1; i++)); do ls; done",
    "select PATH in evil; do git status; done <<< 1",
    "case x in x) rm x;; esac",
    "case $(rm x) in esac",
    "coproc rm x; cat <&${COPROC[0]}",
    "GIT_EXTERNAL_DIFF='rm x' git status",
    "NODE_OPTIONS=--require=./evil.js ls",
    "PERL5OPT=-Mevil ls",
    "PAGER='rm x' git status",
    "EDITOR=rm git status",
    "GIT_SSH_COMMAND='rm x' git status",
    "BASH_ENV=evil/env bash file.sh",
    "x=1 LD_PRELOAD=./evil.so ls",
    "PATH=evil git status",
    "PATH=evil; git status",
    "PATH+=x:evil; PATH=${PATH#*x:}; git status",
    "BASH_ALIASES[ls]='rm x'; ls",
    "npm_config_script_shell=evil/git; ls",
    "env PATH=evil git status",
    "env 'BASH_FUNC_git%%=() { rm x; }' bash -c 'git status'",
    "env -S 'rm x'",
    "env '-Srm x' ls",
    "env --split-string='rm x' ls",
    "env -u LANG rm x",
    "nice -n1 rm x",
    "timeout 5 rm x",
    "timeout -k 1 5 rm x",
    "timeout \"-k\" 1 5 rm x",
    "echo x | xargs rm",
    "echo x | xargs -In rm ls",
    "echo rm | xargs -I ls ls x",
    "echo rm | xargs -I {} {} x",
    "echo '-exec rm x ;' | xargs find .",
    "echo rm x | xargs env",
    "echo rm x | xargs timeout 5",
    "echo x | xargs bash -c 'rm x'",
    "echo 'rm x' | bash",
    "echo 'rm x' | bash -s",
    "bash <<'E'\nrm x\nE",
    "bash <<< 'rm x'",
    "bash < <(echo rm x)",
    "bash -o posix -c 'rm x'",
    "bash -c 'bash -c \"rm x\"'",
    "x='rm x'; bash -c \"$x\"",
    "find . -maxdepth 0 -exec rm x \\;",
    "find . -maxdepth 0 -exec ls + -exec rm x \\;",
    "find . -maxdepth 0 -ok rm x \\; <<< y",
    "x='-maxdepth 0 -exec rm x ;'; find . $x",
    "x=-exec; find . -maxdepth 0 \"$x\" rm x \\;",
    "find . -maxdepth 0 {-exec,rm,x,\\;}",
    "find . -maxdepth 0 -exec bash -c 'rm {}' \\;",
    "find . -maxdepth 0 '-exec' nice rm x \\;",
    "printf -v PATH evil; git status",
    "printf -v 'a[$(rm x)]' x",
    "x=-v; printf \"$x\" 'a[$(rm x)]' x",
    "printf '1234%n' PATH; git status",
    "echo $((a[$(rm x)]))",
    "x='a[$(rm x)]'; echo $((x))",
    "x='a[$(rm x)]'; echo $[x]",
    "x='a[$(rm x)]'; y=abc; echo ${y:x}",
    "x='a[$(rm x)]'; echo ${!x}",
    "x='$(rm x)'; echo \"${x@P}\"",
    "echo ${a[$(rm x)]}",
    "echo ${PATH:=$(rm x)}",
    "echo \"${x:-`rm x`}\"",
    "(( a[$(rm x)] ))",
    "a=(['b[$(rm x)]']=1)",
    "a['b[$(rm x)]']=1",
    "let 'a[$(rm x)]=1'",
    "declare -i x='a[$(rm x)]'",
    "export PATH=evil; git status",
    "read PATH <<< evil; git status",
    "eval 'rm x'",
    "trap 'rm x' EXIT",
    "hash -p evil/git git; git status",
    "source <(echo rm x)",
    ". evil/env",
    "command rm x",
    "exec rm x",
    "time rm x",
    "! rm x",
    "{ rm x; }",
    "(rm x)",
    "( (rm x) )",
    "ls & rm x",
    "ls |& rm x",
    "ls\u{a0}# ; rm x",
    "ls\\\n# ; rm x",
    "echo $(ls # )\nrm x)",
    "ls >(rm x)",
    "cat <(rm x)",
    "cat < $(rm x)",
    "ls > \"$(rm x)\"",
    "cat <<< $(rm x)",
    "{PATH}>evil ls",
    "evil/git status",
    "./evil/git status",
    "\"x=/../evil/git\" status",
    "nice x=/../evil/git status",
    "$'\\x72m' x",
    "$'r'm x",
    "$\"rm\" x",
    "r\\\nm x",
    "r''m x",
    "\"$(echo rm)\" x",
    "$(echo rm) x",
    "x=rm; $x x",
    "{rm,x}",
    "if ls; then rm x; fi",
    "while rm x; do break; done",
    "until ! rm x; do break; done",
];

/// Everyday commands of models.
const HONEST: &[&str] = &[
    "",
    "ls -la /mnt/user-data",
    "git status -s; ls",
    "cd x && git status",
    "cd \"$HOME/x\" || exit 1",
    "ls | sort | head -n 3",
    "ls *.txt file[0-9].md {a,b}.txt",
    "echo \"hello, $USER\" 'it costs $5' > out.txt",
    "echo more >> out.txt 2>&1",
    "ls missing 2>/dev/null || echo 'not there'",
    "ls &> all.txt; cat < all.txt",
    "sort <in.txt >|out.txt &",
    "for f in *.txt; do wc -l \"$f\"; done",
    "for f in $(ls)\ndo\n  echo ${f%.txt} ${#f} ${f:-none}\ndone",
    "cat <<EOF\nrm -rf / costs $x\nEOF",
    "cat > run.py <<'EOF'\nprint('$(rm x)')  # `rm x` \\\nEOF\nls",
    "cat <<-END\n\tit's\n\tEND\nls",
    "cat <<A <<\"B\"\n1\nA\n2\nB\nls",
    "grep -rn 'foo$' . --include='*.rs' | head",
    "grep \"a\\\"b$\" file # it's a comment",
    "if [ -f a.txt ]; then cat a.txt; else echo no; fi",
    "if [[ ! -d out ]]; then echo none; fi",
    "[ \"$(wc -l < a.txt)\" -gt 3 ] && echo long",
    "test -n \"$x\" && echo \"$x\"",
    "while true; do ls; break; done",
    "n=3; name='a b'; echo \"$n $name\"",
    "echo $((1 + 2 * 3))",
    "LC_ALL=C sort a.txt",
    "TZ=UTC git status",
    "env LC_ALL=en_US.UTF-8 sort a.txt",
    "(cd x && ls); { ls; echo done; }",
    "find . -name '*.rs' -not -path './target/*'",
    "find \"./$x\" -type f -exec wc -l {} +",
    "find . -type f | xargs -n 1 wc -l",
    "find . -print0 | xargs -0 grep -l x",
    "timeout 5 ls; nice -n 5 ls; time ls",
    "bash -c 'ls && git status'",
    "bash build.sh --release",
    "printf '%s\\n' \"$x\" | sort",
    "diff <(ls a) <(ls b)",
    "ls -l \\\n  --all \\\n  /tmp",
    "/bin/ls; /usr/bin/sort a",
    "! ls; echo $?",
    "git status && command -v rm",
];

#[tokio::test]
async fn no_spelling_hides_a_program_and_everyday_commands_run() {
    let allowed = [
        "git status",
        "ls",
        "cat",
        "wc",
        "find",
        "bash",
        "xargs",
        "env",
        "timeout",
        "nice",
        "time",
        "printf",
        "echo",
        "grep",
        "sort",
        "head",
        "diff",
        "command",
    ];
    let limits = json!({"system.command.execute": {"allowed_commands": allowed}});
    let passport = inline(document(&["system.command.execute"], &limits));
    for (scripts, expect) in [(HOSTILE, "oap.command_not_allowed"), (HONEST, "oap.allowed")] {
        for script in scripts {
            assert_eq!(decides(&passport, "bash", json!({"command": script})).await, expect, "{script}");
        }
    }
    let deep =
        [format!("{}ls{}", "(".repeat(40), ")".repeat(40)), "nice ".repeat(1_900), "echo $(".repeat(1_000)];
    for script in deep {
        assert_eq!(decides(&passport, "bash", json!({"command": script})).await, "oap.command_not_allowed");
    }
}

#[tokio::test]
async fn builtins_that_run_their_arguments_are_always_refused() {
    let allowed = ["eval", "export", "read", "trap", "declare", "set", "hash", "flock", "watch", "source"];
    let limits = json!({"system.command.execute": {"allowed_commands": allowed}});
    let passport = inline(document(&["system.command.execute"], &limits));
    for program in allowed {
        let script = json!({"command": format!("{program} x")});
        assert_eq!(decides(&passport, "bash", script).await, "oap.command_not_allowed", "{program}");
    }
}

#[tokio::test]
async fn blocked_patterns_are_found_in_any_spelling() {
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
async fn an_uncheckable_limit_denies_its_capability() {
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
async fn the_passport_file_is_read_at_each_call() {
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
