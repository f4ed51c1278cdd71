"""The name of a backend at a real CoreDNS that loses it: for a moment, and for good."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from proxy.backends.backend import Backend
from proxy.backends.discovery import keep_resolved
from proxy.backends.health import Cause, Failure
from proxy.backends.name_resolver import Found, NameResolver
from sidecar.values.host_port import HostPort
from tests.kit.coredns import running_coredns
from tests.kit.ports import free_port
from tests.kit.relaying import until

pytestmark = pytest.mark.peer("coredns")

NAME = "git.example.org"
ANSWERING = """\
example.org {
    bind 127.0.0.1
    hosts {
        192.0.2.7 git.example.org
        ttl 1
    }
}
"""
DENYING = """\
example.org {
    bind 127.0.0.1
    template ANY ANY {
        rcode NXDOMAIN
    }
}
"""
FAILING = DENYING.replace("NXDOMAIN", "SERVFAIL")


async def test_a_name_that_coredns_denies_keeps_its_addresses_until_that_is_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that no moment of this test is confirmed because the machine is slow.
    monkeypatch.setattr("proxy.backends.last_addresses.CONFIRM_SECONDS", 300.0)
    port = free_port()
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    resolver = NameResolver(tmp_path / "resolv.conf", tmp_path / "hosts", port=port)
    done = 0

    async def look_up(name: str) -> Found | Failure:
        nonlocal done
        try:
            return await resolver.look_up(name)
        finally:
            done += 1

    backend = Backend(HostPort(NAME, 22), listeners=())

    def known() -> list[str]:
        return [address.host for address in backend.addresses]

    async def asked_again() -> None:
        before = done
        # The first one may have begun before the change.
        await until(lambda: done >= before + 2)

    async with trio.open_nursery() as nursery:
        with running_coredns(tmp_path, ANSWERING, port=port):
            nursery.start_soon(keep_resolved, backend, look_up)
            await until(lambda: known() == ["192.0.2.7"])
        for corefile in (DENYING, FAILING, ANSWERING):
            with running_coredns(tmp_path, corefile, port=port):
                await asked_again()
                assert known() == ["192.0.2.7"]
        monkeypatch.setattr("proxy.backends.last_addresses.CONFIRM_SECONDS", 1.0)
        with running_coredns(tmp_path, DENYING, port=port):
            await until(lambda: not known())
            assert backend.failure is not None
            assert backend.failure.cause is Cause.DNS_NXDOMAIN
        nursery.cancel_scope.cancel()
