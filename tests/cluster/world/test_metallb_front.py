"""The proxy in front of MetalLB's addresses."""

from __future__ import annotations

import subprocess

import pytest

from tests.cluster.addresses import IPV4, IPV6, Addresses
from tests.cluster.world.metallb_front import format_interception, with_own_address
from tests.kit.programs import program

BOTH = pytest.mark.parametrize("at", [IPV4, IPV6], ids=["IPv4", "IPv6"])


@BOTH
def test_only_what_visitors_send_to_the_public_address_is_the_proxys(at: Addresses) -> None:
    rules = format_interception(at)
    assert f"saddr {at.visitor} " in rules
    assert f"daddr {at.public} tcp dport {{ 80, 443 }} dnat to {at.balancer}\n" in rules


@BOTH
@pytest.mark.peer("nft", "unshare")
def test_the_kernel_takes_the_rules(at: Addresses) -> None:
    command = ["unshare", "--user", "--map-root-user", "--net", program("nft"), "-f", "-"]
    done = subprocess.run(command, input=format_interception(at), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_proxy_with_its_own_address_dials_the_same_ports_elsewhere() -> None:
    front = with_own_address("198.18.7.200")
    assert (front.owns_public, front.targets, front.ports) == (True, ["198.18.7.200"], {80: 80, 443: 443})
