"""Steps of the scene in operation: restarts, crashes, and changes by other programs.

The law: as in steps.py.
"""

from __future__ import annotations

import json
import time
from typing import Final

from tests.cluster.acting import kill_one, kustomization, processes, restart, under_load
from tests.cluster.plan import BRIDGE
from tests.cluster.stage import COREDNS_MAP, Stage, StepFailed
from tests.cluster.steps.load import WORKERS

KEPT: Final = ("publishing", "node-hosts", "external-dns")
"""The components in most of the scene."""
EXPLAIN: Final = ("dnsproxy", "explain", "app.example.org")
SERVE: Final = "dnsproxy serve"
LOOKUPS: Final = 100_000
IN_FLIGHT: Final = 2 * WORKERS
"""Every lookup that is in flight when each of the two pods leaves: kube-proxy deletes a pod's UDP flows, and the kernel
then leads no reply of that pod back to the Service's address."""
KEPT_FLOWS: Final = 32
"""With Cilium, one lookup for each socket that the two CoreDNS have open to the two pods that leave: the agent leads
their packets to a pod until its end, ready or not. pkg/loadbalancer/reflectors/conversions.go, v1.20.2"""
OUTAGE_SECONDS: Final = 60.0
RESTART_SECONDS: Final = 30.0
"""The time for a kubelet to restart a container on a busy machine."""
FORGOTTEN_SECONDS: Final = 130.0
"""A kubelet looks each minute for ConfigMaps that it has not used for a minute, or five times syncFrequency if that is
longer, and no longer follows them. pkg/kubelet/util/manager/watch_based_manager.go, v1.36"""


def no_lookup_is_lost(stage: Stage) -> None:
    """A rolling restart of dnsproxy under load: no lookup of 100,000 is lost, and only those in flight may be late.

    How many those are depends on how busy the machine is: of eight clients of one busy server each loses a reply when
    its flows are deleted, of an idle one hardly any. Of a pod that ends before kube-proxy knows, every new lookup is.
    """
    words = [stage.at.dns, "apps.example.org", stage.relay_address(), str(LOOKUPS)]
    said = under_load(stage, "dns", *words, act=lambda: restart(stage, "deployment/dnsproxy"))
    by_next_upstream = said.pop("another address", 0)
    stage.expect("results of lookups", saw=set(said), wanted={"ok"})
    most = IN_FLIGHT if stage.plan.cni == BRIDGE else KEPT_FLOWS
    if by_next_upstream > most:
        raise StepFailed(f"{by_next_upstream} lookups were answered by the stanza's next upstream")
    if said["ok"] + by_next_upstream < LOOKUPS:
        raise StepFailed(f"only {said['ok']} lookups were sent")


def no_request_is_lost(stage: Stage) -> None:
    """A rolling restart of the relay under load: no request is lost."""
    said = under_load(stage, "http", "http://app.example.org/", act=lambda: restart(stage, "deployment/relay"))
    stage.expect("results of requests", saw=set(said), wanted={"ok"})


def down_relay_costs_nothing(stage: Stage) -> None:
    """The relay is scaled to 0 and back: meanwhile its names are forwarded, and another class is as before.

    Asked of dnsproxy itself: a client sees the change when the answers that CoreDNS holds have expired (5 s).
    """
    relay = stage.relay_address()
    address = stage.get("service", "dnsproxy", "-n", "switchback")["spec"]["clusterIP"]

    def answers(wanted: str, *, server: str = address) -> bool:
        # The Service distributes questions to both pods.
        return all(stage.dig("app.example.org", server=server) == [wanted] for _ in range(20))

    def act() -> None:
        scale(stage, "deployment/relay", 0)
        lasted = stage.eventually(
            "the public address from every dnsproxy", lambda: answers(stage.at.public), seconds=10
        )
        stage.eventually("the same from CoreDNS", lambda: answers(stage.at.public, server=stage.at.dns), seconds=20)
        # The relay's pods serve until the answers have expired; then it is as without us.
        status, said = stage.curl("http://app.example.org/")
        stage.say(f"forwarded {lasted:.1f} s after the scaling; curl: {said}")
        if status == 0:
            raise StepFailed("the page answered without a relay")
        # Its exit status is that of a name without an answer.
        told = stage.node.kubectl("exec", "deployment/dnsproxy", "-n", "switchback", "--", *EXPLAIN, check=False)
        stage.expect("the reason", saw="no endpoint of its target is ready" in told.stdout, wanted=True)
        scale(stage, "deployment/relay", 2)
        stage.eventually("a pod that is ready", lambda: ready_pods(stage, "relay"))
        lasted = stage.eventually("the relay's address from every dnsproxy", lambda: answers(relay), seconds=10)
        stage.say(f"answered {lasted:.1f} s after the first ready pod was seen")
        stage.rolled_out("deployment/relay")

    said = under_load(stage, "http", "http://plain.example.org/", act=act)
    stage.expect("results of requests to the other class", saw=set(said), wanted={"ok"})
    stage.everywhere("app.example.org", relay)
    stage.eventually("the page", lambda: stage.curl("https://app.example.org/")[0] == 0, seconds=60)


def scale(stage: Stage, workload: str, replicas: int) -> None:
    """Set the number of pods."""
    stage.kubectl("scale", workload, "-n", "switchback", f"--replicas={replicas}")


def ready_pods(stage: Stage, deployment: str) -> int:
    """How many pods of a Deployment are ready."""
    return int(stage.get("deployment", deployment, "-n", "switchback")["status"].get("readyReplicas", 0))


def outage_is_survived(stage: Stage) -> None:
    """The API server is away for a minute: dnsproxy keeps answering names, even after a restart.

    While one of two processes is dead, kube-proxy cannot learn that, so its share goes to the stanza's second upstream.
    The controllers are away too: those of kubeadm end when they cannot renew their lease, and start with a new look at
    the nodes. Ones that lived on would take the minute for the end of every kubelet, and of all ready pods.
    """
    relay = stage.relay_address()
    # Its settings must be there also for a container that was started long ago.
    aged = stage.eventually(
        "a container that is old",
        lambda: processes(stage, SERVE)[0][1] > FORGOTTEN_SECONDS,
        seconds=2 * FORGOTTEN_SECONDS,
    )
    stage.say(f"waited {aged:.0f} s for the age of a container")
    before = len(processes(stage, SERVE))
    stage.node.kill("kube-apiserver")
    stage.node.kill("kube-controller-manager")
    begun = time.monotonic()
    killed = kill_one(stage, SERVE)
    said: list[tuple[float, list[str]]] = []
    while time.monotonic() - begun < OUTAGE_SECONDS:
        said.append((time.monotonic() - begun, stage.dig(f"o{len(said)}.apps.example.org")))
        time.sleep(0.02)
    stage.expect("processes of dnsproxy before the API server is back", saw=len(processes(stage, SERVE)), wanted=before)
    stage.node.start("kube-apiserver")
    stage.node.wait_for(stage.node.is_api_ready, "kube-apiserver")
    # It ends if it waits for the API server for 10 s.
    stage.node.start("kube-controller-manager")
    public = [when for when, answer in said if answer == [stage.at.public]]
    lost = [when for when, answer in said if answer not in ([relay], [stage.at.public])]
    stage.say(
        f"{len(said)} lookups in {OUTAGE_SECONDS:.0f} s, {len(lost)} lost; process {killed} of dnsproxy was killed"
    )
    stage.say(f"{len(public)} got the public address, the last after {max(public, default=0):.1f} s")
    stage.expect("lookups lost", saw=lost, wanted=[])
    if max(public, default=0) > RESTART_SECONDS:
        raise StepFailed("a killed dnsproxy was not restarted")
    stage.rolled_out("deployment/dnsproxy")
    stage.ingress("late", "late.example.com")
    lasted = stage.eventually("a new Ingress", lambda: stage.dig("late.example.com") == [relay], seconds=120)
    stage.say(f"an Ingress created afterwards: {lasted:.1f} s")
    # kube-proxy looks again in its own time.
    stage.eventually("the page", lambda: stage.curl("https://app.example.org/")[0] == 0, seconds=60)


def rendered_anew_is_repaired(stage: Stage) -> None:
    """The owner renders the Corefile again: `operate` puts the stanza back at once, with an Event."""
    stage.kubectl("apply", "-k", str(kustomization(stage, "kept", *KEPT)))
    # Ready once the cluster's DNS asks dnsproxy, which is already the case here.
    stage.rolled_out("deployment/operate")
    installed = stage.corefile()
    data = {"data": {"Corefile": stage.before["corefile"]}}
    stage.kubectl("patch", COREDNS_MAP, "-n", "kube-system", "--type=merge", "-p", json.dumps(data))
    lasted = stage.eventually("the stanza", lambda: stage.corefile() == installed, seconds=60)
    stage.say(f"the stanza is back {lasted:.1f} s after kubectl returned")
    stage.eventually("an Event", lambda: "StanzaRepaired" in reasons(stage), seconds=60)
    stage.rolled_out("deployment/operate")
    # A CoreDNS that loaded the other Corefile meanwhile has the public address until it loads again.
    stage.everywhere("app.example.org", stage.relay_address())
    status, said = stage.curl("https://app.example.org/")
    stage.expect("the page", saw=(status, said), wanted=(0, "hello from app.example.org"))


def every_node_has_one(stage: Stage) -> None:
    """The component node-local: dnsproxy as a DaemonSet, asked only by the pods of its node, with primaries for it."""
    stage.kubectl("apply", "-k", str(kustomization(stage, "node-local", *KEPT, "node-local")))
    stage.rolled_out("deployment/dnsproxy-primary", "daemonset/dnsproxy")
    stage.kubectl("delete", "deployment,poddisruptionbudget", "dnsproxy", "-n", "switchback", "--wait")
    # While they end, kube-proxy has rules for them, which a later step would miss.
    stage.eventually("the end of the Deployment's pods", lambda: not stage.ending("switchback"))
    policy = stage.get("service", "dnsproxy", "-n", "switchback")["spec"]["internalTrafficPolicy"]
    stage.expect("the Service's policy", saw=policy, wanted="Local")
    relay = stage.relay_address()
    stage.eventually("its answer", lambda: stage.dig("n1.apps.example.org") == [relay], seconds=60)
    stage.say(stage.kubectl("get", "daemonset,pods", "-n", "switchback", "-l", "app.kubernetes.io/name=dnsproxy"))


def reasons(stage: Stage) -> set[str]:
    """The Events in the namespace of the cluster's DNS."""
    return {one["reason"] for one in stage.get("events.v1.events.k8s.io", "-n", "kube-system")["items"]}
