"""The demo: it succeeds where each step happened, and fails where one did not."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dnsproxy.demo.play import RELAY, Stage, play, set_stage
from dnsproxy.demo.story import Step, format_step, format_verdict, succeeded
from sidecar.values.endpoints import Endpoint
from tests.kit.dns_server import running
from tests.kit.messages import table_of
from tests.kit.processes import is_listening, take_hangups
from tests.kit.programs import program

DEMO = [sys.executable, "-m", "dnsproxy", "demo"]


def without_coredns() -> dict[str, str]:
    return {**os.environ, "PATH": str(Path(sys.executable).parent)}


def test_it_plays_without_a_coredns_and_says_so() -> None:
    done = subprocess.run(DEMO, capture_output=True, text=True, env=without_coredns(), timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no coredns on the PATH" in done.stdout
    assert done.stdout.count("ok   ") == 4
    assert "\x1b" not in done.stdout


@pytest.mark.peer("coredns")
def test_a_coredns_on_the_path_stands_in_front() -> None:
    env = {**os.environ, "PATH": f"{Path(program('coredns')).parent}:{os.environ['PATH']}"}
    done = subprocess.run([*DEMO, "-o", "json"], capture_output=True, text=True, env=env, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["success"] is True
    assert "CoreDNS, with kubeadm's Corefile and our stanza" in report["steps"][1]["tried"]


@contextmanager
def keeping(command: list[str], **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A demo with --keep that has played, and its report; it ends with the block."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "--keep"], env=without_coredns(), **pipes, **options) as demo:
        try:
            lines = []
            for line in demo.stdout or ():
                lines.append(line)
                if "# with: answered" in line:
                    break
            yield demo, "".join(lines)
        finally:
            demo.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_keep_leaves_it_running_until_a_signal_that_leaves_nothing_behind(number: signal.Signals) -> None:
    with keeping(DEMO, preexec_fn=take_hangups) as (demo, text):
        command = re.search(r"curl --resolve (\S+):(\d+):127\.0\.0\.20", text)
        assert command is not None, text
        assert re.search(r"dig @127\.0\.0\.1 -p \d+ app\.example\.org", text)
        assert demo.poll() is None
        port = int(command[2])
        assert is_listening(port, address="127.0.0.20")
        demo.send_signal(number)
        assert demo.wait(timeout=20) == 128 + number
        assert not is_listening(port, address="127.0.0.20")


def test_a_demo_under_nohup_survives_the_end_of_its_terminal() -> None:
    """And the next Ctrl-C ends it."""
    with keeping([shutil.which("nohup") or "nohup", *DEMO]) as (demo, _):
        demo.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            demo.wait(timeout=1)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=20) == 130


async def tell_nobody(_: Step) -> None:
    return


async def judged(**changes: Endpoint | int) -> list[bool]:
    """The verdicts on a stage that was tampered with after it was set."""
    async with set_stage() as stage:
        tampered: Stage = replace(stage, **changes)  # type: ignore[arg-type]
        return [step.good for step in await play(tampered, tell_nobody)]


async def test_a_cluster_dns_that_never_asks_dnsproxy_is_noticed() -> None:
    async with set_stage() as stage:
        steps = await play(replace(stage, cluster_dns=stage.public_dns), tell_nobody)
    assert [step.good for step in steps] == [True, False, False, True]
    assert not succeeded(steps)


async def test_a_dnsproxy_that_does_not_answer_is_noticed() -> None:
    dead = Endpoint("127.0.0.1", 9)
    assert await judged(dnsproxy=dead, cluster_dns=dead) == [True, False, False, False]


async def test_a_dnsproxy_that_takes_a_name_of_the_domain_that_leads_elsewhere_is_noticed() -> None:
    async with set_stage() as stage, running(stage.public_dns, table=table_of(f"*.example.org {RELAY}")) as server:
        steps = await play(replace(stage, dnsproxy=server.endpoint), tell_nobody)
    assert [step.good for step in steps] == [True, True, True, False]


STEP = Step("title", "tried", "expected this", "seen that", good=False)


def test_a_failed_step_says_what_was_expected() -> None:
    text = format_step(STEP)
    assert "FAIL" in text
    assert "expected: expected this" in text
    assert "-> seen that" in text


@pytest.mark.parametrize(
    ("steps", "good"),
    [
        pytest.param([], False, id="nothing was tried"),
        pytest.param([replace(STEP, good=True)], True, id="all happened"),
        pytest.param([replace(STEP, good=True), STEP], False, id="one did not"),
    ],
)
def test_success_is_that_every_step_happened(steps: list[Step], *, good: bool) -> None:
    assert succeeded(steps) is good
    assert ("failed" in format_verdict(steps)) is not good
