"""Our annotations and labels."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.hostnames.targets import BadTarget, parse_target
from dnsproxy.sources.annotations import (
    HOSTNAME,
    IGNORE,
    NO_ANNOTATIONS,
    TARGET,
    AnnotatedMetadata,
    Annotations,
    read_annotations,
)


def read(annotations: Any = None, labels: Any = None) -> Annotations:
    metadata = {"name": "app", "annotations": annotations, "labels": labels}
    return read_annotations(msgspec.convert(metadata, AnnotatedMetadata))


@pytest.mark.parametrize(
    ("annotations", "labels", "expected"),
    [
        pytest.param(None, None, NO_ANNOTATIONS, id="none"),
        pytest.param({}, {"app": "web"}, NO_ANNOTATIONS, id="others"),
        pytest.param({IGNORE: "true"}, None, Annotations(ignored=True), id="ignored by annotation"),
        pytest.param(None, {IGNORE: "true"}, Annotations(ignored=True), id="ignored by label"),
        pytest.param({IGNORE: "false"}, {IGNORE: "true"}, NO_ANNOTATIONS, id="the annotation goes first"),
        pytest.param(
            {TARGET: "192.0.2.1"}, {TARGET: "status"}, Annotations(target="192.0.2.1"), id="for the target too"
        ),
        pytest.param(
            {TARGET: "status"}, {IGNORE: "true"}, Annotations(ignored=True, target="status"), id="one of each"
        ),
    ],
)
def test_annotations_are_read_from_annotations_and_labels(annotations: Any, labels: Any, expected: Annotations) -> None:
    assert read(annotations, labels) == expected


@pytest.mark.parametrize(
    ("annotations", "named"),
    [
        ({IGNORE: "True"}, "'True'"),
        ({IGNORE: "yes"}, "'yes'"),
        ({IGNORE: ""}, "''"),
        ({IGNORE: "\n"}, IGNORE),
        ({TARGET: ""}, TARGET),
        ({TARGET: "relay.example.org"}, "'relay.example.org'"),
        ({TARGET: "192.0.2.1:80"}, "'192.0.2.1:80'"),
        ({TARGET: "0.0.0.0"}, "'0.0.0.0'"),
        ({TARGET: "fe80::1"}, "'fe80::1' is link-local"),
        ({TARGET: "192.0.2.1,255.255.255.255"}, "'255.255.255.255'"),
        ({TARGET: "::ffff:169.254.169.254"}, "in IPv6 form"),
        ({TARGET: "service:relay"}, "NAMESPACE/NAME"),
    ],
)
def test_an_invalid_annotation_is_a_fault(annotations: Any, named: str) -> None:
    annotations = read(annotations)
    assert (annotations.ignored, annotations.target) == (False, None)
    (fault,) = annotations.faults
    assert named in fault
    assert fault.isprintable()


def test_two_invalid_annotations_are_two_faults() -> None:
    assert len(read({IGNORE: "yes", TARGET: "?"}).faults) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        (" 192.0.2.1 , 2001:DB8::0:1 ", "192.0.2.1,2001:db8::1"),
        ("status", "status"),
        ("service:edge/relay", "service:edge/relay"),
        ("service:edge-2/relay-3", "service:edge-2/relay-3"),
    ],
)
def test_a_target_gets_one_form(text: str, expected: str) -> None:
    assert parse_target(text) == expected
    assert parse_target(expected) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "auto", "Status",
     "service:", "service:edge", "service:/relay", "service:edge/", "service:edge/relay/80",
     "service:Edge/relay", "service:edge/-relay", "service:edge/relay,192.0.2.1", "192.0.2.1,service:edge/relay",
     "status,192.0.2.1", "service:" + "a" * 64 + "/relay", "192.0.2.0/24", "[2001:db8::1]", "fe80::1%eth0", "::",
     "app.example.org", "service:edge/relay\n/x", "\uff1192.0.2.1"],
)  # fmt: skip
def test_an_invalid_target_is_refused(text: str) -> None:
    with pytest.raises(BadTarget) as caught:
        parse_target(text)
    assert str(caught.value).isprintable()


@given(st.text())
def test_any_text_is_a_target_or_refused(text: str) -> None:
    try:
        target = parse_target(text)
    except BadTarget:
        return
    assert parse_target(target) == target


@pytest.mark.parametrize(
    ("annotations", "labels", "hostnames"),
    [
        pytest.param({HOSTNAME: "git.example.org"}, None, ("git.example.org",), id="one"),
        pytest.param(
            {HOSTNAME: " Git.Example.org., *.mqtt.example.org,git.example.org\n,bücher.example.org"},
            None,
            ("git.example.org", "*.mqtt.example.org", "xn--bcher-kva.example.org"),
            id="a list in normal form",
        ),
        pytest.param(None, {HOSTNAME: "git.example.org"}, ("git.example.org",), id="a label"),
        pytest.param({HOSTNAME: ""}, {HOSTNAME: "git.example.org"}, (), id="an empty annotation goes first"),
    ],
)
def test_hostnames_are_a_list_with_commas(annotations: Any, labels: Any, hostnames: tuple[str, ...]) -> None:
    assert read(annotations, labels) == Annotations(hostnames=hostnames)


@pytest.mark.parametrize(
    "bad",
    ["*", "*.", "192.0.2.1", "[2001:db8::1]", "2001:db8::1", "a..b", "-a.example.org", "a b.example.org",
     "git.example.org:22", "ssh://git.example.org", "git.example.org/x", "git.example.org;x", "a.*.example.org",
     "x" * 64, ".".join(["abcdefgh"] * 32), "a\x00.example.org", "\u202egro.example"],
)  # fmt: skip
def test_an_invalid_hostname_is_reported_and_affects_neither_the_others_nor_the_object(bad: str) -> None:
    annotations = read({HOSTNAME: f"a.example.org,{bad},b.example.org,{bad}", TARGET: "192.0.2.1"})
    assert (annotations.hostnames, annotations.target) == (("a.example.org", "b.example.org"), "192.0.2.1")
    assert annotations.exclusion is None
    (fault,) = annotations.bad_hostnames
    assert fault.startswith(HOSTNAME)
    assert fault.isprintable()


@pytest.mark.parametrize(
    ("annotations", "bar"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({IGNORE: "false", TARGET: "status", HOSTNAME: "a.example.org"}, None, id="all good"),
        pytest.param({IGNORE: "true", TARGET: "?"}, f"is ignored ({IGNORE})", id="ignored goes before a fault"),
        pytest.param({TARGET: "?"}, "has an invalid annotation", id="a bad target"),
        pytest.param({HOSTNAME: "?"}, None, id="a bad hostname"),
    ],
)
def test_only_ignore_or_an_invalid_annotation_excludes_the_object(annotations: Any, bar: str | None) -> None:
    assert read(annotations).exclusion == bar


@given(st.text(), st.text() | st.none(), st.text() | st.none())
def test_any_text_in_an_annotation_is_accepted_or_reported(
    hostname: str, ignore: str | None, target: str | None
) -> None:
    annotations = read({HOSTNAME: hostname, IGNORE: ignore, TARGET: target})
    assert len(set(annotations.hostnames)) == len(annotations.hostnames)
    assert len(annotations.hostnames) + len(annotations.bad_hostnames) <= len(hostname.split(","))
    for fault in (*annotations.faults, *annotations.bad_hostnames):
        assert fault.isprintable()


@pytest.mark.parametrize(
    ("count", "taken", "faults"), [(999, 999, 0), (1_000, 1_000, 0), (1_001, 1_000, 1), (20_000, 1_000, 1)]
)
def test_first_hostnames_of_a_long_list_count(count: int, taken: int, faults: int) -> None:
    """The others are not even read."""
    text = ",".join(f"a{number}.example.org" for number in range(count))
    found = read({HOSTNAME: text})
    assert found.hostnames == tuple(text.split(",")[:taken])
    assert len(found.bad_hostnames) == faults


def test_a_target_has_no_more_addresses_than_an_answer_has_room_for() -> None:
    many = [f"192.0.2.{number}" for number in range(65)]
    assert read({TARGET: ",".join(many[:64])}).target == ",".join(many[:64])
    found = read({TARGET: ",".join(many * 300)})
    assert found.target is None
    assert [len(fault) < 400 for fault in found.faults] == [True]
