"""Repeated look-ups of names."""
# ruff: noqa: ARG001  # pytest-trio takes its clock from a test's arguments alone

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from proxy.backends import discovery
from proxy.backends.backend import Address, Backend
from proxy.backends.discovery import follow_backends, keep_resolved, watch_for_dnsproxy
from proxy.backends.health import Cause, Failure
from proxy.settings import Settings
from sidecar.values.host_port import HostPort
from tests.kit.relaying import until
from tests.proxy.backends.nameserver import played_nameserver
from tests.proxy.backends.resolving import NO_SUCH_NAME, TRY_AGAIN, PlayedResolver

NAMED = HostPort("backend.example.org", 80)


@asynccontextmanager
async def resolved(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Backend, PlayedResolver]]:
    """A backend whose name is looked up continuously."""
    monkeypatch.setattr(discovery, "RETRY_SECONDS", 0.01)
    resolver = PlayedResolver()
    backend = Backend(NAMED, listeners=())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_resolved, backend, resolver.look_up)
        yield backend, resolver
        nursery.cancel_scope.cancel()


async def test_a_change_of_address_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["192.0.2.1", "2001:db8::1"])
        await until(lambda: len(backend.addresses) == 2)
        resolver.set(["192.0.2.2"])
        await until(lambda: backend.addresses == (Address(socket.AF_INET, ("192.0.2.2", 80)),))


async def test_a_family_that_the_nameservers_do_not_answer_keeps_its_last_addresses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(discovery, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr("proxy.backends.name_resolver.SHORTEST", 0.01)
    monkeypatch.setattr("proxy.backends.name_resolver.OTHER_FAMILY_SECONDS", 0.01)
    backend = Backend(NAMED, listeners=())
    name = f"{NAMED.host}."
    async with played_nameserver(tmp_path) as (server, resolver), trio.open_nursery() as nursery:
        server.put(name, "A", ["192.0.2.1"], ttl=0)
        server.put(name, "AAAA", ["2001:db8::1"], ttl=0)
        nursery.start_soon(keep_resolved, backend, resolver.look_up)
        await until(lambda: hosts_of(backend) == ["2001:db8::1", "192.0.2.1"])
        for failure in (None, "SERVFAIL"):
            server.answers[name, "A"] = failure
            address = f"2001:db8::{failure or 'dead'}".replace("SERVFAIL", "2")
            server.put(name, "AAAA", [address], ttl=0)
            await until(lambda address=address: hosts_of(backend)[0] == address)
            assert hosts_of(backend) == [address, "192.0.2.1"]
        server.put(name, "A", [])
        await until(lambda: hosts_of(backend) == ["2001:db8::2"])
        nursery.cancel_scope.cancel()


async def test_an_address_on_an_interface_that_is_not_there_ends_no_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["fe80::1%none"])
        await until(lambda: backend.failure is not None)
        assert backend.failure == Failure(Cause.DNS_ERROR, "fe80::1%none: No such device")
        resolver.set(["fe80::1%none", "192.0.2.1"])
        await until(lambda: hosts_of(backend) == ["192.0.2.1"])


def hosts_of(backend: Backend) -> list[str]:
    return [address.host for address in backend.addresses]


async def test_a_failed_look_up_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        for failure in (NO_SUCH_NAME, TRY_AGAIN):
            resolver.set(failure)
            await until(lambda failure=failure: backend.failure == failure)
            asked = resolver.asked
            await until(lambda asked=asked: resolver.asked > asked + 3)
        resolver.set(["192.0.2.1"])
        await until(lambda: backend.addresses != ())


async def test_a_name_that_vanishes_for_a_moment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["192.0.2.1"])
        await until(lambda: backend.addresses != ())
        for answer in (NO_SUCH_NAME, TRY_AGAIN, NO_SUCH_NAME):
            resolver.set(answer)
            asked = resolver.asked
            await until(lambda asked=asked: resolver.asked > asked + 3)
            assert [address.host for address in backend.addresses] == ["192.0.2.1"]
        monkeypatch.setattr("proxy.backends.last_addresses.CONFIRM_SECONDS", 0.01)
        await until(lambda: backend.failure == NO_SUCH_NAME)
        assert backend.addresses == ()


async def test_an_address_that_fails_has_the_name_looked_up_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with resolved(monkeypatch) as (backend, resolver):
        resolver.set(["192.0.2.1"], seconds=3600)
        await until(lambda: backend.addresses != ())
        resolver.set(["192.0.2.2"], seconds=3600)
        backend.demote(backend.addresses[0])
        await until(lambda: [address.host for address in backend.addresses] == ["192.0.2.2"])
        assert resolver.asked == 2


async def test_while_an_answer_is_fresh_no_query_is_sent(autojump_clock: MockClock) -> None:
    resolver = PlayedResolver()
    resolver.set(["192.0.2.1"], seconds=5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_resolved, Backend(NAMED, listeners=()), resolver.look_up)
        for _ in range(5):
            await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert 5 <= resolver.asked <= 6


async def test_an_address_needs_no_look_ups() -> None:
    resolver = PlayedResolver()
    backend = Backend(HostPort("192.0.2.1", 80), listeners=())
    await follow_backends([backend], Settings(routes=()), look_up=resolver.look_up)
    assert resolver.asked == 0


async def test_a_name_goes_to_the_servers_of_the_resolv_conf_that_was_given(tmp_path: Path) -> None:
    conf = tmp_path / "resolv.conf"
    conf.write_text("search example.org\n")
    backend = Backend(NAMED, listeners=())
    async with trio.open_nursery() as nursery:
        await nursery.start(follow_backends, [backend], Settings(routes=(), resolv_conf=conf))
        await until(lambda: backend.failure is not None)
        nursery.cancel_scope.cancel()
    assert backend.failure is not None
    assert (backend.failure.cause, backend.failure.detail) == (
        Cause.DNS_ERROR,
        f"{conf} has no nameserver that can be used",
    )


async def test_a_name_that_dnsproxy_resolves_is_logged_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(discovery, "DNSPROXY_SECONDS", 0.01)
    async with played_nameserver(tmp_path) as (_, resolver):
        answers = [False, True, True, True, False, True]
        asked: list[str] = []

        async def play(name: str) -> bool:
            asked.append(name)
            return answers[min(len(asked), len(answers)) - 1]

        monkeypatch.setattr(type(resolver), "asks_dnsproxy", staticmethod(play))
        with capture_logs() as logs:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch_for_dnsproxy, NAMED, resolver)
                await until(lambda: len(asked) > len(answers) + 3)
                nursery.cancel_scope.cancel()
    assert set(asked) == {NAMED.host}
    assert [entry["backend"] for entry in logs] == [str(NAMED)] * 2
    assert all("dnsproxy resolves" in entry["event"] for entry in logs)
