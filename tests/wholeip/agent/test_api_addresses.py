"""The addresses behind the name of the API server, as they come, change and are missing."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import socket
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sidecar.kubernetes.http import ApiClient
from tests.kit.faulty_api import cluster_at
from tests.kit.wholeip_objects import ip
from wholeip.agent.api_addresses import api_addresses, follow_api_addresses
from wholeip.mappings.addresses import Address

SERVER = "https://api.example.org:6443"


class Names(trio.abc.HostnameResolver):
    """A DNS that answers what the test says."""

    def __init__(self) -> None:
        self.addresses: tuple[str, ...] = ()
        self.asked = 0

    async def getaddrinfo(self, host: Any, *_: Any, **__: Any) -> Any:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        if not self.addresses:
            raise socket.gaierror(socket.EAI_AGAIN, f"{host}: temporary failure in name resolution")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in self.addresses]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise NotImplementedError


@pytest.fixture
def names() -> Names:
    return Names()


async def test_a_name_that_had_no_address_at_the_start_is_asked_again(names: Names, autojump_clock: MockClock) -> None:
    trio.socket.set_custom_hostname_resolver(names)
    assert await api_addresses(SERVER) == frozenset()
    found: list[frozenset[Address]] = []
    async with trio.open_nursery() as nursery:
        follow = partial(follow_api_addresses, ApiClient(cluster_at(SERVER)), frozenset(), found.append, again=10)
        nursery.start_soon(follow)
        await trio.sleep(12)
        assert (names.asked, found) == (3, [])
        names.addresses = ("192.0.2.1", "::ffff:192.0.2.2", "127.0.0.1")
        await trio.sleep(5)
        assert found == [{ip("192.0.2.1"), ip("192.0.2.2")}]
        names.addresses = ("192.0.2.2", "192.0.2.3")
        await trio.sleep(11)
        names.addresses = ()
        await trio.sleep(25)
        assert found[1:] == [{ip("192.0.2.3")}]
        nursery.cancel_scope.cancel()


async def test_an_address_is_not_looked_up_again(names: Names) -> None:
    trio.socket.set_custom_hostname_resolver(names)
    for server in ("https://192.0.2.1:6443", "https://[2001:db8::1]", "https://127.0.0.1:6443"):
        await follow_api_addresses(ApiClient(cluster_at(server)), frozenset(), lambda _: None)
    assert names.asked == 0


@pytest.mark.parametrize("host", ["192.0.2.1", "[::ffff:192.0.2.1]", "192.0.02.1"])
async def test_an_address_is_known_in_each_spelling(names: Names, host: str) -> None:
    trio.socket.set_custom_hostname_resolver(names)
    assert await api_addresses(f"https://{host}:6443") == {ip("192.0.2.1")}
