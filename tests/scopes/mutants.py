#!/usr/bin/env python3
"""Takes the checks that keep people apart out of the program, one at a time, and expects tests/scopes.rs to fail.

Works on a copy of the last commit, in a folder of its own below target/. Each check costs a build.
    tests/scopes/mutants.py [NAME ...]
"""
import os
import pathlib
import subprocess
import sys

MUTANTS = {
    "a room's memory is the asker's": (
        "crates/agent/src/memory/rules.rs",
        "user: task.room.clone().unwrap_or_else(|| task.user.clone())",
        "user: task.user.clone()",
    ),
    "all people are one user": (
        "crates/people/src/users.rs",
        "None => alone(account, person),",
        "None => { let _ = alone(account, person); UserId::local() }",
    ),
    "/memory in a room is the asker's": (
        "crates/dispatch/src/commands/memory.rs",
        "false => UserId::room(&address.account, &address.chat),",
        "false => { let _ = UserId::room(&address.account, &address.chat); session.user }",
    ),
    "recall searches everybody's entries": (
        "crates/store/src/recall/search.rs",
        "WHERE user_id = $1 AND agent = $2\"",
        "WHERE user_id <> $1 OR agent = $2\"",
    ),
    "a thread keeps what was remembered of whom its person was": (
        "crates/harness/src/run.rs",
        "recalled.user != agent.remembers)",
        "recalled.user != agent.remembers && false)",
    ),
    "a conversation is read beyond what was said as this user": (
        "crates/agent/src/memory/learn.rs",
        "let from = behind.max(at(first)).unwrap_or(0);",
        "let from = behind.min(at(first)).unwrap_or(0); let last = \"\";",
    ),
    "skills of a room are the asker's": (
        "crates/agent/src/task.rs",
        "self.room.as_ref().unwrap_or(&self.user)",
        "self.room.as_ref().map_or(&self.user, |_| &self.user)",
    ),
    "usage is everybody's": (
        "crates/store/src/spending.rs",
        "\"user_id = $1 AND day >= $2\"",
        "\"user_id <> $1 AND day >= $2\"",
    ),
}
ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "mutants" / "copy"


def run(*command, **more):
    return subprocess.run(command, cwd=COPY, capture_output=True, text=True, **more)


def survives(path, original, changed):
    text = (COPY / path).read_text()
    if text.count(original) != 1:
        sys.exit(f"{path} has {text.count(original)} times: {original}")
    (COPY / path).write_text(text.replace(original, changed))
    # Some of them show only where conversations wait while people join, which is rare.
    steps = os.environ.get("PUDU_SCOPE_STEPS", "2000")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(COPY.parent / "build"), "PUDU_SCOPE_STEPS": steps}
    built = run("cargo", "test", "-p", "pudu", "--test", "it", "--no-run", env=environment)
    if built.returncode:
        sys.exit(built.stderr[-2000:])
    test = run("cargo", "test", "-p", "pudu", "--test", "it", "scopes::", env=environment)
    (COPY / path).write_text(text)
    return test.returncode == 0


def main():
    wanted = sys.argv[1:] or list(MUTANTS)
    if not COPY.exists():
        COPY.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(COPY)], check=True)
    subprocess.run(["git", "fetch", "-q", "origin", "HEAD"], cwd=COPY, check=True)
    subprocess.run(["git", "reset", "-q", "--hard", "FETCH_HEAD"], cwd=COPY, check=True)
    alive = []
    for name in wanted:
        lives = survives(*MUTANTS[name])
        print("SURVIVED" if lives else "failed", name, flush=True)
        alive += [name] if lives else []
    sys.exit(f"{len(alive)} changes were not noticed" if alive else 0)


main()
