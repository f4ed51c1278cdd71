"""The parts of MetalLB's installation that need no cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.addresses import IPV4, IPV6, Addresses
from tests.cluster.world.metallb import (
    IMAGES,
    OTHERS,
    WEB,
    advertisement,
    all_of,
    entries_of,
    first_of,
    parse_neighbours,
    pool,
    writers_of,
)
from tests.kit.programs import program

SERVICE: dict[str, Any] = {
    "metadata": {
        "managedFields": [
            {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:ports": {}}}},
            {"manager": "controller", "fieldsV1": {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}},
        ]
    },
    "status": {"loadBalancer": {"ingress": [{"ip": "198.18.7.200", "ipMode": "VIP", "ports": []}]}},
}
LISTED = json.dumps([{"dst": "198.18.7.200", "lladdr": "ba:5e:00:00:00:01"}, {"dst": "198.18.7.201"}])


@pytest.mark.parametrize(("at", "last"), [(IPV4, "198.18.7.209"), (IPV6, "2001:db8:7::209")], ids=["IPv4", "IPv6"])
def test_a_range_has_its_first_and_its_last_address(at: Addresses, last: str) -> None:
    assert (first_of(at.assigned), all_of(at.assigned)[-1]) == (f"{at.link}200", last)
    assert not set(all_of(at.assigned)) & {*all_of(at.neighbours), at.public, at.passed, at.balancer, at.outside}


def test_a_service_gets_an_address_of_the_pool_web_only_if_it_names_it() -> None:
    assert [pool(name, ["198.18.7.200/32"])["spec"]["autoAssign"] for name in (WEB, OTHERS)] == [False, True]


def test_only_the_named_pools_are_announced() -> None:
    assert advertisement([OTHERS])["spec"] == {"ipAddressPools": [OTHERS]}


def test_the_addresses_of_a_status_have_their_modes() -> None:
    assert entries_of(SERVICE) == [{"ip": "198.18.7.200", "ipMode": "VIP"}]
    assert entries_of({"status": {"loadBalancer": {}}}) == []


def test_the_writer_of_an_address_is_known() -> None:
    assert writers_of(SERVICE) == {"controller"}


@pytest.mark.parametrize(
    ("address", "found"),
    [("198.18.7.200", "ba:5e:00:00:00:01"), ("198.18.7.201", ""), ("198.18.7.202", "")],
    ids=["answered", "asked in vain", "not asked"],
)
def test_a_neighbour_has_answered_if_its_hardware_address_is_known(address: str, found: str) -> None:
    assert parse_neighbours(LISTED, address) == found


@pytest.mark.peer("metallb-manifests")
def test_the_manifest_asks_for_exactly_the_images_that_are_built() -> None:
    objects = yaml.safe_load_all((Path(program("metallb-manifests")) / "native.yaml").read_text(encoding="utf-8"))
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] in {"Deployment", "DaemonSet"}]
    assert {container["image"] for pod in pods for container in pod["containers"]} == IMAGES.keys()
