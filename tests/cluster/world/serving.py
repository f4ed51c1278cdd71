"""What is shown of each controller: who is served, by which protocols, as whom, and what an upgrade costs.

The law: as in scenes.py; each function reports what it saw, and raises StepFailed for anything else.
"""

from __future__ import annotations

import json
import time
from functools import partial

from tests.cluster.acting import manifest, under_load
from tests.cluster.stage import Stage, StepFailed
from tests.cluster.steps.diagnosing import findings
from tests.cluster.steps.steering import LONGEST, decisions, until_steered
from tests.cluster.world.controller import HTTPS, MANIFESTS, Controller
from tests.cluster.world.front import start_front, visit_front


def bring_backends(stage: Stage) -> None:
    """A backend for every protocol, a client's pod, and the hosts' certificate; a second time changes nothing."""
    stage.kubectl("apply", "-f", "-", given=manifest(stage, "speaker.yaml", folder=MANIFESTS))
    bring_certificate(stage, "default")
    stage.rolled_out("deployment/speaker", namespace="default")
    stage.kubectl("wait", "pod/asking", "--for=condition=Ready", "--timeout=120s")


def bring_certificate(stage: Stage, namespace: str) -> None:
    """The Secret `tls` of the scene's certificate."""
    pair = [f"--cert={stage.folder}/tls.crt", f"--key={stage.folder}/tls.key"]
    command = ("create", "secret", "tls", "tls", "-n", namespace, *pair, "--dry-run=client", "-o", "json")
    stage.apply(json.loads(stage.kubectl(*command)))


def open_to_visitors(stage: Stage, one: Controller, *, plain: tuple[int, ...] = ()) -> None:
    """A load balancer with the header, except on plain ports; a visitor outside is served over it."""
    start_front(stage, one, plain=plain)
    expect_visitors(stage, one)


def expect_visitors(stage: Stage, one: Controller) -> None:
    """A visitor gets the pages over HTTP and HTTPS, and the backend sees the visitor's own address."""
    wanted = one.page(stage.at.of(one.name))

    def sees(url: str) -> bool:
        return visit_front(stage, one, url) == wanted

    for url in (f"http://{one.pages}/", f"https://{one.pages}/"):
        stage.eventually(f"a visitor's page {url}", partial(sees, url), seconds=90)
    stage.say(f"a visitor at {stage.at.of(one.name)}: {wanted}")


def expect_refused(stage: Stage, one: Controller) -> None:
    """A pod is served by none of the protocols, once kube-proxy knows the address: until then it dials the balancer."""
    stage.eventually("the short circuit", lambda: speak(stage, one, one.protocols[0])[0] != 0, seconds=60)
    for protocol in one.protocols:
        status, said = speak(stage, one, protocol)
        stage.say(f"{protocol}: {said}")
        if status == 0:
            raise StepFailed(f"{protocol} works: there is no fault to fix")


def expect_served(stage: Stage, one: Controller) -> None:
    """A pod is served by every protocol, and the controller's log and the backend have the pod's own address."""
    client = stage.client_address("asking")
    for protocol in one.protocols:
        stage.eventually(
            f"{protocol} by name",
            lambda protocol=protocol: speak(stage, one, protocol)[0] == 0,  # type: ignore[misc]
            seconds=60,
        )
        stage.say(f"{protocol}: {speak(stage, one, protocol)[1]}")
    wanted = f"ok {one.page(client)}"
    stage.eventually(f"the page: {wanted}", lambda: speak(stage, one, HTTPS)[1] == wanted, seconds=30)
    path = f"/seen-{time.monotonic_ns()}"
    stage.expect("a page with a path", saw=speak(stage, one, HTTPS, path=path)[0], wanted=0)
    stage.eventually(f"{path} in the access log", lambda: one.client_in(access_log(stage, one), path), seconds=30)
    seen = one.client_in(access_log(stage, one), path)
    stage.say(f"the access log has the client {seen}")
    stage.expect("the client in the access log", saw=seen, wanted=client)


def expect_diagnosis(stage: Stage, one: Controller, finding: str, *words: str, wanted: int) -> None:
    """The doctor has this finding for the controller's pages, and its evidence has these words."""
    found = findings(stage, one.pages, wanted=wanted)
    told = found.get(finding)
    if told is None:
        raise StepFailed(f"the doctor found {sorted(found)}")
    stage.say("\n".join([told["text"], *told["evidence"]]))
    stage.expect("words that are missing", saw=[word for word in words if word not in json.dumps(told)], wanted=[])


def expect_fault(stage: Stage, one: Controller, setting: str) -> None:
    """Pods are refused by every protocol, and the doctor names the short circuit and the controller's setting."""
    expect_refused(stage, one)
    expect_diagnosis(stage, one, "short-circuited", setting, wanted=1)


def expect_cure(stage: Stage, one: Controller) -> None:
    """The controller is steered to the relay; pods are served as who they are, and visitors as before."""
    until_steered(stage, one.subject)
    public = [stage.at.of(one.name)]
    stage.eventually(
        "the relay's address from every CoreDNS",
        lambda: all(stage.dig(one.pages) not in ([], public) for _ in range(20)),
        seconds=60,
    )
    expect_served(stage, one)
    expect_visitors(stage, one)


def expect_left_alone(stage: Stage, one: Controller) -> None:
    """The controller is looked at and not steered: its names have the public address, and pods are served at it."""
    until_decided(stage, one, "nothing")
    stage.everywhere(one.pages, stage.at.of(one.name))
    expect_served(stage, one)
    expect_visitors(stage, one)


def until_decided(stage: Stage, one: Controller, decision: str) -> None:
    """Wait for one decision about the controller, and report it with its evidence."""

    def has_it() -> bool:
        row = decisions(stage).get(one.subject, {})
        # A controller that is let go keeps its names for some seconds.
        return row.get("decision") == decision and not row["steered"]

    lasted = stage.eventually(f"the decision {decision} for {one.subject}", has_it, seconds=LONGEST)
    row = decisions(stage)[one.subject]
    stage.say(f"{one.subject} after {lasted:.1f} s: {decision}")
    stage.say("\n".join(f"  {line}" for line in row["evidence"]))


def expect_free_upgrade(stage: Stage, one: Controller) -> None:
    """The controller is rolled out under load: no request of a pod fails."""

    def act() -> None:
        for workload in one.workloads:
            stage.kubectl("rollout", "restart", workload, "-n", one.namespace)
            stage.rolled_out(workload, namespace=one.namespace)

    said = under_load(stage, "paced-http", f"http://{one.pages}/", act=act)
    stage.expect("results of requests", saw=set(said), wanted={"ok"})


def speak(stage: Stage, one: Controller, protocol: str, *, path: str = "") -> tuple[int, str]:
    """Ask by one protocol from the pod `asking`: exit status and answer."""
    command, url = one.asks(protocol)
    return stage.client(
        "/bin/speaker", command, url.removesuffix("/") + path if path else url, "/client/ca.crt", pod="asking"
    )


def access_log(stage: Stage, one: Controller) -> str:
    """The last lines of the access log, of every pod."""
    return stage.kubectl("logs", "-n", one.namespace, *one.log, "--tail=200")
