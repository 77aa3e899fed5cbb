"""Drives the simulated Kubernetes API server with the project's own client."""

import asyncio
import sys
import threading
import time

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException
from kubernetes.stream import stream
from kubernetes.stream.ws_client import ERROR_CHANNEL

from checks import check, equal, run

SPACE = "pudu"
IDLE = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"]


def pod(name, labels=None, **spec):
    container = client.V1Container(name="main", image="debian:stable-slim", command=IDLE)
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels or {"app": "check"}),
        spec=client.V1PodSpec(containers=[container], **spec),
    )


def refused(status, call, *given, **named):
    try:
        call(*given, **named)
    except ApiException as error:
        # An exec's handshake that is refused is told in words only.
        found = error.status or int(error.reason.split("Handshake status ")[1][:3])
        equal(found, status)
        return error
    raise AssertionError(f"{status} was expected")


def running(core, name):
    for _ in range(200):
        found = core.read_namespaced_pod(name, SPACE)
        if found.status.phase == "Running":
            return found
        time.sleep(0.05)
    raise AssertionError(f"{name} does not run: {found.status}")


def execute(core, name, command, **how):
    how = {"stdout": True, "stderr": True, "stdin": False, "tty": False, **how}
    return stream(core.connect_get_namespaced_pod_exec, name, SPACE, command=command, **how)


@check("the version and the groups are told")
def _(core):
    equal(client.VersionApi(core.api_client).get_code().git_version, "v1.35.0")
    groups = client.ApisApi(core.api_client).get_api_versions().groups
    equal([group.name for group in groups], ["networking.k8s.io"])
    equal(core.get_api_resources().resources[1].name, "pods")


@check("without the token nothing is told")
def _(core):
    other = client.Configuration(host=core.api_client.configuration.host)
    refused(401, client.CoreV1Api(client.ApiClient(other)).list_namespaced_pod, SPACE)


@check("a Pod is made, runs, and is there once")
def _(core):
    made = core.create_namespaced_pod(SPACE, pod("one"))
    equal((made.status.phase, made.metadata.namespace), ("Pending", SPACE))
    found = running(core, "one")
    equal([status.name for status in found.status.container_statuses], ["main"])
    equal({one.type: one.status for one in found.status.conditions}["Ready"], "True")
    error = refused(409, core.create_namespaced_pod, SPACE, pod("one"))
    equal("already exists" in error.body, True)


@check("what the API does not take is refused")
def _(core):
    refused(422, core.create_namespaced_pod, SPACE, pod("Not_A_Name"))
    refused(404, core.create_namespaced_pod, "nowhere", pod("two"))
    refused(404, core.read_namespaced_pod, "none", SPACE)
    refused(404, core.delete_namespaced_pod, "none", SPACE)


@check("Pods are listed by their labels and fields")
def _(core):
    core.create_namespaced_pod(SPACE, pod("two", {"app": "other", "tier": "a"}))

    def names(**how):
        return [one.metadata.name for one in core.list_namespaced_pod(SPACE, **how).items]

    equal(names(), ["one", "two"])
    equal(names(label_selector="app=check"), ["one"])
    equal(names(label_selector="app in (other, third),tier"), ["two"])
    equal(names(label_selector="app!=other"), ["one"])
    equal(names(field_selector="metadata.name=two"), ["two"])
    equal([one.metadata.name for one in core.list_pod_for_all_namespaces().items], ["one", "two"])


@check("a watch tells of what is there, what changes, and what goes")
def _(core):
    def change():
        time.sleep(0.3)
        core.create_namespaced_pod(SPACE, pod("three"))
        running(core, "three")
        core.delete_namespaced_pod("three", SPACE)

    threading.Thread(target=change, daemon=True).start()
    seen = []
    for event in watch.Watch().stream(core.list_namespaced_pod, SPACE, timeout_seconds=10):
        if event["object"].metadata.name == "three":
            seen.append((event["type"], event["object"].status.phase))
            if event["type"] == "DELETED":
                break
    equal((seen[0], ("MODIFIED", "Running") in seen, seen[-1][0]), (("ADDED", "Pending"), True, "DELETED"))


@check("a command's outputs come apart, with its code")
def _(core):
    script = "echo out; echo err >&2; exit 7"
    opened = execute(core, "one", ["/bin/sh", "-c", script], _preload_content=False)
    opened.run_forever(timeout=20)
    equal((opened.read_stdout(), opened.read_stderr(), opened.returncode), ("out\n", "err\n", 7))
    opened = execute(core, "one", ["true"], _preload_content=False)
    opened.run_forever(timeout=20)
    equal(opened.returncode, 0)
    equal(execute(core, "one", ["printf", "%s", "grüße"]), "grüße")


@check("a command reads what is sent to it")
def _(core):
    opened = execute(core, "one", ["head", "-n", "1"], stdin=True, _preload_content=False)
    opened.write_stdin("over there\n")
    opened.run_forever(timeout=20)
    equal(opened.read_stdout(), "over there\n")


@check("a large output is whole")
def _(core):
    said = execute(core, "one", ["/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"])
    equal(len(said), 3000000)


@check("what cannot be run is told on the error channel, and what is not there by a status")
def _(core):
    opened = execute(core, "one", ["/no/such/program"], _preload_content=False)
    opened.run_forever(timeout=20)
    equal("Failure" in opened.read_channel(ERROR_CHANNEL), True)
    refused(404, execute, core, "none", ["true"])
    refused(400, execute, core, "one", ["true"], container="other")


@check("a command goes on when its connection goes, and sees no other Pod's processes")
def _(core):
    opened = execute(core, "one", ["/bin/sh", "-c", "echo begun; sleep 98790001"], _preload_content=False)
    while not opened.peek_stdout():
        opened.update(timeout=1)
    opened.close()
    look = ["/bin/sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep [9]8790001' || true"]
    equal(int(execute(core, "one", look)) > 0, True)
    running(core, "two")
    equal(execute(core, "two", look), "0\n")


@check("an image that cannot be had and a claim that is not there keep a Pod back")
def _(core):
    claim = client.V1PersistentVolumeClaimVolumeSource(claim_name="none")
    core.create_namespaced_pod(SPACE, pod("four", volumes=[client.V1Volume(name="v", persistent_volume_claim=claim)]))
    for _ in range(100):
        conditions = core.read_namespaced_pod("four", SPACE).status.conditions
        if conditions:
            break
        time.sleep(0.05)
    equal((conditions[0].type, conditions[0].status, conditions[0].reason), ("PodScheduled", "False", "Unschedulable"))


@check("a policy without rules takes the network from the Pods that it selects")
def _(core):
    policy = client.V1NetworkPolicy(
        metadata=client.V1ObjectMeta(name="cut-off"),
        spec=client.V1NetworkPolicySpec(
            pod_selector=client.V1LabelSelector(match_labels={"cut": "off"}), policy_types=["Ingress", "Egress"]
        ),
    )
    networking = client.NetworkingV1Api(core.api_client)
    networking.create_namespaced_network_policy(SPACE, policy)
    equal(refused(409, networking.create_namespaced_network_policy, SPACE, policy).status, 409)
    equal([one.metadata.name for one in networking.list_namespaced_network_policy(SPACE).items], ["cut-off"])
    core.create_namespaced_pod(SPACE, pod("five", {"cut": "off"}))
    running(core, "five")
    count = ["/bin/sh", "-c", "tail -n +3 /proc/net/dev | wc -l"]
    equal(int(execute(core, "five", count)), 1)


@check("a Pod that is deleted has some grace, or none")
def _(core):
    gone = core.delete_namespaced_pod("two", SPACE)
    equal(gone.metadata.deletion_timestamp is not None, True)
    core.delete_namespaced_pod("one", SPACE, grace_period_seconds=0)
    refused(404, core.read_namespaced_pod, "one", SPACE)
    time.sleep(0.3)
    refused(404, core.read_namespaced_pod, "two", SPACE)


async def main():
    url, token = sys.argv[1:3]
    settings = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sim",
        "clusters": [{"name": "sim", "cluster": {"server": url}}],
        "users": [{"name": "sim", "user": {"token": token}}],
        "contexts": [{"name": "sim", "context": {"cluster": "sim", "user": "sim"}}],
    }
    config.load_kube_config_from_dict(settings)
    return await run("kubernetes", client.CoreV1Api())


sys.exit(asyncio.run(main()))
