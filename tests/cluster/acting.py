"""Actions of steps on the scene: load, restart, kill.

The law: each waits for its own end, and reports what it saw.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.cluster.addresses import WORLD
from tests.cluster.stage import Stage
from tests.deploy.kubectl import LABEL
from tests.deploy.manifests import DEPLOY, INSTALLATION, compose
from tests.kit.programs import program

MANIFESTS: Final = Path(__file__).parent / "manifests"
PLAIN: Final = """
configMapGenerator:
  - name: dnsproxy-settings
    namespace: switchback
    behavior: merge
    literals:
      - DNSPROXY_TARGET_FOR=plain=service:ingress-nginx/plain
      - DNSPROXY_TRUST=plain.example.org
"""


def manifest(stage: Stage, name: str, *, folder: Path = MANIFESTS, **more: str) -> str:
    """A manifest of the scene, with this cluster's values. Client and controller are as far apart as can be."""
    values = {
        "CLIENT_NAME": "client",
        "CLUSTER_DNS": stage.at.dns,
        "CLUSTER_RESOLVER": stage.at.in_url(stage.at.dns),
        "CONTROLLER_NODE": stage.nodes[0].name,
        "CLIENT_NODE": stage.nodes[-1].name,
    }
    text = (folder / name).read_text(encoding="utf-8")
    for word, value in (values | more).items():
        text = text.replace(word, json.dumps(value))
    return text


def kustomization(stage: Stage, name: str, *components: str) -> Path:
    """The folder of an owner's kustomization: the installation, the second ingress class, and components."""
    folder = stage.folder / name
    folder.mkdir(exist_ok=True)
    chosen = [DEPLOY / "components" / one for one in components]
    return compose(folder, with_components=chosen, base=INSTALLATION, more=PLAIN)


def under_load(stage: Stage, what: str, *words: str, act: Callable[[], None]) -> dict[str, int]:
    """The counts of load.py in the client's pod, from before an action until after it."""
    (counted,) = under_loads(stage, [(what, *words)], act=act)
    return counted


def under_loads(
    stage: Stage, loads: Sequence[Sequence[str]], *, act: Callable[[], None], pod: str = "client"
) -> list[dict[str, int]]:
    """The counts of several load.py side by side in a pod, from before an action until after it."""
    # The pod keeps the files of an earlier load.
    run = time.monotonic_ns()
    stop = f"/tmp/stop-{run}"  # noqa: S108  # in a pod

    def play(number: int, words: Sequence[str]) -> str:
        what, *rest = words
        command = f"touch /tmp/begun-{run}-{number}; exec python3 /client/load.py {' '.join([what, stop, *rest])}"
        status, said = stage.client("sh", "-c", command, pod=pod)
        stage.say(f"load.py {' '.join(words)}: {said}")
        stage.expect("load.py", saw=status, wanted=0)
        return said

    with ThreadPoolExecutor(len(loads)) as pool:
        playing = [pool.submit(play, number, words) for number, words in enumerate(loads)]
        begun = [f"/tmp/begun-{run}-{number}" for number in range(len(loads))]  # noqa: S108  # in a pod
        try:
            for file, load in zip(begun, playing, strict=True):
                stage.eventually(
                    "the load",
                    lambda file=file, load=load: stage.client("test", "-e", file, pod=pod)[0] == 0 or load.done(),  # type: ignore[misc]
                )
            act()
        finally:
            stage.client("touch", stop, pod=pod)
        return [json.loads(load.result())["said"] for load in playing]


def restart(stage: Stage, workload: str) -> None:
    """Restart a workload, and wait until the rollout is complete."""
    begun = time.monotonic()
    stage.kubectl("rollout", "restart", workload, "-n", "switchback")
    stage.rolled_out(workload)
    stage.say(f"{workload} was restarted in {time.monotonic() - begun:.0f} s")


def forget_release(stage: Stage) -> None:
    """Delete what the guide names after `kubectl apply -k` has taken over from the chart: Helm forgets the release."""
    stage.kubectl("delete", "secret", "-n", "default", "--selector", "owner=helm,name=switchback")
    stage.kubectl("delete", "configmap", "-n", "switchback", "dnsproxy-settings", "relay-settings", "operate-settings")


def remove(stage: Stage, folder: Path) -> None:
    """Run `deploy/remove.sh` for a folder: it succeeds, and the Corefile is the original, octet for octet."""
    environment = {**os.environ, "KUBECTL": f"{program('kubectl')} --kubeconfig={stage.node.folder}/kubeconfig"}
    command = stage.node.inside(str(DEPLOY / "remove.sh"), str(folder))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    stage.say((done.stdout + done.stderr).strip())
    stage.expect("remove.sh", saw=done.returncode, wanted=0)
    stage.expect("the Corefile", saw=stage.corefile(), wanted=stage.before["corefile"])


def labelled(stage: Stage) -> list[str]:
    """Every object of ours, of whatever kind."""
    listed = stage.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    # A CNI's own records of pods have the pods' labels; the CNI removes them itself.
    kinds = ",".join(one for one in listed if not one.endswith(".cilium.io"))
    return stage.kubectl("get", kinds, "-A", "-l", LABEL, "-o", "name", "--ignore-not-found").split()


def memory(stage: Stage) -> dict[str, int]:
    """The largest resident memory of each running command of ours, in MB."""
    found: dict[str, int] = {}
    for line in stage.node.run("ps", "ax", "-o", "rss=,args=").stdout.splitlines():
        kilobytes, *words = line.split()
        if len(words) > 1 and words[0].startswith("/app/bin/python"):
            command = " ".join([words[1].rpartition("/")[2], *words[2:3]])
            found[command] = max(found.get(command, 0), int(kilobytes) // 1000)
    return found


def kill_one(stage: Stage, command: str) -> int:
    """SIGKILL the oldest process of a command such as `dnsproxy serve`; the kubelet starts it again. Returns its ID."""
    killed, _ = processes(stage, command)[0]
    stage.node.run("kill", "-KILL", str(killed))
    return killed


def processes(stage: Stage, command: str) -> list[tuple[int, int]]:
    """The processes of a command on the node, the oldest first: their IDs, and their ages in seconds."""
    listing = stage.node.run("ps", "ax", "-o", "pid=,etimes=,args=").stdout.splitlines()
    mine = [line.split()[:2] for line in listing if f"/app/bin/{command}" in line and "/app/bin/python" in line]
    return sorted(((int(process), int(seconds)) for process, seconds in mine), key=lambda one: -one[1])


def seen_by_nginx(stage: Stage, what: str) -> str:
    """The last line of its log that has this text."""
    found: list[str] = []

    def look() -> bool:
        log = stage.kubectl("logs", "deployment/controller", "-n", "ingress-nginx")
        found[:] = [line for line in log.splitlines() if what in line]
        return bool(found)

    stage.eventually(f"{what} in nginx's log", look, seconds=20)
    return found[-1]


def make_certificate(folder: Path) -> None:
    """A certificate for every name of the scene, which is its own authority."""
    names = "subjectAltName=DNS:*.example.org,DNS:*.apps.example.org"
    names += "".join(f",DNS:*.{one}.example.org" for one in WORLD)
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=scene", "-addext", names]
    words += ["-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt")]
    subprocess.run([program("openssl"), *words], check=True, capture_output=True)
