"""Drives the simulated all-in-one sandbox with the official client of its API."""

import asyncio
import base64
import sys
import time

from agent_sandbox import Sandbox
from agent_sandbox.core.api_error import ApiError

from checks import check, equal, run


@check("it says what it is")
def _(client, _):
    context = client.sandbox.get_context()
    equal((context.home_dir, context.detail.system.user), ("/".join(("", "home", "gem")), "gem"))


@check("a command's outputs come apart, with its code")
def _(client, folder):
    done = client.bash.exec(command="pwd; echo $ONE; echo bad >&2; exit 3", exec_dir=folder, env={"ONE": "1"})
    equal(done.success, True)
    equal((done.data.status, done.data.exit_code), ("completed", 3))
    equal((done.data.stdout, done.data.stderr), (f"{folder}\n1\n", "bad\n"))
    equal((done.data.offset, done.data.stderr_offset), (len(folder) + 3, 4))


@check("what takes longer than the answer goes on, and is asked for from where it was")
def _(client, _):
    first = client.bash.exec(command="echo one; sleep 0.5; echo two", timeout=0.2, hard_timeout=20).data
    equal((first.status, first.stdout, first.exit_code), ("running", "one\n", None))
    more = client.bash.output(
        session_id=first.session_id, command_id=first.command_id, offset=first.offset, wait=True, wait_timeout=10
    ).data
    equal(more.stdout, "two\n")
    while more.command.status == "running":
        more = client.bash.output(
            session_id=first.session_id, offset=more.offset, wait=True, wait_timeout=10
        ).data
    equal((more.command.status, more.command.exit_code), ("completed", 0))


@check("what takes too long is killed")
def _(client, _):
    begun = time.monotonic()
    done = client.bash.exec(command="echo begun; sleep 30", hard_timeout=0.3).data
    equal((done.status, done.stdout, done.exit_code), ("timed_out", "begun\n", None))
    equal(time.monotonic() - begun < 10, True)


@check("a command in the background is killed by its session")
def _(client, _):
    done = client.bash.exec(command="sleep 30", async_mode=True, session_id="mine").data
    equal((done.session_id, done.status), ("mine", "running"))
    equal(client.bash.kill(session_id="mine", signal="SIGKILL").success, True)
    equal(client.bash.output(session_id="mine").data.command.status, "killed")


@check("the middle of a long output is left out")
def _(client, _):
    done = client.bash.exec(command="echo begin; head -c 100000 /dev/zero | tr '\\0' x; echo end", max_output_length=1000)
    out = done.data.stdout
    equal((out.startswith("begin\nxx"), out.endswith("xxend\n"), len(out) < 1100), (True, True, True))


@check("sessions are listed and closed")
def _(client, _):
    names = [one.session_id for one in client.bash.sessions().data]
    equal("mine" in names, True)
    client.bash.close_session("mine")
    equal("mine" in [one.session_id for one in client.bash.sessions().data], False)
    try:
        client.bash.output(session_id="mine")
    except ApiError as error:
        equal(error.status_code, 404)
    else:
        raise AssertionError("it passed")


@check("a file is written as text and as bytes, appended to, and read back")
def _(client, folder):
    path = f"{folder}/a file"
    equal(client.file.write_file(file=path, content="one\n").data.bytes_written, 4)
    client.file.write_file(file=path, content=base64.b64encode(b"\x00two").decode(), encoding="base64", append=True)
    equal(client.file.read_file(file=path).data.content, "one\n\x00two")
    equal(b"".join(client.file.download_file(path=path)), b"one\n\x00two")
    try:
        client.file.read_file(file=f"{folder}/none")
    except ApiError as error:
        equal(error.status_code, 404)
    else:
        raise AssertionError("it passed")


@check("a folder is listed, deeper if asked")
def _(client, folder):
    client.bash.exec(command="mkdir -p deep/er && touch deep/er/.hidden deep/x.txt", exec_dir=folder)
    names = lambda listed: sorted(one.path.removeprefix(folder) for one in listed.data.files)
    equal(names(client.file.list_path(path=folder)), ["/a file", "/deep"])
    deep = client.file.list_path(path=f"{folder}/deep", recursive=True, show_hidden=True, include_size=True, max_depth=2)
    equal(names(deep), ["/deep/er", "/deep/er/.hidden", "/deep/x.txt"])
    equal((deep.data.directory_count, deep.data.file_count), (1, 2))


async def main():
    return await run("agent-sandbox", Sandbox(base_url=sys.argv[1], timeout=60), sys.argv[2])


sys.exit(asyncio.run(main()))
