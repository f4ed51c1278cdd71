"""What a Service asks for, from objects of the API server and with the mistakes of owners."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.kubernetes.objects import ObjectMeta, Unreadable
from tests.kit.wholeip_objects import WHOLE, port, service, service_manifest, tcp
from wholeip.mappings.mapping import OpenPort
from wholeip.mappings.reports import Reason
from wholeip.mappings.services import Service, read_service, service_collection

LB = "192.0.2.1"
OURS = "switchback.dev/whole-ip"
THEIRS = "networking.cozystack.io/wholeIP"


def told(*arguments: Any, **options: Any) -> list[tuple[str, str]]:
    return [(str(one.reason), one.detail) for one in read_service(service(*arguments, **options)).reports]


@pytest.mark.parametrize(
    ("annotations", "whole", "faults"),
    [
        pytest.param({}, False, 0, id="none: only listed ports"),
        pytest.param({THEIRS: "true"}, True, 0, id="cozystack's"),
        pytest.param({OURS: "true"}, True, 0, id="ours"),
        pytest.param({THEIRS: "false"}, False, 0, id="cozystack's says no"),
        pytest.param({THEIRS: ""}, False, 0, id="empty"),
        pytest.param({THEIRS: "True"}, False, 1, id="a capital letter"),
        pytest.param({THEIRS: "yes"}, False, 1, id="yes"),
        pytest.param({THEIRS: " true"}, False, 1, id="a blank"),
        pytest.param({OURS: "1"}, False, 1, id="ours is 1"),
        pytest.param({OURS: ""}, False, 1, id="ours is empty"),
        pytest.param({OURS: "1", THEIRS: "true"}, True, 1, id="ours means nothing, so cozystack's counts"),
        pytest.param({OURS: "false", THEIRS: "true"}, False, 0, id="ours goes first"),
        pytest.param({OURS: "true", THEIRS: "false"}, True, 0, id="ours goes first, the other way"),
        pytest.param({OURS: "tru\x1be", THEIRS: "TRUE"}, False, 2, id="neither"),
    ],
)
def test_only_an_exact_word_asks_for_the_whole_address(annotations: dict[str, str], whole: bool, faults: int) -> None:
    found = read_service(service("vm", LB, annotations=annotations, ports=(port(80),)))
    assert found.opened == (None if whole else tcp(80))
    assert [one.reason for one in found.reports] == [Reason.BAD_ANNOTATION] * faults


@pytest.mark.parametrize(
    ("annotations", "icmp"),
    [
        pytest.param({}, False, id="none"),
        pytest.param({"networking.cozystack.io/allowICMP": "true"}, True, id="cozystack's"),
        pytest.param({"switchback.dev/allow-icmp": "true"}, True, id="ours"),
        pytest.param({"networking.cozystack.io/allowICMP": "TRUE"}, False, id="a shout"),
        pytest.param({"switchback.dev/allow-icmp": "no"}, False, id="no"),
    ],
)
def test_icmp_comes_in_where_it_is_allowed(annotations: dict[str, str], icmp: bool) -> None:
    assert read_service(service("vm", LB, annotations=annotations, ports=(port(80),))).icmp is icmp


@pytest.mark.parametrize(
    ("ports", "opened", "reasons"),
    [
        pytest.param((port(80),), tcp(80), [], id="TCP"),
        pytest.param((port(53, "UDP"), port(53)), tcp(53) | {OpenPort("udp", 53)}, [], id="TCP and UDP"),
        pytest.param((port(36412, "SCTP"),), {OpenPort("sctp", 36412)}, [], id="SCTP"),
        pytest.param(({"port": 80},), tcp(80), [], id="no protocol is TCP"),
        pytest.param(({"port": 80, "protocol": None},), tcp(80), [], id="a null protocol too"),
        pytest.param((port(80), port(80)), tcp(80), [], id="twice"),
        pytest.param((port(65535),), tcp(65535), [], id="the last port"),
        pytest.param((), frozenset(), ["no-ports"], id="no port"),
        pytest.param(None, frozenset(), ["no-ports"], id="null"),
        pytest.param((port(0), port(80)), tcp(80), ["bad-port"], id="port 0"),
        pytest.param((port(65536),), frozenset(), ["bad-port", "no-ports"], id="port 65536"),
        pytest.param((port(-1),), frozenset(), ["bad-port", "no-ports"], id="a negative port"),
        pytest.param(({"port": None}, None, port(80)), tcp(80), ["bad-port"], id="null ports"),
        pytest.param((port(80, "DCCP"), port(81)), tcp(81), ["bad-port"], id="a protocol of others"),
        pytest.param((port(80, "tcp"),), tcp(80), [], id="small letters"),
        pytest.param((port(80, targetPort=8080),), tcp(80), ["target-port"], id="a port that would be translated"),
        pytest.param((port(80, targetPort=80),), tcp(80), [], id="the same port"),
        pytest.param((port(80, targetPort=0),), tcp(80), [], id="the default"),
        pytest.param((port(80, targetPort="http"),), tcp(80), [], id="a name"),
    ],
)
def test_the_listed_ports_are_opened(ports: Any, opened: frozenset[OpenPort], reasons: list[str]) -> None:
    found = read_service(service("vm", LB, ports=ports))
    assert found.opened == opened
    assert [str(one.reason) for one in found.reports] == reasons


def test_a_whole_address_has_no_ports_to_complain_about() -> None:
    assert told("vm", LB, annotations=WHOLE, ports=(port(80, "DCCP"), port(81, targetPort=82))) == []
    assert told("vm", LB, annotations=WHOLE) == []


@pytest.mark.parametrize(
    ("points", "addresses", "reasons"),
    [
        pytest.param([LB], [LB], [], id="one"),
        pytest.param([LB, "2001:db8::1"], [LB, "2001:db8::1"], [], id="both families"),
        pytest.param(["2001:db8::1", LB], ["2001:db8::1", LB], [], id="IPv6 first"),
        pytest.param([LB, "192.0.2.2"], [LB, "192.0.2.2"], [], id="two of a family"),
        pytest.param([LB, LB], [LB], [], id="one twice"),
        pytest.param(["2001:db8:0::1", "2001:DB8::1"], ["2001:db8::1"], [], id="one in two spellings"),
        pytest.param([{"hostname": "lb.example.org"}, LB], [LB], ["hostname"], id="a name, then an address"),
        pytest.param([{"hostname": "lb.example.org"}], [], ["hostname"], id="only a name"),
        pytest.param([{"ip": LB, "hostname": "lb.example.org"}], [LB], [], id="both in one"),
        pytest.param([], [], ["no-address"], id="none yet"),
        pytest.param([{}], [], ["no-address"], id="an empty entry"),
        pytest.param([{"ip": ""}], [], ["no-address"], id="an empty address"),
        pytest.param([{"ip": "x"}, LB], [LB], ["bad-address"], id="a bad one first"),
        pytest.param(["127.0.0.1"], [], ["bad-address"], id="loopback"),
        pytest.param(["169.254.0.1", "ff02::1"], [], ["bad-address", "bad-address"], id="link-local and multicast"),
        pytest.param([{"ip": LB, "ipMode": "Proxy"}], [], ["bad-address"], id="a proxy keeps the address"),
        pytest.param([{"ip": LB, "ipMode": "VIP"}], [LB], [], id="VIP"),
        pytest.param([{"ip": LB, "ports": [{"port": 80, "protocol": "TCP"}]}], [LB], [], id="with ports"),
    ],
)
def test_all_addresses_of_the_load_balancer_count(points: list[Any], addresses: list[str], reasons: list[str]) -> None:
    found = read_service(service("vm", *points, annotations=WHOLE))
    assert [str(one) for one in found.addresses] == addresses
    assert [str(one.reason) for one in found.reports] == reasons


@pytest.mark.parametrize(
    "status",
    [None, {}, {"loadBalancer": None}, {"loadBalancer": {}}, {"loadBalancer": {"ingress": None}}],
    ids=["null", "empty", "null balancer", "empty balancer", "null ingress"],
)
def test_without_a_status_there_is_no_address_yet(status: Any) -> None:
    assert told("vm", annotations=WHOLE, status=status)[0][0] == "no-address"


def test_an_object_that_cannot_be_read_is_reported_and_asks_for_nothing() -> None:
    found = read_service(Unreadable(ObjectMeta("vm", "default"), "Expected `int`, got `str`"))
    assert (found.key, found.addresses, found.opened) == ("default/vm", (), frozenset())
    assert [one.reason for one in found.reports] == [Reason.UNREADABLE]


def test_a_service_that_was_created_again_has_another_uid() -> None:
    manifest = service_manifest("vm", LB)
    assert read_service(msgspec.convert(manifest, Service)).uid == ""
    manifest["metadata"]["uid"] = "6f1c7d2e"
    assert read_service(msgspec.convert(manifest, Service)).uid == "6f1c7d2e"


def test_the_older_service_goes_first_and_one_without_a_date_last() -> None:
    services = [
        read_service(service(name, LB, created=created))
        for name, created in [("b", "2026-01-02T00:00:00Z"), ("n", None), ("a", "2026-01-02T00:00:00Z"), ("o", "2025")]
    ]
    assert [one.key for one in sorted(services, key=lambda one: one.age)] == [
        "default/o",
        "default/a",
        "default/b",
        "default/n",
    ]


def test_the_label_selects_whatever_its_value() -> None:
    collection = service_collection("cozy-proxy")
    assert collection.label_selector == "service.kubernetes.io/service-proxy-name=cozy-proxy"
    assert collection.path == "/api/v1/services"


_junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@given(
    points=st.lists(st.fixed_dictionaries({}, optional={"ip": _junk, "hostname": _junk, "ipMode": _junk}), max_size=3),
    ports=_junk | st.lists(st.fixed_dictionaries({"port": _junk}, optional={"protocol": _junk}), max_size=3),
    annotations=st.dictionaries(st.sampled_from([OURS, THEIRS, "other"]), _junk, max_size=3),
)
def test_whatever_stands_in_an_object_is_read_or_refused_whole(points: Any, ports: Any, annotations: Any) -> None:
    manifest = service_manifest("vm", *points, ports=ports)
    manifest["metadata"]["annotations"] = annotations
    try:
        found = read_service(msgspec.convert(manifest, Service))
    except msgspec.ValidationError:
        return
    assert found.key == "default/vm"
    assert all(one.service == found.key and one.detail for one in found.reports)


@pytest.mark.parametrize("key", [OURS, THEIRS])
def test_a_long_annotation_is_not_repeated_whole(key: str) -> None:
    ((reason, detail),) = told("vm", LB, annotations={key: "x" * 200_000}, ports=(port(80),))
    assert reason == "bad-annotation"
    assert len(detail) < 400
