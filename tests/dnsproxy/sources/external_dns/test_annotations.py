"""The annotations of external-dns, under both prefixes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.publish.externaldns.manifests import INSTANCE, PREFIXES
from dnsproxy.sources.external_dns.annotations import (
    OLD_PREFIX,
    PREFIX,
    PUBLISHED,
    ExternalDnsMetadata,
    Wanted,
    points_of,
    read_wanted,
)
from tests.dnsproxy.sources.external_dns.objects import HOSTNAME, INTERNAL, NEW, OLD, TARGET

DB = "db.example.org"


def metadata(annotations: Any, labels: Any = None) -> ExternalDnsMetadata:
    return msgspec.convert({"name": "x", "annotations": annotations, "labels": labels}, ExternalDnsMetadata)


def wanted(annotations: Any, labels: Any = None, *, most: int | None = None, ingress: bool = False) -> Wanted:
    found = read_wanted(metadata(annotations, labels), internal=True, most=most, ingress=ingress)
    assert found is not None
    return found


def test_the_prefixes_and_the_label_are_those_that_our_publisher_writes() -> None:
    assert ((PREFIX, OLD_PREFIX), PUBLISHED) == (PREFIXES, INSTANCE)


@pytest.mark.parametrize(
    ("annotations", "hostnames"),
    [
        pytest.param({NEW + "hostname": DB}, (DB,), id="since 0.22"),
        pytest.param({OLD + "hostname": DB}, (DB,), id="before 0.22"),
        pytest.param({OLD + "hostname": "old.example.org", NEW + "hostname": DB}, (DB,), id="of both the newer"),
        pytest.param({HOSTNAME: "DB.Example.ORG."}, (DB,), id="another spelling"),
        pytest.param({HOSTNAME: f"{DB},,a.example.org,{DB}"}, (DB, "a.example.org"), id="several"),
        pytest.param({HOSTNAME: f" {DB} , a.example.org "}, (DB, "a.example.org"), id="with spaces"),
        pytest.param({HOSTNAME: "d b.example.org"}, (DB,), id="with a space within, as external-dns reads it"),
        pytest.param({HOSTNAME: "*.example.org"}, ("*.example.org",), id="a wildcard"),
    ],
)
def test_hostnames_are_read(annotations: Any, hostnames: tuple[str, ...]) -> None:
    assert wanted(annotations) == Wanted(hostnames)


@pytest.mark.parametrize(
    "annotations",
    [None, {}, {"other": "x"}, {HOSTNAME: ""}, {HOSTNAME: " , "}, {TARGET: "192.0.2.1"}, {NEW + "ttl": "60"},
     {HOSTNAME: "", OLD + "hostname": DB}, {"switchback.dev/hostname": DB}],
    ids=str,
)  # fmt: skip
def test_an_object_without_hostnames_has_nothing(annotations: Any) -> None:
    assert read_wanted(metadata(annotations), internal=True) is None


def test_the_internal_name_of_a_kind_that_has_none_is_not_read() -> None:
    assert read_wanted(metadata({INTERNAL: DB})) is None
    assert wanted({INTERNAL: DB}) == Wanted((), (DB,))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("192.0.2.1", "external-dns.kubernetes.io/hostname: '192.0.2.1' is an IP address", id="an address"),
        pytest.param("a..b", "a label is empty", id="an empty label"),
        pytest.param("*", "'*' is not a hostname", id="a bare star"),
        pytest.param("a.*.example.org", "'*' is not a host label", id="a star within"),
        pytest.param("x" * 64 + ".org", "is not a host label", id="a long label"),
        pytest.param("a\nb.example.org", "'a\\nb' is not a host label", id="a newline"),
        pytest.param("\uff41.example.org", "normal spelling", id="a wide letter"),
        pytest.param("a;b", "'a;b'", id="a semicolon"),
        pytest.param("https://db.example.org/", "https", id="a URL"),
    ],
)
def test_a_bad_hostname_harms_no_other(text: str, named: str) -> None:
    found = wanted({HOSTNAME: f"{text},{DB}"})
    assert found.hostnames == (DB,)
    (fault,) = found.faults
    assert named in fault


def test_of_many_hostnames_the_first_are_read() -> None:
    many = ",".join(f"h{number}.example.org" for number in range(20_000))
    found = wanted({HOSTNAME: many}, most=3)
    assert found.hostnames == tuple(f"h{number}.example.org" for number in range(3))
    assert found.faults == ("it claims more than 3 names (--max-names-per-object): the others are left out",)
    assert wanted({HOSTNAME: f"{DB},a.example.org,"}, most=2).faults == ()
    assert len(wanted({HOSTNAME: many}).hostnames) == 1_000


def test_the_target_is_what_its_writer_declares() -> None:
    found = wanted({HOSTNAME: DB, TARGET: "192.0.2.9, LB.example.net.,2001:DB8::1,?,192.0.2.9"})
    assert found.declared == ("192.0.2.9", "lb.example.net", "2001:db8::1")
    assert found.target.startswith("'192.0.2.9, LB")
    assert wanted({HOSTNAME: DB, TARGET: ""}) == Wanted((DB,))
    assert len(wanted({HOSTNAME: DB, TARGET: ",".join(f"192.0.2.{n}" for n in range(99))}).declared) == 16


@pytest.mark.parametrize(
    ("annotations", "labels", "named"),
    [
        pytest.param({NEW + "controller": "mine"}, None, "another controller", id="another controller"),
        pytest.param({OLD + "controller": ""}, None, "another controller", id="an empty controller"),
        pytest.param(
            {NEW + "ingress-hostname-source": "defined-hosts-only"}, None, "no annotation", id="its spec alone"
        ),
        pytest.param({NEW + "ingress-hostname-source": "?"}, None, "no annotation", id="an unknown source"),
        pytest.param({}, {"switchback.dev/instance": "x"}, "published it", id="what we publish ourselves"),
    ],
)
def test_what_external_dns_does_not_publish_has_the_reason(annotations: Any, labels: Any, named: str) -> None:
    assert named in wanted({HOSTNAME: DB, **annotations}, labels, ingress=True).refusal


@pytest.mark.parametrize(
    "annotations",
    [{NEW + "controller": "dns-controller"}, {NEW + "ingress-hostname-source": "Annotation-Only"},
     {NEW + "controller": "dns-controller", OLD + "controller": "mine"}],
    ids=str,
)  # fmt: skip
def test_what_external_dns_publishes_has_none(annotations: Any) -> None:
    assert not wanted({HOSTNAME: DB, **annotations}, ingress=True).refusal


def test_the_source_of_the_hostnames_is_that_of_ingresses_alone() -> None:
    assert not wanted({HOSTNAME: DB, NEW + "ingress-hostname-source": "defined-hosts-only"}).refusal


@given(st.text() | st.text("a.*-, \u00e9", max_size=60), st.text(max_size=40))
def test_any_text_is_read_or_reported(text: str, target: str) -> None:
    found = read_wanted(metadata({HOSTNAME: text, TARGET: target}), internal=True)
    if found is None:
        assert not text.replace(" ", "").strip(",")
    else:
        assert found.hostnames or found.faults
        assert wanted({HOSTNAME: ",".join(found.hostnames) or "?"}).hostnames == found.hostnames
        assert points_of(found.declared) == found.declared


def test_no_text_is_kept_that_means_nothing() -> None:
    found = wanted({HOSTNAME: DB, NEW + "endpoints-type": "x" * 200_000})
    assert found == Wanted((DB,))
    assert wanted({HOSTNAME: DB, NEW + "endpoints-type": "HostIP"}).of_nodes
