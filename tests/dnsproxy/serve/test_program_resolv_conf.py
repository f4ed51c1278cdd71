"""A server that follows a resolv.conf: the nameservers in the file are asked, and there is always one (U14)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from dnsproxy.forward.resolv_conf_follower import read_forwarding
from dnsproxy.forward.settings import ForwardSettings
from dnsproxy.serve.program import serve
from dnsproxy.serve.service import Bound
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from tests.kit.dns_server import running, wait_until
from tests.kit.messages import table_of
from tests.kit.ports import free_port
from tests.kit.serve_inside import addresses_in, ask, serving, settings

FIRST, SECOND = "127.0.0.1", "127.0.0.2"
"""Upstreams on one port, like all nameservers of a resolv.conf, that answer with different addresses."""
ANSWERS = {FIRST: "198.51.100.1", SECOND: "198.51.100.2"}
FORWARDED = "elsewhere.example.org"


@asynccontextmanager
async def upstreams(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """Both upstreams; their port, which is the result, replaces port 53, which needs privileges."""
    first, second = (table_of(f"{FORWARDED} {ANSWERS[host]}") for host in (FIRST, SECOND))
    async with running(table=first) as one, running(table=second, at=Endpoint(SECOND, one.endpoint.port)):
        monkeypatch.setattr("dnsproxy.forward.settings.DNS_PORT", one.endpoint.port)
        yield one.endpoint.port


@asynccontextmanager
async def following(path: Path) -> AsyncIterator[Bound]:
    """A server that has read the file as the command line does."""
    forwarding = read_forwarding(path, plain=ForwardSettings(()))
    async with serving(settings(forwarding=forwarding, resolv_conf=path)) as bound:
        yield bound


async def ask_until(bound: Bound, address: str) -> None:
    """Ask until this is the answer; each question waits for its reply."""
    while addresses_in(await ask(bound.dns[0], FORWARDED)) != [address]:
        pass


async def test_new_nameservers_are_asked_from_then_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(f"nameserver {FIRST}\n")
    async with upstreams(monkeypatch), following(path) as bound:
        for host in (FIRST, SECOND, FIRST):
            path.write_text(f"nameserver {host}\n")
            await ask_until(bound, ANSWERS[host])
            assert addresses_in(await ask(bound.dns[0], FORWARDED)) == [ANSWERS[host]]


@pytest.mark.parametrize(
    "content", ["", "# nothing\n", "nameserver resolver.example.org\n"], ids=["empty", "comment", "no address"]
)
async def test_a_file_without_nameservers_keeps_the_upstreams_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(f"nameserver {FIRST}\n")
    with capture_logs() as logs:
        async with upstreams(monkeypatch), following(path) as bound:
            path.write_text(content)
            await wait_until(lambda: any(line.get("cause") == "has no nameserver" for line in logs))
            assert addresses_in(await ask(bound.dns[0], FORWARDED)) == [ANSWERS[FIRST]]
            path.write_text(f"nameserver {SECOND}\n")
            await ask_until(bound, ANSWERS[SECOND])


async def test_a_file_that_comes_to_name_us_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text(f"nameserver {FIRST}\n")
    with capture_logs() as logs:
        async with upstreams(monkeypatch), following(path) as bound:
            ours = bound.dns[0]
            monkeypatch.setattr("dnsproxy.forward.settings.DNS_PORT", ours.port)
            path.write_text(f"nameserver {ours.host}\n")
            await wait_until(lambda: any(str(line.get("cause")).startswith(f"{ours} is an address") for line in logs))
            assert addresses_in(await ask(bound.dns[0], FORWARDED)) == [ANSWERS[FIRST]]


async def test_a_file_that_names_us_first_starts_without_us_and_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with upstreams(monkeypatch) as port:
        ours = Endpoint("127.0.0.3", port)
        path = tmp_path / "resolv.conf"
        path.write_text(f"nameserver {ours.host}\nnameserver {FIRST}\n")
        with capture_logs() as logs:
            forwarding = read_forwarding(path, plain=ForwardSettings(()))
            async with serving(settings(listen=(ours,), forwarding=forwarding, resolv_conf=path)) as bound:
                assert addresses_in(await ask(bound.dns[0], FORWARDED)) == [ANSWERS[FIRST]]
                path.write_text(f"nameserver {ours.host}\nnameserver {SECOND}\n")
                await ask_until(bound, ANSWERS[SECOND])
        warnings = [line for line in logs if line["log_level"] == "warning"]
        assert [line.get("nameservers") for line in warnings] == [[str(ours)]]


@pytest.mark.parametrize("by_file", [True, False], ids=["--resolv-conf", "--upstream"])
async def test_a_loop_that_shows_only_once_the_sockets_are_open_is_a_start_error(by_file: bool) -> None:
    us = Endpoint("127.0.0.1", free_port())
    wanted = settings(listen=(us,), forwarding=ForwardSettings((us,)))
    flag = "--resolv-conf /etc/resolv.conf: nameserver" if by_file else "--upstream"
    wanted = replace(wanted, resolv_conf=Path("/etc/resolv.conf") if by_file else None)
    with pytest.RaisesGroup(pytest.RaisesExc(StartError, match=f"^{flag} {us} is an address"), flatten_subgroups=True):
        await serve(wanted, stopping=trio.Event())
