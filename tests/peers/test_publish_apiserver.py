"""Publishers on a real kube-apiserver, with only the documented rights."""

from __future__ import annotations

import base64
import itertools
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dnsproxy.admin.publication import format_document
from dnsproxy.publish.configmaps.manifests import MANAGED_BY, MANAGER
from dnsproxy.publish.externaldns.manifests import INSTANCE, Kind
from tests.kit.apiserver import ApiServer
from tests.kit.launched import ROOT
from tests.kit.publications import publication
from tests.kit.publishers import ENDPOINT_RIGHTS, MAP_RIGHTS, RIGHTS, SERVICE_RIGHTS, Place, each_kind, server

__all__ = ["each_kind", "server"]

pytestmark = pytest.mark.peer("etcd", "kube-apiserver", "dnsendpoint")

TABLE: Final = (
    "app.example.org 192.0.2.10 2001:db8::10",
    "a_b.example.org 192.0.2.11",
    "*.wild.example.org 192.0.2.12",
)

Make = Callable[[Any], Place]


numbers = itertools.count()


@pytest.fixture
def make(server: ApiServer, tmp_path: Path) -> Make:
    """Creates a namespace with an account that has these rights."""
    return lambda rights: Place(server, tmp_path, f"edge-{next(numbers)}", rights)


def publish(place: Place, kind: Kind, *arguments: str) -> tuple[int, str, str]:
    return place.publish("publish-external-dns", "--output", kind.value, *arguments)


def objects(place: Place, kind: Kind) -> dict[str, Any]:
    return {one["metadata"]["name"]: one for one in place.objects(kind.path(place.name))}


def versions(place: Place, kind: Kind) -> dict[str, str]:
    return {name: one["metadata"]["resourceVersion"] for name, one in objects(place, kind).items()}


def test_names_come_change_and_go(make: Make, kind: Kind) -> None:
    place = make(RIGHTS[kind])
    place.has(*TABLE)
    assert publish(place, kind, "--once")[0] == 0
    first = objects(place, kind)
    assert len(first) == 3
    assert all(one["metadata"]["labels"] == {MANAGED_BY: MANAGER, INSTANCE: "main"} for one in first.values())
    place.has("app.example.org 192.0.2.99", *TABLE[1:])
    assert publish(place, kind, "--once")[0] == 0
    assert (
        sum(
            one["metadata"]["resourceVersion"] != first[name]["metadata"]["resourceVersion"]
            for name, one in objects(place, kind).items()
        )
        == 1
    )
    place.has(*TABLE[:1])
    assert publish(place, kind, "--once")[0] == 0
    assert len(objects(place, kind)) == 1
    assert publish(place, kind, "--remove")[0] == 0
    assert objects(place, kind) == {}


def test_the_same_table_is_written_once(make: Make, kind: Kind) -> None:
    """Two runs, two writers: external-dns publishes again with each generation."""
    place = make(RIGHTS[kind])
    place.has(*TABLE)
    for _ in range(2):
        assert publish(place, kind, "--once")[0] == 0
    before = versions(place, kind)
    assert publish(place, kind, "--once")[0] == 0
    assert versions(place, kind) == before
    assert publish(place, kind, "--dry-run") == (0, "", "Nothing would change.\n")


def test_two_writers_at_once_come_to_the_same_end(make: Make, kind: Kind) -> None:
    place = make(RIGHTS[kind])
    place.has(*(f"h{number}.example.org 192.0.2.{number}" for number in range(40)))
    arguments = ["--output", kind.value, "--once", "--kubeconfig", str(place.kubeconfig), "--namespace", place.name]
    command = [sys.executable, "-m", "dnsproxy", "publish-external-dns", "--instance", "main", *arguments]
    both = [
        subprocess.Popen([*command, "--from-file", str(place.names)], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for one in both:
        _, errors = one.communicate(timeout=60)
        assert one.returncode == 0, errors
    assert len(objects(place, kind)) == 40


def test_a_dry_run_says_what_would_be_done_and_does_nothing(make: Make, kind: Kind) -> None:
    place = make(RIGHTS[kind])
    place.has(*TABLE)
    publish(place, kind, "--once")
    place.has("app.example.org 192.0.2.99", "new.example.org 192.0.2.1")
    before = versions(place, kind)
    status, output, _ = publish(place, kind, "--dry-run")
    assert status == 0
    assert sorted(line.split()[0] for line in output.splitlines()) == ["create", "delete", "delete", "update"]
    assert "app.example.org 192.0.2.99\n" in output
    assert versions(place, kind) == before


def test_an_object_of_another_owner_is_left_alone_and_the_others_are_published(make: Make, kind: Kind) -> None:
    place = make(RIGHTS[kind])
    place.has(TABLE[0])
    publish(place, kind, "--once", "--instance", "other")
    (theirs,) = objects(place, kind).values()
    place.has(*TABLE)
    status, _, errors = publish(place, kind, "--once")
    assert status == 1
    assert "app.example.org is not published: an object of that name is not ours" in errors
    left = objects(place, kind)
    assert len(left) == 3
    assert left[theirs["metadata"]["name"]] == theirs
    publish(place, kind, "--remove")
    assert list(objects(place, kind).values()) == [theirs]


def test_labels_and_annotations_of_ones_own_come_and_go(make: Make, kind: Kind) -> None:
    place = make(RIGHTS[kind])
    place.has(TABLE[0])
    publish(place, kind, "--once", "--label", "team=edge", "--annotation", "example.org/note=a b")
    (one,) = objects(place, kind).values()
    assert one["metadata"]["labels"]["team"] == "edge"
    assert one["metadata"]["annotations"]["example.org/note"] == "a b"
    path = f"{kind.path(place.name)}/{one['metadata']['name']}"
    foreign = {"metadata": {"labels": {"theirs": "x"}, "annotations": {"example.org/theirs": "y"}}}
    place.server.request("PATCH", path, foreign, content_type="application/merge-patch+json")
    publish(place, kind, "--once", "--ttl", "300")
    metadata = place.server.request("GET", path)["metadata"]
    assert metadata["labels"] == {MANAGED_BY: MANAGER, INSTANCE: "main", "theirs": "x"}
    assert "example.org/note" not in metadata["annotations"]
    assert metadata["annotations"]["example.org/theirs"] == "y"


def test_what_was_changed_by_hand_is_changed_back(make: Make) -> None:
    place, kind = make(ENDPOINT_RIGHTS), Kind.DNS_ENDPOINT
    place.has(TABLE[0])
    publish(place, kind, "--once")
    (name,) = objects(place, kind)
    path = f"{kind.path(place.name)}/{name}"
    spec = {"spec": {"endpoints": [{"dnsName": "evil.example.org", "recordType": "A", "targets": ["192.0.2.66"]}]}}
    place.server.request("PATCH", path, spec, content_type="application/merge-patch+json")
    assert publish(place, kind, "--once")[0] == 0
    endpoints = place.server.request("GET", path)["spec"]["endpoints"]
    assert {one["dnsName"] for one in endpoints} == {"app.example.org"}


def test_names_at_their_limits_are_taken(make: Make, kind: Kind) -> None:
    place = make(RIGHTS[kind])
    long = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 57])
    place.has(
        *(f"{name} 192.0.2.1" for name in (long, f"*.{long[2:]}", "_", "x", f"_{long[1:]}", "a-b.c", "a.b-c", "a.b.c"))
    )
    status, _, errors = publish(place, kind, "--once")
    assert (status, len(objects(place, kind))) == (0, 8), errors


def test_an_empty_table_deletes_nothing_unless_that_is_allowed(make: Make, kind: Kind) -> None:
    place = make(RIGHTS[kind])
    place.has(*TABLE)
    publish(place, kind, "--once")
    place.has()
    status, _, errors = publish(place, kind, "--once")
    assert (status, len(objects(place, kind))) == (1, 3)
    assert "--allow-empty would delete 3 objects" in errors
    assert publish(place, kind, "--once", "--allow-empty")[0] == 0
    assert objects(place, kind) == {}


def test_two_publishers_of_one_instance_leave_each_other_their_objects(make: Make, kind: Kind, tmp_path: Path) -> None:
    place = make(RIGHTS[kind])
    place.has(*TABLE)
    assert publish(place, kind, "--once")[0] == 0
    before = objects(place, kind)
    other = ["--from-file", str(tmp_path / "other.json.gz"), "--once"]
    (tmp_path / "other.json.gz").write_bytes(format_document(publication("other.example.org 192.0.2.9")).octets)
    status, _, errors = publish(place, kind, *other)
    assert (status, len(objects(place, kind))) == (0, len(before) + 1)
    assert f"{len(before)} objects stay as they are" in errors
    assert publish(place, kind, *other, "--take-over", "--allow-loss")[0] == 0
    assert len(objects(place, kind)) == 1


def test_once_deletes_most_objects_only_if_that_is_allowed(make: Make, kind: Kind) -> None:
    """A second look at the same file, seconds later, confirms nothing."""
    place = make(RIGHTS[kind])
    place.has(*(f"h{number}.example.org 192.0.2.1" for number in range(30)))
    assert publish(place, kind, "--once")[0] == 0
    place.has("h0.example.org 192.0.2.1")
    status, _, errors = publish(place, kind, "--once")
    assert (status, len(objects(place, kind))) == (1, 30)
    assert "the table has 1 names and 30 are published" in errors
    assert "--allow-loss" in errors
    assert publish(place, kind, "--once", "--allow-loss")[0] == 0
    assert len(objects(place, kind)) == 1


def test_objects_of_the_other_output_are_reported_and_removed_if_allowed(make: Make) -> None:
    place = make((*ENDPOINT_RIGHTS, *SERVICE_RIGHTS))
    place.has(*TABLE)
    publish(place, Kind.SERVICE, "--once")
    _, _, errors = publish(place, Kind.DNS_ENDPOINT, "--once")
    assert f"kubectl -n {place.name} delete services -l" in errors
    assert publish(place, Kind.DNS_ENDPOINT, "--remove")[0] == 0
    assert [objects(place, kind) for kind in Kind] == [{}, {}]


def test_without_rights_it_is_said_which_are_missing(make: Make, kind: Kind) -> None:
    place = make(MAP_RIGHTS)
    place.has(*TABLE)
    for arguments in (["--once"], ["--dry-run"], ["--remove"]):
        status, _, errors = publish(place, kind, *arguments)
        assert status == 3
        assert f'cannot list resource "{kind.plural.partition(".")[0]}"' in errors
        assert "Traceback" not in errors


def stored(place: Place) -> dict[str, Any]:
    found = place.objects(f"/api/v1/namespaces/{place.name}/configmaps")
    return {one["metadata"]["name"]: one for one in found}


def keep(place: Place, *arguments: str) -> tuple[int, str, str]:
    return place.publish("publish-hosts", "--to-configmap", f"{place.name}/node-hosts", *arguments)


def mount(place: Place, folder: Path) -> Path:
    """Approximately as the kubelet mounts them."""
    folder.mkdir()
    for one in stored(place).values():
        for key, value in (one.get("binaryData") or {}).items():
            (folder / key).write_bytes(base64.b64decode(value))
    return folder


def fill(place: Place, hosts: Path, mounted: Path, *arguments: str) -> tuple[int, str, str]:
    """Fill a hosts file from the mounted ConfigMaps."""
    source = str(mount(place, mounted))
    return place.publish("publish-hosts", "--once", "--to", str(hosts), "--from-file", source, *arguments)


def test_a_config_map_carries_the_table_to_a_hosts_file(make: Make, tmp_path: Path) -> None:
    place = make(MAP_RIGHTS)
    place.has(*TABLE)
    assert keep(place, "--once")[0] == 0
    before = stored(place)["node-hosts"]["metadata"]["resourceVersion"]
    assert keep(place, "--once")[0] == 0
    assert stored(place)["node-hosts"]["metadata"]["resourceVersion"] == before
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    done = fill(place, hosts, tmp_path / "m", "--zone", "example.org")
    assert done[0] == 0, done[2]
    assert "\n2001:db8::10 app.example.org\n" in hosts.read_text()
    assert keep(place, "--remove")[0] == 0
    assert stored(place) == {}


def test_a_table_that_is_too_large_for_one_config_map_takes_several(make: Make, tmp_path: Path) -> None:
    """Names in random order compress badly: 1 MiB of them exceeds the API server's limit for one object."""
    place = make(MAP_RIGHTS)
    draw = random.Random(1)  # noqa: S311  # no secret
    many = [f"{draw.getrandbits(128):032x}.example.org 192.0.2.1" for _ in range(80_000)]
    place.has(*many)
    assert keep(place, "--once")[0] == 0
    assert set(stored(place)) == {"node-hosts", "node-hosts-2"}
    hosts = tmp_path / "hosts"
    hosts.write_text("")
    done = fill(place, hosts, tmp_path / "m", "--zone", "example.org", "--max-names", "100000")
    assert done[0] == 0, done[2]
    assert hosts.read_text().count("\n192.0.2.1 ") == len(many)
    place.has(*many[:9_000])
    assert keep(place, "--once")[0] == 0
    assert set(stored(place)) == {"node-hosts"}


def test_a_config_map_of_another_owner_is_left_alone(make: Make) -> None:
    place = make(MAP_RIGHTS)
    path = f"/api/v1/namespaces/{place.name}/configmaps"
    place.server.request("POST", path, {"metadata": {"name": "node-hosts"}, "data": {"theirs": "x"}})
    place.has(*TABLE)
    before = stored(place)
    for arguments in (["--once"], ["--remove"]):
        status, _, errors = keep(place, *arguments)
        assert status == 1
        assert "node-hosts is not ours" in errors
    assert stored(place) == before
