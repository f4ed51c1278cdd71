"""Steps of the scene `metallb` with Switchback: what MetalLB does to its addresses costs pods nothing.

The law: as in scenes.py. Visitors depend on the announced address, so what they lose is counted beside it and reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final

from tests.cluster.acting import remove, seen_by_nginx, under_load
from tests.cluster.stage import Stage
from tests.cluster.steps.balancer import CONTROLLER, visit
from tests.cluster.steps.steering import decisions, is_steered
from tests.cluster.world import metallb
from tests.cluster.world.metallb_acting import (
    HOST,
    PAGE,
    URL,
    address_of,
    expect_announced,
    expect_neighbour,
    expect_refused,
    give,
    until_visitors,
)
from tests.cluster.world.metallb_front import in_the_way, start_front, with_own_address
from tests.deploy.manifests import INSTALLATION

AWAY: Final = "switchback.dev/no-speaker"
"""A taint of the scene, so that a killed speaker does not come back."""


def speaker_dies(stage: Stage) -> None:
    """SIGKILL of the announcing speaker: another node has the address, and no request of a pod fails."""
    known = metallb.hardware_addresses(stage)
    first = metallb.announcer(stage, CONTROLLER)
    other = next(name for name in known if name != first)

    def act() -> None:
        stage.kubectl("taint", "node", first, f"{AWAY}=:NoSchedule")
        begun = time.monotonic()
        kill_speaker(stage, first)
        stage.eventually("the other node", lambda: metallb.announcer(stage, CONTROLLER) == other, seconds=60)
        stage.say(f"{other} announces the address {time.monotonic() - begun:.1f} s after the speaker of {first} died")
        until_visitors(stage)
        expect_announced(stage, CONTROLLER)
        stage.kubectl("taint", "node", first, f"{AWAY}-")
        stage.rolled_out("daemonset/speaker", namespace=metallb.SYSTEM)
        stage.eventually("a node that announces it", lambda: metallb.announcer(stage, CONTROLLER), seconds=60)

    expect_no_request_lost(stage, lambda: beside_visitors(stage, act))
    expect_steered(stage)
    expect_neighbour(stage)


def kill_speaker(stage: Stage, name: str) -> None:
    """End the speaker of a node hard, so that it cannot take leave of the others; the taint keeps it away."""
    node = next(one for one in stage.nodes if one.name == name)
    pod = metallb.speaker_on(stage, name)
    listing = node.run("ps", "ax", "-o", "pid=,comm=").stdout.splitlines()
    (process,) = [line.split()[0] for line in listing if line.split()[1] == "metallb-speaker"]
    node.run("kill", "-KILL", process)
    stage.kubectl("delete", "pod", pod, "-n", metallb.SYSTEM, "--grace-period=0", "--force")


def address_changes(stage: Stage) -> None:
    """MetalLB gives the Service another address: names stay steered, and no request of a pod fails; then back."""
    other = metallb.first_of(stage.at.assigned)

    def act() -> None:
        metallb.configure(stage, web=stage.at.assigned, announced=[metallb.WEB, metallb.OTHERS])
        give(stage, other)
        # The name's owner would change it too; here the proxy takes the former address.
        start_front(stage, with_own_address(stage.at.in_url(other)))
        until_visitors(stage)
        until_evidence(stage, other)
        metallb.configure(
            stage, web=f"{stage.at.public}/{stage.at.host_length}", announced=[metallb.WEB, metallb.OTHERS]
        )
        start_front(stage, in_the_way(stage))
        give(stage, stage.at.public)
        until_visitors(stage)
        until_evidence(stage, stage.at.public)

    expect_no_request_lost(stage, act)
    expect_steered(stage)
    expect_neighbour(stage)


def until_evidence(stage: Stage, address: str) -> None:
    """Wait until operate's evidence for the class has this address; it is steered all the time."""

    def has_it() -> bool:
        return address in "\n".join(decisions(stage)["nginx"]["evidence"])

    lasted = stage.eventually(f"evidence with {address}", has_it, seconds=90)
    stage.say(f"operate's evidence has {address} {lasted:.1f} s later")
    stage.say("\n".join(f"  {line}" for line in decisions(stage)["nginx"]["evidence"]))


def expect_no_request_lost(stage: Stage, act: Callable[[], None]) -> None:
    """No request of a pod by the name fails during an action."""
    said = under_load(stage, "http", URL, act=act)
    stage.expect("results of requests of pods", saw=set(said), wanted={"ok"})


def beside_visitors(stage: Stage, act: Callable[[], None]) -> None:
    """Report what visitors lose meanwhile, which is MetalLB's own."""
    over, lost = Event(), []

    def ask() -> int:
        count = 0
        while not over.is_set():
            count += 1
            if visit(stage, HOST) != PAGE:
                lost.append(time.monotonic())
        return count

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            act()
        finally:
            over.set()
        count = asking.result()
    span = lost[-1] - lost[0] if lost else 0.0
    stage.say(f"visitors outside: {count} requests, {len(lost)} without a page, within {span:.1f} s")


def expect_steered(stage: Stage) -> None:
    """The names are answered with the relay, and nginx sees the pod."""
    stage.expect("whether it is steered", saw=is_steered(stage), wanted=True)
    stage.expect("the answer", saw=stage.dig(HOST), wanted=[stage.relay_address()])
    path = f"pod-{time.monotonic_ns()}"
    stage.expect("a pod's page", saw=stage.curl(f"{URL}{path}"), wanted=(0, PAGE))
    stage.expect("the client", saw=seen_by_nginx(stage, path).split()[0], wanted=stage.client_address())


def removal_leaves_metallb_alone(stage: Stage) -> None:
    """`deploy/remove.sh`: the fault is back, and MetalLB's Services are as MetalLB made them."""
    remove(stage, INSTALLATION)
    stage.eventually("the public address", lambda: stage.dig(HOST) == [stage.at.public], seconds=60)
    expect_refused(stage)
    until_visitors(stage)
    stage.expect("the address", saw=address_of(stage, CONTROLLER), wanted=stage.at.public)
    expect_neighbour(stage)
