//! The environment of commands, and how they end.

use crate::house::{House, confined, gone, house, with_host_shell};
use pudu_base::{BoxFuture, Killed, Network, SandboxError, SandboxProvider, Shell, ShellCommand, Variable};
use pudu_sandbox::{Egress, Mount, Options};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

#[tokio::test]
async fn there_is_a_shell_where_the_kernel_confines_it_or_the_operator_allows_the_hosts() {
    let allowed = |host_shell| Options { host_shell, ..Options::default() };
    let none = house(None, allowed(false)).await;
    let command = ShellCommand::new("true".into(), Duration::from_secs(1));
    assert!(matches!(none.sandbox.exec(&command).await, Err(SandboxError::Refused(_))));
    assert_eq!(none.local.shell(), None);
    let host = house(None, allowed(true)).await;
    assert_eq!((host.local.shell(), host.sh("true").await.code), (Some(Shell::Host), Some(0)));
    // The host's shell is not used if there is an alternative.
    let Some(house) = confined(allowed(true)).await else { return };
    assert_eq!(house.local.shell(), Some(Shell::Confined(Network::None)));
    assert_eq!(house.says("hostname").await, "sandbox");
}

#[tokio::test]
async fn the_shell_and_the_file_tools_see_the_same_paths() {
    let shared = tempfile::tempdir().unwrap();
    std::fs::write(shared.path().join("a"), "shared").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", shared.path().join("out")).unwrap();
    let mount = |agent: &str, read_only| Mount::configured(shared.path().into(), agent, read_only).unwrap();
    let absent = Mount::configured("/does/not/exist".into(), "/mnt/absent", true).unwrap();
    let mounts = vec![mount("/mnt/data", true), mount("/opt/more/data", false), absent];
    // A folder in which any user can write.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(shared.path(), permissions).unwrap();
    let Some(house) = confined(Options { mounts, ..Options::default() }).await else { return };
    house.sandbox.write("/mnt/user-data/workspace/a/b", b"from a tool", false).await.unwrap();
    assert_eq!(
        house.says("pwd; cat /mnt/user-data/workspace/a/b").await,
        "/mnt/user-data/workspace\nfrom a tool"
    );
    house.says("echo -n more >> a/b; echo -n done > ../outputs/c").await;
    assert_eq!(house.read("/mnt/user-data/workspace/a/b").await.unwrap(), "from a toolmore");
    assert_eq!(house.read("/mnt/user-data/outputs/c").await.unwrap(), "done");
    assert_eq!(house.says("cat /mnt/data/a /opt/more/data/a").await, "sharedshared");
    assert_eq!(house.read("/mnt/data/a").await.unwrap(), "shared");
    assert_ne!(house.sh("echo x > /mnt/data/b").await.code, Some(0));
    assert_eq!(house.sh("echo x > /opt/more/data/b").await.code, Some(0));
    let write = house.sandbox.write("/mnt/data/b", b"", false).await;
    assert!(matches!(write, Err(SandboxError::ReadOnly { .. })), "{write:?}");
    assert!(matches!(house.read("/mnt/data/out").await, Err(SandboxError::Outside { .. })));
    assert!(matches!(house.read("/mnt/absent/a").await, Err(SandboxError::Outside { .. })));
    let listed = house.sandbox.list("/mnt/data", 1, 10).await.unwrap();
    assert_eq!(
        listed.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(),
        ["/mnt/data/a", "/mnt/data/b", "/mnt/data/out"]
    );
}

#[tokio::test]
async fn files_outlive_a_command_and_nothing_else_does() {
    let Some(house) = confined(Options::default()).await else { return };
    house.says("echo kept > kept; echo x > /tmp/lost; nohup sleep 987651 > /dev/null 2>&1 &").await;
    assert_eq!(house.says("cat kept; ls /tmp; ps -e -o comm= | grep -c sleep || true").await, "kept\n0");
    gone("987651").await;
}

#[tokio::test]
async fn an_environment_is_made_from_nothing_and_what_the_operator_adds() {
    let environment = vec![("ANSWER".to_owned(), "42".to_owned()), ("HOME".to_owned(), "/tmp".to_owned())];
    let options = Options { environment, ..Options::default() };
    let Some(house) = confined(options).await else { return };
    let names = "env | cut -d= -f1 | grep -v '^_$' | sort | tr '\\n' ' '; echo $ANSWER $HOME";
    assert_eq!(house.says(names).await, "ANSWER HOME LANG LOGNAME PATH PWD SHELL SHLVL TMPDIR USER 42 /tmp");
}

/// Everyday commands.
#[tokio::test]
async fn everyday_work_goes_on_as_if_there_were_no_walls() {
    let Some(house) = confined(Options::default()).await else { return };
    for (script, expect) in [
        ("echo a | tr a b", "b"),
        ("cat <(echo sub) <<< x", "sub"),
        ("(sleep 0.01; echo late) & wait; echo done", "late\ndone"),
        ("trap 'echo child' CHLD; sleep 0.01 & wait; wait; echo end", "child\nend"),
        ("whoami; id -un; echo ~", "agent\nagent\n/mnt/user-data/workspace"),
        (
            "mktemp -d | cut -c1-5; echo x > /dev/null; head -c3 /dev/zero | od -An -c | tr -d ' '",
            "/tmp/\n\\0\\0\\0",
        ),
        ("echo x > /dev/stdout; echo $((6 * 7)); test -w /dev/shm && echo shared", "x\n42\nshared"),
        ("yes | head -n 2; exec 3< /etc/passwd; read -u 3 line; echo ${line%%:*}", "y\ny\nroot"),
        ("ln -s a b; mkdir -p x/y; mv x z; chmod 700 z; find . -type d | sort | tail -n 1", "./z/y"),
        ("getent hosts localhost > /dev/null && echo known", "known"),
        ("kill -0 $$ && kill -TERM $$ ; echo never", ""),
    ] {
        let done = house.sh(script).await;
        assert_eq!(done.stdout.trim_end(), expect, "{script}: {done:?}");
    }
    // The loopback interface works, and so do the usual mechanisms of many programs.
    let python = r#"
import http.server, threading, urllib.request, multiprocessing, subprocess, os, pty, tempfile, socket
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
server.RequestHandlerClass.log_message = lambda *a: None
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").status)
with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, -2]))
print(subprocess.run(["echo", "sub"], capture_output=True, text=True).stdout.strip())
print(os.ttyname(pty.openpty()[1]).startswith("/dev/pts/"), len(socket.socketpair()))
"#;
    if house.sh("command -v python3 > /dev/null").await.code == Some(0) {
        house.sandbox.write("/mnt/user-data/workspace/all.py", python.as_bytes(), false).await.unwrap();
        assert_eq!(house.says("python3 all.py").await, "200\n[1, 2]\nsub\nTrue 2");
    }
}

/// Both kinds of shells end the same way.
async fn ends(house: &House, mark: &str) {
    let done = house.sh("echo out; echo oops >&2; exit 3").await;
    assert_eq!((done.stdout.as_str(), done.stderr.as_str(), done.code), ("out\n", "oops\n", Some(3)));
    let done = house.sh("kill -9 $$").await;
    assert_eq!((done.code, done.killed), (None, None));
    let done = house.sh(&format!("sleep {mark}1 & echo done")).await;
    assert_eq!((done.stdout.as_str(), done.code), ("done\n", Some(0)));
    gone(&format!("{mark}1")).await;
    let slow =
        |number| format!("echo begun; (sleep {mark}{number}; touch late) & sleep {mark}{number}; wait");
    let done = house.sh_for(&slow(2), Duration::from_millis(500)).await;
    assert_eq!((done.stdout.as_str(), done.code, done.killed), ("begun\n", None, Some(Killed::Late)));
    gone(&format!("{mark}2")).await;
    let command = ShellCommand::new(slow(3), Duration::from_secs(1000));
    let dropped = tokio::time::timeout(Duration::from_millis(500), house.sandbox.exec(&command)).await;
    assert!(dropped.is_err());
    gone(&format!("{mark}3")).await;
    let done = house.sh("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last").await;
    assert!(done.stdout.starts_with("first\n") && done.stdout.ends_with("last\n"));
    assert!(done.stdout.len() < 600_000 && done.code == Some(0));
    assert_eq!(house.sh("exec >&- 2>&-; sleep 0.05; exit 4").await.code, Some(4));
}

#[tokio::test]
async fn a_confined_command_ends_with_all_that_it_started() {
    let Some(house) = confined(Options::default()).await else { return };
    ends(&house, "98765400").await;
}

#[tokio::test]
async fn a_command_on_the_host_ends_with_all_that_it_started() {
    ends(&with_host_shell().await, "98765500").await;
}

#[tokio::test]
async fn a_script_that_cannot_be_handed_over_is_refused_with_a_way_out() {
    let Some(house) = confined(Options::default()).await else { return };
    let long = format!("echo {}", "x".repeat(100_000));
    assert_eq!(house.says(&long).await.len(), 100_000);
    for script in ["#".repeat(200_000), "echo \0".to_owned()] {
        let command = ShellCommand::new(script, Duration::from_secs(9));
        let refused = house.sandbox.exec(&command).await.unwrap_err().to_string();
        assert!(refused.contains("write it to a file"), "{refused}");
    }
}

#[tokio::test]
async fn many_commands_at_once_do_not_meet() {
    let Some(house) = confined(Options::default()).await else { return };
    let one = |number: usize| {
        let house = &house;
        async move { house.says(&format!("echo {number} > /tmp/x; sleep 0.1; cat /tmp/x")).await }
    };
    let all = tokio::join!(one(1), one(2), one(3), one(4), one(5), one(6));
    assert_eq!(all, ("1".into(), "2".into(), "3".into(), "4".into(), "5".into(), "6".into()));
}

/// Answers every connection with its first line.
struct Parrot;

impl Egress for Parrot {
    fn serve(&self, listener: TcpListener) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // Reads the complete head, which may arrive in pieces: closing with unread data resets the connection.
                let mut heard = Vec::new();
                while !heard.ends_with(b"\r\n\r\n") && stream.read_buf(&mut heard).await.unwrap_or(0) > 0 {}
                let line = String::from_utf8_lossy(&heard).lines().next().unwrap_or_default().to_owned();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len());
                stream.write_all(answer.as_bytes()).await.ok();
            }
        })
    }
}

#[tokio::test]
async fn a_sandbox_with_a_proxy_reaches_the_daemons_and_nothing_else() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let options = Options { network: Network::Proxy, egress: Some(Arc::new(Parrot)), ..Options::default() };
    let Some(house) = confined(options).await else { return };
    assert_eq!(house.local.shell(), Some(Shell::Confined(Network::Proxy)));
    let ask =
        "exec 3<> /dev/tcp/127.0.0.1/3128; printf 'CONNECT a:443 HTTP/1.1\\r\\n\\r\\n' >&3; tail -n 1 <&3";
    assert_eq!(
        house.says(&format!("{ask}; echo; echo $https_proxy $no_proxy")).await,
        "CONNECT a:443 HTTP/1.1\nhttp://127.0.0.1:3128 localhost,127.0.0.1,::1"
    );
    let around = format!("(: <> /dev/tcp/127.0.0.1/{port}) || (: <> /dev/tcp/1.1.1.1/53) || echo nowhere");
    assert_eq!(house.sh(&around).await.stdout, "nowhere\n");
    // Each sandbox has its own listener at the same address.
    let (first, second) = tokio::join!(house.says(ask), house.says(ask));
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_commands_own_variables_are_in_its_environment_alone_and_take_nobodys_place() {
    let operators = || vec![("FIXED".to_owned(), "the operator's".to_owned())];
    let options = || Options { environment: operators(), ..Options::default() };
    let with_shell = house(None, Options { host_shell: true, ..options() }).await;
    let houses = [Some(with_shell), confined(options()).await];
    let variable = |(name, value): (&str, &str)| Variable { name: name.into(), value: value.into() };
    let variables = [("KEY", "a 'b' $c\nd"), ("FIXED", "another")].map(variable);
    let script = r#"printf '%s|%s' "$KEY" "$FIXED""#;
    let command = ShellCommand::new(script.into(), Duration::from_secs(20));
    let with_variables = ShellCommand { variables: variables.into(), ..command.clone() };
    for house in houses.into_iter().flatten() {
        let done = house.sandbox.exec(&with_variables).await.unwrap();
        assert_eq!(done.stdout, "a 'b' $c\nd|the operator's", "{}", done.stderr);
        let without = house.sandbox.exec(&command).await.unwrap();
        assert_eq!(without.stdout, "|the operator's");
    }
}
