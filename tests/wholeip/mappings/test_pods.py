"""Which endpoints count as Pods of their namespace, by reference and by the Pod's own status."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.kit.wholeip_objects import READY, endpoint_slice, ip, pod
from wholeip.mappings.endpoints import candidates
from wholeip.mappings.pods import PODS, KnownPods, PodObject, Proof, addresses_of

POD, OTHERS = "10.0.0.1", "10.0.0.2"
OWN = {"kind": "Pod"}


@pytest.mark.parametrize(
    ("target", "proof", "accepted"),
    [
        pytest.param(OWN, Proof.REFERENCED, True, id="a Pod of the namespace"),
        pytest.param(None, Proof.REFERENCED, False, id="no targetRef: written by hand"),
        pytest.param({"kind": "Pod", "namespace": "other"}, Proof.REFERENCED, False, id="a Pod of another namespace"),
        pytest.param({"kind": "Pod", "namespace": ""}, Proof.REFERENCED, True, id="no namespace: the slice's own"),
        pytest.param({"kind": "Pod", "namespace": None}, Proof.REFERENCED, True, id="null: the slice's own"),
        pytest.param({"kind": "Node", "namespace": ""}, Proof.REFERENCED, False, id="a Node of no namespace"),
        pytest.param({"kind": "Pod", "namespace": "", "name": ""}, Proof.REFERENCED, False, id="neither is stated"),
        pytest.param({"kind": "Pod", "name": ""}, Proof.REFERENCED, False, id="a Pod without a name"),
        pytest.param({"kind": "Node"}, Proof.REFERENCED, False, id="a Node"),
        pytest.param({"kind": "Service"}, Proof.REFERENCED, False, id="a Service"),
        pytest.param({"kind": "pod"}, Proof.REFERENCED, False, id="no kind that exists"),
        pytest.param({}, Proof.REFERENCED, False, id="no kind"),
        pytest.param(None, Proof.ANY, True, id="any: no targetRef"),
        pytest.param({"kind": "Pod", "namespace": "other"}, Proof.ANY, True, id="any: another namespace"),
        pytest.param(OWN, Proof.VERIFIED, True, id="verified: the Pod has it"),
        pytest.param(None, Proof.VERIFIED, False, id="verified: no targetRef"),
        pytest.param({"kind": "Pod", "namespace": "other"}, Proof.VERIFIED, False, id="verified: another namespace"),
        pytest.param({"kind": "Pod", "namespace": ""}, Proof.VERIFIED, True, id="verified: no namespace"),
        pytest.param(
            {"kind": "Pod", "namespace": "", "name": "second"},
            Proof.VERIFIED,
            False,
            id="verified: no namespace, a Pod with another address",
        ),
        pytest.param({"kind": "Pod", "name": "absent"}, Proof.VERIFIED, False, id="verified: no such Pod"),
        pytest.param(
            {"kind": "Pod", "name": "second"}, Proof.VERIFIED, False, id="verified: a Pod with another address"
        ),
    ],
)
def test_an_endpoint_needs_its_pod(target: Any, proof: Proof, accepted: bool) -> None:
    known = KnownPods(proof)
    known.change(
        {
            "default/vm-pod": pod("vm-pod", POD),
            "default/second": pod("second", OTHERS),
            "other/vm-pod": pod("vm-pod", POD, namespace="other"),
        }
    )
    found = candidates([endpoint_slice("vm", (POD, READY), target=target)], 4, known)
    assert [str(one.address) for one in found.ready] == ([POD] if accepted else [])
    assert (found.foreign == ()) is accepted
    assert found.addresses == ({ip(POD)} if accepted else set()), "it must not count as a pod's address either"


def test_the_address_of_another_tenants_pod_is_not_taken_with_a_reference_to_an_own_one() -> None:
    known = KnownPods(Proof.VERIFIED)
    known.change({"default/vm-pod": pod("vm-pod", POD), "victim/db": pod("db", OTHERS, namespace="victim")})
    forged = endpoint_slice("vm", (OTHERS, READY))
    found = candidates([forged], 4, known)
    assert found.ready == ()
    assert found.foreign == ("10.0.0.2: the Pod default/vm-pod has another address",)


def test_the_refusal_names_the_flag() -> None:
    found = candidates([endpoint_slice("vm", (POD, READY), target=None)], 4)
    assert found.describe_none() == (
        "no pod is ready; 10.0.0.1: its targetRef is no Pod of the namespace default; --endpoints any accepts it"
    )


@pytest.mark.parametrize(
    ("found", "addresses"),
    [
        pytest.param(pod("p", POD, "2001:db8::1"), {POD, "2001:db8::1"}, id="two families"),
        pytest.param(pod("p", "010.0.0.01"), {POD}, id="leading zeros"),
        pytest.param(pod("p", POD, phase=None), {POD}, id="no phase"),
        pytest.param(pod("p", POD, host_network=False), {POD}, id="a network of its own"),
        pytest.param(pod("p", POD, host_network=True), set(), id="in its node's network"),
        pytest.param(pod("p", POD, phase="Succeeded"), set(), id="succeeded: another Pod may have it now"),
        pytest.param(pod("p", POD, phase="Failed"), set(), id="failed: another Pod may have it now"),
        pytest.param(pod("p"), set(), id="none yet"),
        pytest.param(pod("p", "", "x", "127.0.0.1", "169.254.1.1"), set(), id="no addresses of a pod"),
        pytest.param(Unreadable(ObjectMeta("p", "default"), "bad"), set(), id="unreadable"),
    ],
)
def test_the_addresses_that_a_pod_has_for_itself(found: Any, addresses: set[str]) -> None:
    assert addresses_of(found) == {ip(one) for one in addresses}


@pytest.mark.parametrize(
    ("status", "addresses"),
    [
        pytest.param({"podIP": POD}, {POD}, id="no list"),
        pytest.param({"podIP": POD, "podIPs": None}, {POD}, id="null"),
        pytest.param({"podIP": POD, "podIPs": []}, {POD}, id="an empty list"),
        pytest.param({"podIP": POD, "podIPs": [{"ip": POD}, {"ip": "2001:db8::1"}]}, {POD, "2001:db8::1"}, id="both"),
        pytest.param({"podIP": OTHERS, "podIPs": [{"ip": POD}]}, {POD}, id="the list counts"),
        pytest.param({"podIP": ""}, set(), id="empty"),
        pytest.param({"podIP": None}, set(), id="null alone"),
        pytest.param({"podIP": "127.0.0.1"}, set(), id="no address of a pod"),
        pytest.param({"podIP": POD, "phase": "Failed"}, set(), id="failed"),
    ],
)
def test_a_pod_may_have_its_address_outside_of_the_list(status: Any, addresses: set[str]) -> None:
    found = msgspec.convert({"metadata": {"name": "p", "namespace": "default"}, "status": status}, PodObject)
    assert addresses_of(found) == {ip(one) for one in addresses}


def test_a_change_concerns_the_slices_that_refer_to_the_pod() -> None:
    known = KnownPods(Proof.VERIFIED)
    four, six = endpoint_slice("vm", (POD, READY)), endpoint_slice("vm", ("2001:db8::1", READY), family="IPv6")
    known.refer("default/four", None, four)
    known.refer("default/six", None, six)
    assert known.change({"default/vm-pod": pod("vm-pod", POD)}) == {"default/four", "default/six"}
    assert known.change({"default/vm-pod": pod("vm-pod", POD)}) == set(), "nothing is different"
    known.refer("default/four", four, None)
    assert known.change({"default/vm-pod": None, "default/x": pod("x", OTHERS)}) == {"default/six"}


def test_pods_are_read_everywhere() -> None:
    assert PODS.path == "/api/v1/pods"
    assert not PODS.optional, "without the right nothing is verified, so nothing changes"


def test_a_reference_that_is_longer_than_names_are_is_that_of_no_pod() -> None:
    longest, known = "x" * 253, KnownPods(Proof.VERIFIED)
    known.change({f"default/{longest}": pod(longest, POD)})
    for name, accepted in ((longest, True), ("x" * 200_000, False)):
        target = {"kind": "Pod", "name": name}
        found = candidates([endpoint_slice("vm", (POD, READY), target=target)], 4, known)
        assert bool(found.ready) is accepted
        assert len(found.describe_none()) < 400
