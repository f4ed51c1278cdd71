"""Steps of the scene `metallb` without Switchback: addresses, the fault, and the truth of the doctor's advice.

The law: as in scenes.py. MetalLB gives every address; `ipMode` is also set where the doctor says that it harms, to see
that it does.
"""

from __future__ import annotations

import shlex
from typing import Final

from tests.cluster.stage import Stage
from tests.cluster.steps.balancer import CONTROLLER, SPACE, visit
from tests.cluster.steps.ip_mode import install_policy, remove_policy
from tests.cluster.world import metallb
from tests.cluster.world.metallb_acting import (
    HOST,
    NEIGHBOUR,
    PAGE,
    URL,
    address_of,
    client_of,
    doctor,
    expect_announced,
    expect_neighbour,
    expect_refused,
    give,
    ip_mode,
    modes,
    neighbour_service,
    restart_metallb,
    shape,
    until_reconciled,
    until_visitors,
)
from tests.cluster.world.metallb_front import by_node_ports, in_the_way, start_front, with_own_address

_HARMS: Final = "no, it would harm: MetalLB passes packets on"


def metallb_runs(stage: Stage) -> None:
    """MetalLB runs from its own manifest: its controller, and a speaker on each node."""
    metallb.install(stage)
    stage.say(stage.kubectl("get", "pods", "-n", metallb.SYSTEM, "-o", "wide"))
    pods = stage.get("pods", "-n", metallb.SYSTEM, "-l", "component=speaker")["items"]
    stage.expect("speakers", saw={one["spec"]["nodeName"] for one in pods}, wanted={one.name for one in stage.nodes})


def metallb_gives_addresses(stage: Stage) -> None:
    """Services get addresses of their pools from MetalLB alone, whose writes have the mode VIP."""
    stage.kubectl("annotate", "service", CONTROLLER, "-n", SPACE, f"{metallb.POOL_ANNOTATION}={metallb.WEB}")
    metallb.configure(stage, web=stage.at.assigned, announced=[metallb.WEB, metallb.OTHERS])
    stage.apply(neighbour_service())
    give(stage, metallb.first_of(stage.at.assigned))
    lasted = metallb.until_address(stage, NEIGHBOUR, SPACE, wanted=metallb.all_of(stage.at.neighbours))
    stage.say(f"the neighbour has an address after {lasted:.1f} s")
    for name in (CONTROLLER, NEIGHBOUR):
        found = stage.get("service", name, "-n", SPACE, "--show-managed-fields")
        stage.say(f"{name}: {metallb.entries_of(found)}, written by {metallb.writers_of(found)}")
        stage.expect("the writers of its status", saw=metallb.writers_of(found), wanted={"metallb-controller"})
        stage.expect("the mode", saw=[one["ipMode"] for one in metallb.entries_of(found)], wanted=["VIP"])
    stage.before["neighbour"] = shape(stage.get("service", NEIGHBOUR, "-n", SPACE))


def proxy_with_its_own_address_is_no_fault(stage: Stage) -> None:
    """A proxy outside with an address of its own dials MetalLB's, whose speaker answers: pods have the page as well."""
    service = address_of(stage, CONTROLLER)
    start_front(stage, with_own_address(stage.at.in_url(service)))
    until_visitors(stage)
    expect_announced(stage, CONTROLLER)
    expect_announced(stage, NEIGHBOUR)
    stage.expect("a pod's page", saw=stage.curl(URL), wanted=(0, PAGE))
    stage.expect("the pod is masqueraded", saw=client_of(stage, f'"{HOST}" 200 http') in stage.edges, wanted=True)
    status, said = stage.curl(URL, "--resolve", f"{HOST}:80:{stage.at.in_url(service)}")
    stage.say(f"a pod at MetalLB's own address: {said}")
    stage.expect("whether it answers there", saw=status == 0, wanted=False)
    doctor(stage, wanted=0)


def address_of_a_balancer_outside_has_the_fault(stage: Stage) -> None:
    """MetalLB gives the address that a balancer outside has, and announces nothing: pods are refused, visitors not."""
    metallb.configure(stage, web=f"{stage.at.public}/{stage.at.host_length}", announced=[metallb.OTHERS])
    give(stage, stage.at.public)
    start_front(stage, by_node_ports(stage))
    until_visitors(stage)
    expect_refused(stage)
    found = doctor(stage, wanted=1)
    stage.expect("the short circuit is found", saw="short-circuited" in found, wanted=True)
    # It cannot know that somebody else has the address.
    ip_mode(stage, "--check", wanted=1, text=_HARMS)


def policy_of_ip_mode_takes_it_away(stage: Stage) -> None:
    """There `ipMode: Proxy` by the policy takes the fault away without us, and MetalLB never writes it back."""
    install_policy(stage)
    restart_metallb(stage)
    stage.eventually("Proxy in MetalLB's own write", lambda: modes(stage) == ["Proxy"], seconds=60)
    lasted = stage.eventually("a pod's page", lambda: stage.curl(URL) == (0, PAGE), seconds=30)
    stage.say(f"a pod has the page {lasted:.1f} s after the status was seen")
    stage.expect("https too", saw=stage.curl(f"https://{HOST}/"), wanted=(0, PAGE))
    doctor(stage, wanted=0)
    until_visitors(stage)
    restart_metallb(stage)
    stage.kubectl("annotate", "service", CONTROLLER, "-n", SPACE, "example.org/edit=1", "--overwrite")
    until_reconciled(stage)
    stage.expect("the mode after a restart and an edit", saw=modes(stage), wanted=["Proxy"])
    stage.expect("a pod's page", saw=stage.curl(URL), wanted=(0, PAGE))
    expect_neighbour(stage)
    remove_policy(stage)
    restart_metallb(stage)
    stage.eventually("VIP in MetalLB's own write", lambda: modes(stage) == ["VIP"], seconds=60)
    expect_refused(stage)


def router_on_the_way_has_the_fault(stage: Stage) -> None:
    """MetalLB announces the public address, and a router on the visitors' way adds the header: pods are refused."""
    metallb.configure(stage, web=f"{stage.at.public}/{stage.at.host_length}", announced=[metallb.WEB, metallb.OTHERS])
    start_front(stage, in_the_way(stage))
    give(stage, stage.at.public)
    until_visitors(stage)
    expect_announced(stage, CONTROLLER)
    stage.expect("the visitor in nginx's log", saw=client_of(stage, f'"{HOST}"'), wanted=stage.at.visitor)
    expect_refused(stage)
    found = doctor(stage, wanted=1)
    stage.expect("the short circuit is found", saw="short-circuited" in found, wanted=True)


def ip_mode_harms_there(stage: Stage) -> None:
    """There `ipMode: Proxy` harms as the doctor says: visitors lose the page, pods gain none; its commands undo it."""
    ip_mode(stage, "--check", wanted=1, text=_HARMS)
    before = stage.get("service", CONTROLLER, "-n", SPACE)["metadata"]["resourceVersion"]
    ip_mode(stage, "--apply", "--rewrite", "--balancer-ends-connections", wanted=1, text="would lose its connections")
    ip_mode(stage, "--watch", "--balancer-ends-connections", wanted=1, text="clients from outside are cut off")
    after = stage.get("service", CONTROLLER, "-n", SPACE)["metadata"]["resourceVersion"]
    stage.expect("the Service after the refusal", saw=after, wanted=before)
    install_policy(stage)
    restart_metallb(stage)
    stage.eventually("Proxy in MetalLB's own write", lambda: modes(stage) == ["Proxy"], seconds=60)
    stage.eventually("no page for visitors", lambda: not visit(stage, HOST), seconds=30)
    status, said = stage.curl(URL)
    stage.say(f"with Proxy visitors have no page, and a pod: {said}")
    stage.expect("whether a pod has it", saw=status == 0, wanted=False)
    finding = doctor(stage, wanted=1)["ip-mode-harms"]
    expect_neighbour(stage)
    for line in finding["steps"][0]["lines"]:
        stage.say(f"as the doctor says: {line}")
        stage.kubectl(*shlex.split(line)[1:])
    stage.expect("the mode", saw=modes(stage), wanted=["VIP"])
    until_visitors(stage)
    expect_refused(stage)
    remove_policy(stage)
    restart_metallb(stage)
    until_reconciled(stage)
    stage.expect("the mode that MetalLB wrote", saw=modes(stage), wanted=["VIP"])
