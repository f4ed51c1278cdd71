"""SIGHUP, SIGUSR1, SIGUSR2 and SIGALRM end no program: not while it starts, not while it runs, not in its drain."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.stray_signals import STRAY
from tests.kit.launched import ROOT
from tests.kit.ports import free_port
from tests.kit.processes import end_process, take_hangups, wait_for

SECONDS = 30
BEGIN = "import signal, sys, time; from sidecar.cli.stray_signals import survive_stray_signals as survive\n"


def caught(process: subprocess.Popen[bytes], signals: tuple[signal.Signals, ...] = STRAY) -> bool:
    """Whether a process has handlers for these signals."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return False
    (mask,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
    return all(mask >> (number - 1) & 1 for number in signals)


COMMANDS = {
    "dnsproxy serve": ["dnsproxy", "serve", "--upstream", "192.0.2.53", "--listen", "127.0.0.1:{}", "--admin", "off"],
    "dnsproxy publish-hosts": [
        "dnsproxy",
        "publish-hosts",
        "--zone",
        ".",
        "--from",
        "127.0.0.1:{}",
        "--to",
        "{folder}/hosts",
    ],
    "proxy": ["proxy", "--route", "127.0.0.1:{}=192.0.2.1:9", "--admin", "off"],
    "proxy with workers": ["proxy", "--route", "127.0.0.1:{}=192.0.2.1:9", "--admin", "off", "--workers", "2"],
    "install --watch": ["dnsproxy", "install", "--watch", "--kubeconfig", "{folder}/kubeconfig", "--admin", "off"],
    "wholeip run": ["wholeip", "run", "--kubeconfig", "{folder}/kubeconfig", "--node-name", "n", "--admin", "off"],
}
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: one
contexts: [{name: one, context: {cluster: one, user: one}}]
clusters: [{name: one, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: one, user: {token: none}}]
"""


def start(name: str, folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    (folder / "kubeconfig").write_text(KUBECONFIG)
    (folder / "hosts").touch()
    arguments = [one.format(free_port(), folder=folder) for one in COMMANDS[name]]
    log = folder / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-m", *arguments], stderr=stderr, stdout=stderr, cwd=ROOT)
    return process, log


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.peer("nft")] * (name == "wholeip run")) for name in COMMANDS]
)
def test_stray_signals_end_nothing_from_the_start_on(name: str, tmp_path: Path) -> None:
    process, log = start(name, tmp_path)
    try:
        # Long before its event loop runs.
        wait_for(lambda: caught(process), process=process, log=log)
        for number in STRAY:
            process.send_signal(number)
        # SIGTERM has a handler once the loop runs.
        wait_for(lambda: caught(process, (signal.SIGTERM,)), process=process, log=log)
        for number in STRAY:
            process.send_signal(number)
        wait_for(lambda: b"SIGHUP" in log.read_bytes(), process=process, log=log)
        process.terminate()
        assert process.wait(SECONDS) == 0
        assert b"Traceback" not in log.read_bytes()
        assert b'"revision": "' in log.read_bytes().splitlines()[0]
    finally:
        end_process(process)


@pytest.mark.parametrize("number", STRAY, ids=lambda number: number.name)
def test_a_child_does_not_inherit_them(number: signal.Signals) -> None:
    child = f"import os, signal; os.kill(os.getpid(), {number:d}); print('survived')"
    code = f"{BEGIN}survive()\nimport subprocess; print(subprocess.run([sys.executable, '-c', {child!r}]).returncode)"
    pipes: dict[str, Any] = {"capture_output": True, "text": True, "preexec_fn": take_hangups}
    output = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, **pipes).stdout
    assert output == f"{-number:d}\n"


def test_what_the_caller_ignores_stays_ignored() -> None:
    code = f"{BEGIN}survive(); print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    command = ["sh", "-c", 'trap \'\' HUP; exec "$0" "$@"', sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout == "True\n"


def test_a_command_that_ends_by_itself_still_ends_with_its_terminal() -> None:
    command = [sys.executable, "-m", "dnsproxy", "table", "--admin", "192.0.2.1:8081"]
    pipes: dict[str, Any] = {"stderr": subprocess.DEVNULL, "preexec_fn": take_hangups}
    process = subprocess.Popen(command, cwd=ROOT, **pipes)
    try:
        assert not caught(process)
        process.send_signal(signal.SIGHUP)
        assert process.wait(SECONDS) == -signal.SIGHUP
    finally:
        end_process(process)
