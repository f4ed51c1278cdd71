"""Listeners of the parent see the queries of all workers, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.kit.launched import ROOT
from tests.kit.log_lines import whole_lines
from tests.kit.polling import poll_until
from tests.kit.serve_process import Serving, serving
from tests.kit.worker_processes import HeldUpstream, ask_all, clients, receive_all, send_all, workers_of

NAME, WILD, ADDRESS = "app.example.org", "*.wild.example.org", "192.0.2.10"
QUICK = ("--host", f"{NAME}={ADDRESS}", "--host", f"{WILD}={ADDRESS}", "--lameduck", "0")
PATIENCE = 20.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, "--workers", "2", "--upstream", "127.0.0.1:9", *QUICK) as running:
        yield running


class Listener:
    """What `dnsproxy tap` has printed."""

    def __init__(self, output: Path) -> None:
        self._output = output

    @property
    def events(self) -> list[dict[str, Any]]:
        """The whole lines."""
        return [json.loads(line) for line in whole_lines(self._output)]

    def ports(self) -> set[int]:
        return {event["port"] for event in self.events}


@contextmanager
def listening(server: Serving, *arguments: str) -> Iterator[Listener]:
    output = server.log.with_suffix(f".{len(list(server.log.parent.iterdir()))}")
    command = [sys.executable, "-m", "dnsproxy", "tap", "--admin", server.admin, "--output", "json", *arguments]
    with output.open("wb") as stdout, subprocess.Popen(command, stdout=stdout, cwd=ROOT) as process:
        try:
            yield Listener(output)
        finally:
            process.terminate()


def see_a_whole_round(server: Serving, listener: Listener, name: str = NAME) -> None:
    """Ask from many ports, so that every worker gets some, until all of one round are seen.

    A worker learns of a listener a moment after it came.
    """

    def seen() -> bool:
        with clients(server.port) as asking:
            ports = {one.getsockname()[1] for one in asking}
            send_all(asking, name)
            receive_all(asking)
        try:
            poll_until(lambda: ports <= listener.ports(), "", seconds=1)
        except AssertionError:
            return False
        return True

    poll_until(seen, "no whole round is seen", seconds=PATIENCE)


def test_a_listener_sees_the_queries_of_all_workers(server: Serving) -> None:
    with listening(server, WILD, "--client", "127.0.0.0/8", "--type", "A", "--outcome", "table") as listener:
        ask_all(server.port, NAME)
        see_a_whole_round(server, listener, "x.wild.example.org")
    assert {(event["qname"], event["rule"]) for event in listener.events} == {("x.wild.example.org", WILD)}


def test_listeners_with_other_filters_see_only_what_they_want(server: Serving) -> None:
    with listening(server, NAME) as one, listening(server, WILD) as other:
        see_a_whole_round(server, one)
        see_a_whole_round(server, other, "x.wild.example.org")
    assert {event["qname"] for event in one.events} == {NAME}
    assert {event["qname"] for event in other.events} == {"x.wild.example.org"}


def test_forwarded_queries_are_seen_with_their_upstream(tmp_path: Path) -> None:
    with HeldUpstream() as upstream:
        upstream.release.set()
        with (
            serving(tmp_path, "--workers", "2", "--upstream", upstream.endpoint, *QUICK) as server,
            listening(server, "--outcome", "upstream") as listener,
        ):
            see_a_whole_round(server, listener, "www.example.com")
            assert {event["upstream"] for event in listener.events} == {upstream.endpoint}


def test_the_successors_of_killed_workers_are_listened_to(server: Serving) -> None:
    with listening(server) as listener:
        see_a_whole_round(server, listener)
        before = set(workers_of(server))
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        poll_until(
            lambda: len(now := set(workers_of(server))) == len(before) and not now & before,
            "they are not replaced",
            seconds=PATIENCE,
        )
        see_a_whole_round(server, listener)
