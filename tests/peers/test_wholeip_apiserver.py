"""The agent as a program between a real API server and a real kernel, in a separate network.

Whatever happens to objects, table or agent: at the end the kernel has the rules for the objects.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.networks import root
from tests.kit.polling import poll_until
from tests.kit.programs import program
from tests.kit.wholeip_objects import LEAVING, NOT_READY, READY, port
from tests.kit.wholeip_world import MERGE, NODE, NODES, PATIENCE, PODS, SERVICES, SLICES, World, running_world
from wholeip.kernel.nft import Nft
from wholeip.mappings.pods import Proof
from wholeip.mappings.services import LABEL

__all__ = ["root"]
pytestmark = [pytest.mark.peer("etcd", "kube-apiserver", "nft", "ip", "nsenter", "unshare"), pytest.mark.timeout(400)]

LB, LB2, LB6 = "192.0.2.1", "192.0.2.2", "2001:db8::1"
POD, POD2, POD6 = "10.0.0.1", "10.0.0.2", "2001:db8:1::1"
NODE_ADDRESS: Final = "192.0.2.200"
API_ADDRESS: Final = "198.51.100.1"
"""The endpoint of the Service kubernetes in this network."""
MEDDLING: Final = (
    "flush ruleset",
    "flush table inet switchback_wholeip",
    "flush map inet switchback_wholeip whole_v4",
    f"add element inet switchback_wholeip whole_v4 {{ 192.0.2.9 : {POD} }}",
    "delete table inet switchback_wholeip",
)


def node_address(text: str) -> dict[str, str]:
    return {"type": "InternalIP", "address": text}


def run_wholeip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wholeip", *arguments], text=True, capture_output=True, check=False, timeout=60
    )


def nft(*arguments: str) -> None:
    subprocess.run([program("nft"), *arguments], check=True)


@pytest.fixture(scope="module")
def running(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:  # noqa: ARG001  # skips who is not
    with running_world(tmp_path_factory.mktemp("wholeip")) as world:
        yield world


@pytest.fixture
def world(running: World) -> Iterator[World]:
    """With a synced agent, and without a Service. The test runs in that network."""
    with watched(running):
        yield running


@pytest.fixture
def older_world(root: None, tmp_path: Path) -> Iterator[World]:  # noqa: ARG001  # as above
    """The same with an API server that checks less."""
    with running_world(tmp_path, version="v1.34.4") as running, watched(running):
        yield running


@contextmanager
def watched(running: World) -> Iterator[None]:
    """A synced agent; what the test put is deleted."""
    with running.network.entered():
        try:
            running.start_agent()
            running.until_in_step()
            running.until_ready()
            yield
            for path in [*running.held]:
                if not path.startswith(NODES):
                    running.delete(path)
        finally:
            running.end_agent()
            trio.run(Nft().delete_table)


def test_objects_are_followed_from_the_first_to_the_last(world: World) -> None:
    world.put_service("vm", LB, LB6)
    world.put_slice("vm", (POD, READY))
    world.until_in_step()
    assert world.wholes() == {LB: POD}
    world.put_slice("vm", (POD6, READY), family="IPv6")
    world.until_in_step()
    assert world.wholes() == {LB: POD, LB6: POD6}
    world.put_slice("vm", (POD, LEAVING), (POD2, READY))
    world.until_in_step()
    assert world.wholes()[LB] == POD2
    world.put_service("vm", LB2)
    world.until_in_step()
    assert world.wholes() == {LB2: POD2}
    world.put_service("vm", LB2, whole=False, ports=[port(80), port(53, "UDP"), port(36412, "SCTP")])
    world.until_in_step()
    present = world.present()
    assert present is not None
    assert present.elements["ports_v4"] == {f"{LB2} . {one}": POD2 for one in ("6 . 80", "17 . 53", "132 . 36412")}
    world.put_slice("vm", (POD2, NOT_READY))
    world.until_in_step()
    # After its last endpoint is gone: some controllers leave such a Service behind.
    world.delete(f"{SERVICES}/vm")
    world.put_slice("vm", (POD2, READY))
    world.until_in_step()
    present = world.present()
    assert present is not None
    assert present.elements["addresses_v4"] == {}


def test_a_label_that_is_taken_off_takes_the_rules_along(world: World) -> None:
    world.put_service("vm", LB)
    world.put_slice("vm", (POD, READY))
    world.until_in_step()
    assert world.wholes() == {LB: POD}
    world.server.request("PATCH", f"{SERVICES}/vm", {"metadata": {"labels": {LABEL: None}}}, content_type=MERGE)
    world.until_in_step()
    assert world.wholes() == {}


def status_of(world: World) -> list[tuple[str, str]]:
    """The reports of the running agent."""
    document = json.loads(world.ask("/mappings"))
    return [(one["service"].removeprefix("default/"), one["reason"]) for one in document["reports"]]


def until_refused(world: World, *expected: tuple[str, str]) -> None:
    """Wait for the reports: what is refused changes no rule, so the rules may be in step before it is read."""
    poll_until(lambda: status_of(world) == [*expected], f"the reports {expected}", seconds=PATIENCE)


def test_addresses_of_the_cluster_are_refused_and_a_neighbour_keeps_its_own(world: World) -> None:
    """The server shows its own address, and the range of Services as a ServiceCIDR."""
    world.put_service("neighbour", LB)
    world.put_slice("neighbour", (POD, READY))
    for number, address in enumerate(("10.96.0.1", "10.96.0.10", "10.96.255.254", "10.0.0.77", API_ADDRESS)):
        world.put_service(f"taken-{number}", address)
        world.put_slice(f"taken-{number}", (POD2, READY))
    world.put_service("foreign", LB2)
    world.put_slice("foreign", ("8.8.8.8", READY))
    world.until_in_step()
    assert world.wholes() == {LB: POD}
    present = world.present()
    assert present is not None
    assert present.elements["egress_v4"] == {POD: LB}
    refused = [(f"taken-{number}", "cluster-address") for number in range(5)]
    until_refused(world, ("foreign", "foreign-endpoint"), *refused)
    assert 'wholeip_services_skipped{reason="cluster-address"} 5.0' in world.ask("/metrics")
    assert "foreign-endpoint" in world.ask("/")
    assert "10.96.0.0/16 has the cluster IPs of Services" in world.log
    printed = run_wholeip("rules", "--kubeconfig", str(world.server.kubeconfig), "--node-name", NODE)
    assert "10.96.0.10" not in printed.stdout
    assert "(cluster-address)" in printed.stderr
    assert "(foreign-endpoint)" in printed.stderr


VICTIM: Final = "10.0.0.99"
BY_HAND: Final[dict[str, tuple[str, dict[str, str] | None]]] = {
    "no-reference": (POD2, None),
    "another-kind": (POD2, {"kind": "Node", "name": NODE}),
    "another-namespace": (VICTIM, {"kind": "Pod", "namespace": "kube-system", "name": "victim"}),
    "outside-the-pods": ("192.168.7.7", {"kind": "Pod"}),
    "a-service": ("10.96.0.1", {"kind": "Pod"}),
    "a-node": (NODE_ADDRESS, {"kind": "Pod"}),
}
"""Endpoints that a tenant may write: address and targetRef."""


def put_by_hand(world: World, name: str, target: dict[str, str] | None, address: str, number: int) -> None:
    world.put_service(name, f"192.0.2.{number}")
    world.put_slice(name, (address, READY), target=target)


def test_endpoints_that_a_tenant_writes_by_hand_get_no_address(world: World) -> None:
    """And they cost a neighbour, whose Pod one of them names, neither its address nor its egress."""
    world.put(NODES, {"metadata": {"name": NODE}, "status": {"addresses": [node_address(NODE_ADDRESS)]}})
    world.put_service("victim", LB)
    world.put_slice("victim", (VICTIM, READY))
    for number, (name, (address, target)) in enumerate(BY_HAND.items(), 10):
        put_by_hand(world, name, target, address, number)
    world.until_in_step()
    assert world.wholes() == {LB: VICTIM}
    expected = {
        "a-node": "protected-address",
        "a-service": "cluster-address",
        **dict.fromkeys(["no-reference", "another-kind", "another-namespace", "outside-the-pods"], "foreign-endpoint"),
    }
    until_refused(world, *sorted(expected.items()))
    assert "--endpoints any accepts it" in world.ask("/mappings")


def test_by_the_flag_endpoints_without_a_reference_get_their_address_as_before(world: World) -> None:
    world.proof = Proof.ANY
    try:
        world.start_agent()
        put_by_hand(world, "by-hand", None, POD2, 10)
        world.until_in_step()
        assert world.wholes() == {"192.0.2.10": POD2}
    finally:
        world.proof = Proof.REFERENCED


def test_the_address_of_another_pod_is_refused_where_pods_are_compared(world: World) -> None:
    """The reference is forged: to a Pod of the tenant's own, which exists, and to one that has ended."""
    world.proof = Proof.VERIFIED
    try:
        world.start_agent()
        world.put_pod("own-pod", POD)
        world.put_pod("forged-pod", POD2)
        world.put_pod("ended-pod", VICTIM, phase="Succeeded")
        for number, (name, address) in enumerate([("own", POD), ("forged", VICTIM), ("ended", VICTIM)], 10):
            put_by_hand(world, name, {"kind": "Pod"}, address, number)
        world.until_in_step()
        assert world.wholes() == {"192.0.2.10": POD}
        until_refused(world, ("ended", "foreign-endpoint"), ("forged", "foreign-endpoint"))
        world.put_pod("own-pod", POD2)
        world.until_in_step()
        assert world.wholes() == {}, "the Pod has lost the address"
    finally:
        world.proof = Proof.REFERENCED


def through_api_server(world: World, path: str, *, host: str) -> tuple[int, str]:
    """As `kubectl get --raw` to a pod's port; `host` is the name by which the client knows the API server."""
    with world.server.connection() as connection:
        headers = {"authorization": f"Bearer {world.server.token}", "host": host}
        connection.request("GET", f"{PODS}/agent:{world.admin}/proxy{path}", headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()


@pytest.mark.parametrize("host", ["api.example.org:6443", "api.example.org", "127.0.0.1:6443"])
def test_the_admin_port_is_read_through_the_api_server_by_whatever_name_that_has(world: World, host: str) -> None:
    world.start_agent("--admin", f"0.0.0.0:{world.admin}")
    world.until_ready()
    world.put_pod("agent", API_ADDRESS)
    for path in ("/mappings", "/", "/readyz", "/metrics"):
        assert through_api_server(world, path, host=host)[0] == 200, path


def test_a_node_is_known_by_every_spelling_that_a_server_takes(older_world: World) -> None:
    """The older server checks neither the addresses of a Node nor the host bits of its networks."""
    world = older_world
    addresses = [{"type": "InternalIP", "address": one} for one in ("::ffff:192.0.2.7", "192.0.002.08")]
    spec = {"podCIDR": "10.0.7.1/24", "podCIDRs": ["10.0.7.1/24", "fd00:7::7/64"]}
    world.put(NODES, {"metadata": {"name": "odd"}, "spec": spec, "status": {"addresses": addresses}})
    for number, address in enumerate(("192.0.2.7", "192.0.2.8", "10.0.7.9")):
        world.put_service(f"taken-{number}", address)
        world.put_slice(f"taken-{number}", (POD, READY))
    world.put_service("vm", LB)
    world.put_slice("vm", ("10.0.7.5", READY))
    world.until_in_step()
    assert world.wholes() == {LB: "10.0.7.5"}
    protected = [(f"taken-{number}", "protected-address") for number in range(2)]
    until_refused(world, *protected, ("taken-2", "cluster-address"))
    world.delete(f"{NODES}/odd")
    world.until_in_step()
    assert world.wholes().keys() >= {"192.0.2.7", "192.0.2.8", "10.0.7.9"}


def test_what_happens_while_no_agent_runs_is_made_up_for_and_nothing_else_is_touched(world: World) -> None:
    for number in (1, 2):
        world.put_service(f"vm{number}", f"192.0.2.{number}")
        world.put_slice(f"vm{number}", (f"10.0.0.{number}", READY))
    world.until_in_step()
    before = world.present()
    world.end_agent()
    assert world.present() == before, "the agent was killed, and the rules stay"
    world.start_agent()
    assert world.until_ready() == "2 mappings of 2 Services\n"
    assert "rules applied" not in world.log.rpartition('"running"')[2], "correct rules are not written again"
    world.end_agent()
    world.delete(f"{SERVICES}/vm1")
    world.start_agent()
    world.until_in_step()
    assert world.wholes() == {LB2: POD2}


def test_changes_of_the_table_by_another_program_are_undone(world: World) -> None:
    world.put_service("vm", LB)
    world.put_slice("vm", (POD, READY))
    world.until_in_step()
    expected = world.expected()
    for count, command in enumerate(MEDDLING, 1):
        nft(command)
        world.until(expected)
        # The metric increases a moment after the kernel's table.
        line = f"\nwholeip_drift_repaired_total {count}.0\n"
        poll_until(lambda line=line: line in world.ask("/metrics"), command, seconds=PATIENCE)  # type: ignore[misc]
    assert world.log.count("another program had changed the table; it is repaired") >= len(MEDDLING)


def test_tables_of_others_are_left_alone(world: World) -> None:
    nft("add table inet others; add chain inet others forward")
    world.put_service("vm", LB)
    world.put_slice("vm", (POD, READY))
    world.until_in_step()
    world.end_agent()
    assert run_wholeip("uninstall").returncode == 0
    listed = subprocess.run([program("nft"), "list", "tables"], capture_output=True, text=True, check=True).stdout
    assert listed.splitlines() == ["table inet others"]
    nft("delete table inet others")


def test_the_rules_stay_while_the_api_server_is_away_and_are_repaired_all_the_same(world: World) -> None:
    world.put_service("vm", LB)
    world.put_slice("vm", (POD, READY))
    world.until_in_step()
    expected = world.expected()
    world.server.kill()
    nft("flush ruleset")
    world.until(expected)
    assert world.until_ready().startswith("1 mappings of 1 Services")
    world.server.start()
    world.put_slice("vm", (POD2, READY))
    world.until_in_step()
    assert world.wholes() == {LB: POD2}


def test_rules_are_printed_for_nft_and_status_and_removal_tell_the_same(world: World) -> None:
    world.put_service("vm", LB)
    world.put_slice("vm", (POD, READY))
    world.put_service("later", LB2)
    world.until_in_step()
    printed = run_wholeip("rules", "--kubeconfig", str(world.server.kubeconfig), "--node-name", NODE)
    assert printed.returncode == 0
    assert "default/later: 192.0.2.2 (IPv4): no pod is ready" in printed.stderr
    subprocess.run([program("nft"), "--check", "--file", "-"], input=printed.stdout, text=True, check=True)
    told = run_wholeip("status", "--admin", f"127.0.0.1:{world.admin}")
    assert told.returncode == 0
    assert told.stdout.splitlines()[1].split() == ["default/vm", LB, POD, "everything", "yes", "here"]
    world.end_agent()
    assert "Would remove" in run_wholeip("uninstall", "--dry-run").stdout
    assert world.present() is not None
    assert "Removed the table inet switchback_wholeip with 1 addresses." in run_wholeip("uninstall").stdout
    assert "nothing to remove" in run_wholeip("uninstall").stdout
    assert world.present() is None
    assert run_wholeip("status", "--admin", f"127.0.0.1:{world.admin}").returncode == 3


def test_sigterm_ends_the_agent_well_and_leaves_the_rules(world: World) -> None:
    world.put_service("vm", LB)
    world.put_slice("vm", (POD, READY))
    world.until_in_step()
    assert world.agent is not None
    world.agent.terminate()
    assert world.agent.wait(timeout=PATIENCE) == 0
    assert world.wholes() == {LB: POD}


_steps = st.one_of(
    st.tuples(st.just("service"), st.sampled_from("ab"), st.sampled_from([LB, LB2]), st.booleans()),
    st.tuples(st.just("slice"), st.sampled_from("ab"), st.sampled_from([POD, POD2]), st.sampled_from([READY, LEAVING])),
    st.tuples(st.just("delete"), st.sampled_from([f"{SERVICES}/a", f"{SLICES}/a-ipv4", f"{SERVICES}/b"])),
    st.tuples(st.sampled_from(["flush", "kill"])),
)


@settings(max_examples=8, deadline=None, database=None)
@given(steps=st.lists(_steps, min_size=4, max_size=12))
def _play(world: World, steps: Any) -> None:
    for kind, *arguments in steps:
        if kind == "service":
            name, address, whole = arguments
            world.put_service(name, address, whole=whole, ports=[port(80 if name == "a" else 81)])
        elif kind == "slice":
            name, pod, condition = arguments
            world.put_slice(name, (pod, condition))
        elif kind == "delete":
            world.delete(*arguments)
        elif kind == "flush":
            nft("flush ruleset")
        else:
            world.start_agent()
    world.until_in_step()


def test_whatever_was_done_the_kernel_has_what_the_objects_come_to(world: World) -> None:
    _play(world)
