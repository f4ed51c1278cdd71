"""The whole path: our table, the published objects, a real external-dns, a real name server, an answer."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dnsproxy.publish.externaldns.manifests import Kind
from tests.kit.apiserver import ApiServer
from tests.kit.external_dns import Bind, running_bind, sync_once
from tests.kit.programs import program
from tests.kit.publishers import ENDPOINT_RIGHTS, RIGHTS, SERVICE_RIGHTS, Place, each_kind, server

__all__ = ["each_kind", "server"]

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "dnsendpoint", "external-dns", "named", "dig")

SOURCES: Final = {Kind.DNS_ENDPOINT: ["crd"], Kind.SERVICE: ["service"]}


@pytest.fixture
def bind(tmp_path: Path) -> Iterator[Bind]:
    with running_bind(tmp_path) as one:
        yield one


def publish(place: Place, kind: Kind, *arguments: str) -> None:
    status, _, errors = place.publish("publish-external-dns", "--output", kind.value, "--once", *arguments)
    assert status == 0, errors


def dig(bind: Bind, name: str, rtype: str) -> list[str]:
    command = [program("dig"), "@127.0.0.1", "-p", str(bind.port), "+short", "+tcp", name, rtype]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return sorted(done.stdout.split())


def test_what_we_publish_becomes_an_answer_changes_and_goes(
    server: ApiServer, bind: Bind, kind: Kind, tmp_path: Path
) -> None:
    place = Place(server, tmp_path, f"dns-{kind.value}", RIGHTS[kind])

    def sync(*rows: str) -> None:
        place.has(*rows)
        publish(place, kind, "--ttl", "120")
        sync_once(bind, server.kubeconfig, place.name, sources=SOURCES[kind])

    app, wild = "app.example.org 192.0.2.10 192.0.2.11 2001:db8::10", "*.wild.example.org 192.0.2.12"
    sync(app, wild, "six.example.org 2001:db8::13")
    assert dig(bind, "app.example.org", "A") == ["192.0.2.10", "192.0.2.11"]
    assert dig(bind, "app.example.org", "AAAA") == ["2001:db8::10"]
    assert dig(bind, "any.thing.wild.example.org", "A") == ["192.0.2.12"]
    assert dig(bind, "six.example.org", "AAAA") == ["2001:db8::13"]
    assert bind.ask("six.example.org", "A") == ["NOERROR"]
    assert bind.ttl("app.example.org") == 120

    sync("app.example.org 192.0.2.99", wild)
    assert dig(bind, "app.example.org", "A") == ["192.0.2.99"]
    assert bind.ask("app.example.org", "AAAA") == ["NOERROR"]
    assert bind.ask("six.example.org", "AAAA") == ["NXDOMAIN"]

    place.has()
    publish(place, kind, "--allow-empty")
    sync_once(bind, server.kubeconfig, place.name, sources=SOURCES[kind])
    assert bind.ask("app.example.org") == ["NXDOMAIN"]
    assert bind.ask("foreign.example.org") == ["192.0.2.200"]


def test_to_switch_the_output_keeps_the_records(server: ApiServer, bind: Bind, tmp_path: Path) -> None:
    """Both kinds exist for a moment, and external-dns reads both: the record never disappears."""
    place = Place(server, tmp_path, "dns-switched", (*ENDPOINT_RIGHTS, *SERVICE_RIGHTS))
    place.has("app.example.org 192.0.2.10")
    both = ["crd", "service"]
    for kind in (Kind.DNS_ENDPOINT, Kind.SERVICE):
        publish(place, kind)
        sync_once(bind, server.kubeconfig, place.name, sources=both)
        assert bind.ask("app.example.org") == ["192.0.2.10"]
    for one in place.objects(Kind.DNS_ENDPOINT.path(place.name)):
        place.server.request("DELETE", f"{Kind.DNS_ENDPOINT.path(place.name)}/{one['metadata']['name']}")
    sync_once(bind, server.kubeconfig, place.name, sources=both)
    assert bind.ask("app.example.org") == ["192.0.2.10"]


def test_labels_of_ones_own_are_what_external_dns_filters_by(server: ApiServer, bind: Bind, tmp_path: Path) -> None:
    place = Place(server, tmp_path, "dns-filtered", ENDPOINT_RIGHTS)
    place.has("app.example.org 192.0.2.10")
    publish(place, Kind.DNS_ENDPOINT, "--label", "dns=inside")
    sync_once(bind, server.kubeconfig, place.name, "--label-filter=dns=outside", sources=["crd"])
    assert bind.ask("app.example.org") == ["NXDOMAIN"]
    sync_once(bind, server.kubeconfig, place.name, "--label-filter=dns=inside", sources=["crd"])
    assert bind.ask("app.example.org") == ["192.0.2.10"]


def test_an_annotation_prefix_of_ones_own_parts_two_external_dns(server: ApiServer, bind: Bind, tmp_path: Path) -> None:
    """Split horizon: one inside, one outside, each with a prefix (external-dns#5061)."""
    place = Place(server, tmp_path, "dns-prefixed", SERVICE_RIGHTS)
    place.has("app.example.org 192.0.2.10")
    publish(place, Kind.SERVICE, "--annotation-prefix", "inside.example.org/")
    sync_once(bind, server.kubeconfig, place.name, sources=["service"])
    assert bind.ask("app.example.org") == ["NXDOMAIN"]
    sync_once(bind, server.kubeconfig, place.name, "--annotation-prefix=inside.example.org/", sources=["service"])
    assert bind.ask("app.example.org") == ["192.0.2.10"]


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param([], id="from 0.22 on"),
        pytest.param(["--annotation-prefix=external-dns.alpha.kubernetes.io/"], id="before 0.22"),
        pytest.param(["--enable-legacy-annotation-prefix"], id="with the help for the change"),
    ],
)
def test_external_dns_of_every_age_reads_a_service(
    server: ApiServer, bind: Bind, tmp_path: Path, flags: list[str]
) -> None:
    """Its default --annotation-prefix changed in 0.22."""
    place = Place(server, tmp_path, f"dns-prefix-{bind.port}", SERVICE_RIGHTS)
    place.has("app.example.org 192.0.2.10")
    publish(place, Kind.SERVICE, "--ttl", "120")
    said = sync_once(bind, server.kubeconfig, place.name, *flags, sources=["service"])
    assert bind.ask("app.example.org") == ["192.0.2.10"]
    assert bind.ttl("app.example.org") == 120
    assert "ignoring annotation" not in said


def test_external_dns_says_what_it_has_seen_and_we_can_tell(server: ApiServer, bind: Bind, tmp_path: Path) -> None:
    place = Place(server, tmp_path, "dns-seen", ENDPOINT_RIGHTS)
    place.has("app.example.org 192.0.2.10")
    publish(place, Kind.DNS_ENDPOINT)
    (before,) = place.objects(Kind.DNS_ENDPOINT.path(place.name))
    assert "status" not in before
    sync_once(bind, server.kubeconfig, place.name, sources=["crd"])
    (after,) = place.objects(Kind.DNS_ENDPOINT.path(place.name))
    assert after["status"]["observedGeneration"] == after["metadata"]["generation"]
    publish(place, Kind.DNS_ENDPOINT)
    assert place.objects(Kind.DNS_ENDPOINT.path(place.name)) == [after]


def test_long_names_reach_the_name_server(server: ApiServer, bind: Bind, kind: Kind, tmp_path: Path) -> None:
    """Without the registry's TXT records, whose prefix makes a label of 63 octets too long."""
    place = Place(server, tmp_path, f"dns-long-{kind.value}", RIGHTS[kind])
    long = f"{'a' * 63}.{'b' * 63}.{'c' * 50}.example.org"
    names = ["a-b.x.example.org", "a.b-x.example.org", "a.b.x.example.org", long]
    place.has(*(f"{name} 192.0.2.{number}" for number, name in enumerate(names, 1)))
    publish(place, kind)
    sync_once(bind, server.kubeconfig, place.name, sources=SOURCES[kind], registry="noop")
    assert [bind.ask(name) for name in names] == [[f"192.0.2.{number}"] for number in range(1, 5)]
