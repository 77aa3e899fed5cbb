"""Drives the simulated engine with Docker's own client for Python."""

import asyncio
import pathlib
import sys
import tempfile

import docker
import docker.errors
from docker.types import Mount

from checks import check, equal, run

IDLE = ["/bin/sh", "-c", "while :; do sleep 86400; done"]
NAME = "conformance-box"


@check("it answers, and says which versions it speaks")
def _(client, _):
    equal(client.ping(), True)
    version = client.version()
    equal((version["ApiVersion"], version["Version"], version["Os"]), ("1.50", "28.2.2", "linux"))
    equal(client.info()["OSType"], "linux")


@check("a version that it does not speak is refused")
def _(client, _):
    other = docker.DockerClient(base_url=client.api.base_url, version="1.51")
    try:
        other.containers.list()
    except docker.errors.APIError as error:
        equal((error.status_code, "too new" in str(error)), (400, True))
    else:
        raise AssertionError("it passed")


@check("an image is looked at, pulled with its progress, and refused if nobody has it")
def _(client, _):
    equal(client.images.get("debian:12").tags, ["debian:12"])
    steps = list(client.api.pull("alpine", tag="3", stream=True, decode=True))
    equal([step.get("progressDetail", {}).get("current") for step in steps], [None, 1000000, 2000000, None])
    equal(client.images.get("alpine:3").tags, ["alpine:3"])
    for pull in (client.images.get, client.images.pull):
        try:
            pull("nobody/has-this:1")
        except docker.errors.ImageNotFound:
            pass
        else:
            raise AssertionError("it passed")


@check("a container is made, refused a second time under its name, started and found by its label")
def _(client, folder):
    options = {
        "command": IDLE,
        "name": NAME,
        "labels": {"conformance": "yes"},
        "mounts": [Mount("/mnt/data", folder, type="bind"), Mount("/mnt/sealed", folder, type="bind", read_only=True)],
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        "environment": {"GREETING": "hello"},
        "working_dir": "/mnt/data",
    }
    box = client.containers.create("debian:12", **options)
    equal(box.status, "created")
    try:
        client.containers.create("debian:12", **options)
    except docker.errors.APIError as error:
        equal((error.status_code, "already in use" in error.explanation), (409, True))
    else:
        raise AssertionError("it passed")
    equal(client.containers.list(filters={"label": "conformance=yes"}), [])
    box.start()
    box.reload()
    equal((box.status, box.labels, box.attrs["State"]["Running"]), ("running", {"conformance": "yes"}, True))
    found = client.containers.list(filters={"label": "conformance=yes", "status": "running"})
    equal([one.name for one in found], [NAME])


@check("a mount of nothing is refused")
def _(client, _):
    try:
        client.containers.create("debian:12", IDLE, mounts=[Mount("/mnt/x", "/nowhere/at/all", type="bind")])
    except docker.errors.APIError as error:
        equal((error.status_code, "does not exist" in error.explanation), (400, True))
    else:
        raise AssertionError("it passed")


@check("a command's outputs come apart, with its code")
def _(client, folder):
    box = client.containers.get(NAME)
    done = box.exec_run(["sh", "-c", "pwd; echo $GREETING; echo bad >&2; echo x > file; exit 3"], demux=True)
    equal((done.exit_code, done.output), (3, (b"/mnt/data\nhello\n", b"bad\n")))
    equal(pathlib.Path(folder, "file").read_text(), "x\n")
    done = box.exec_run(["sh", "-c", "echo $ONE; cat /mnt/sealed/file; touch /mnt/sealed/y /y"], environment={"ONE": "1"})
    equal((done.output.startswith(b"1\nx\n"), done.output.count(b"Read-only file system")), (True, 2))


@check("a large output comes whole, in its frames")
def _(client, _):
    box = client.containers.get(NAME)
    out, err = box.exec_run(["sh", "-c", "head -c 3000000 /dev/zero; head -c 1000 /dev/zero >&2"], demux=True).output
    equal((len(out), len(err)), (3000000, 1000))


@check("a command is looked at while it runs and after it, and is not started twice")
def _(client, _):
    made = client.api.exec_create(NAME, ["sleep", "0.3"])["Id"]
    equal(client.api.exec_inspect(made)["Running"], False)
    client.api.exec_start(made, detach=True)
    equal(client.api.exec_inspect(made)["Running"], True)
    while client.api.exec_inspect(made)["Running"]:
        pass
    equal(client.api.exec_inspect(made)["ExitCode"], 0)
    try:
        client.api.exec_start(made)
    except docker.errors.APIError as error:
        equal(error.status_code, 409)
    else:
        raise AssertionError("it passed")


@check("a network is made with its options, once")
def _(client, _):
    options = {"com.docker.network.bridge.enable_icc": "false"}
    made = client.networks.create("conformance", driver="bridge", options=options)
    equal(client.networks.get("conformance").attrs["Options"], options)
    try:
        client.networks.create("conformance", driver="bridge")
    except docker.errors.APIError as error:
        equal(error.status_code, 409)
    else:
        raise AssertionError("it passed")
    equal(made.name, "conformance")


@check("a container that runs is removed by force only, and then it is gone")
def _(client, _):
    box = client.containers.get(NAME)
    try:
        box.remove()
    except docker.errors.APIError as error:
        equal(error.status_code, 409)
    else:
        raise AssertionError("it passed")
    box.remove(force=True)
    try:
        client.containers.get(NAME)
    except docker.errors.NotFound:
        pass
    else:
        raise AssertionError("it is there")


@check("one that is to be removed at its end is gone when it is killed")
def _(client, _):
    box = client.containers.run("debian:12", IDLE, name=NAME, detach=True, auto_remove=True, network_mode="none")
    box.kill()
    equal(client.containers.list(all=True), [])


async def main():
    client = docker.DockerClient(base_url=sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        return await run("docker", client, folder)


sys.exit(asyncio.run(main()))
