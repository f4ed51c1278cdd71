"""Ctrl-C: it ends the doctor at once, whatever the API server does, and leaves no half diagnosis."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.kit.launched import ROOT

SECONDS = 30.0


def write_kubeconfig(path: Path, port: int) -> Path:
    cluster = {"name": "test", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "test", "context": {"cluster": "test", "user": "test"}}
    user = {"name": "test", "user": {"token": "x"}}
    content = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "test"}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", [["doctor"], ["doctor", "app.example.org", "--output", "json"], ["status"]])
def test_ctrl_c_ends_a_command_that_waits_for_the_api_server(command: list[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS)
        config = write_kubeconfig(tmp_path / "config", silent.getsockname()[1])
        process = subprocess.Popen(
            [sys.executable, "-m", "dnsproxy", *command, "--kubeconfig", str(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            connection, _ = silent.accept()
            with connection:
                connection.settimeout(SECONDS)
                assert connection.recv(3) == b"GET"
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err
