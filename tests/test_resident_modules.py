"""What the long-running commands load: each package that is only for people, or for other commands, costs megabytes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PROGRAMS: Final = {
    "dnsproxy serve": ("dnsproxy.cli", "dnsproxy.serve.command", "dnsproxy.serve.answering", "dnsproxy.serve.program"),
    "proxy": ("proxy.cli", "proxy.serve.program"),
    "wholeip run": ("wholeip.cli", "wholeip.agent.program"),
}
"""What each command imports until it runs; the second half is imported by the function of the command."""
WITHOUT_CLUSTER: Final = (
    "dnsproxy.cluster_dns.found",
    "dnsproxy.dnstap.collector",
    "dnsproxy.primary.primary",
    "dnsproxy.replica.replica",
    "dnsproxy.sources.cluster_sources",
    "dnsproxy.workers.pool",
    "httpcore2",
    "httpx2",
    "importlib.metadata",
    "sidecar.kubernetes.http",
    "sidecar.kubernetes.listwatch",
)
"""What only some servers need: `dnsproxy serve` imports it when the flags ask for it."""
ABSENT: Final = (
    "dns.message",
    "dns.resolver",
    "dnslib",
    "kubernetes",
    "oauthlib",
    "requests",
    "urllib3",
    "yaml",
)


@pytest.mark.parametrize("command", PROGRAMS)
def test_a_long_running_command_loads_no_package_that_it_does_not_need(command: str) -> None:
    loaded = loaded_by(PROGRAMS[command])
    assert "trio" in loaded
    assert loaded & set(ABSENT) == set()


def test_a_server_of_static_names_loads_nothing_for_clusters() -> None:
    assert loaded_by(PROGRAMS["dnsproxy serve"]) & set(WITHOUT_CLUSTER) == set()


def loaded_by(modules: Sequence[str]) -> set[str]:
    """The modules that a process has after the import of these."""
    script = "import sys\nfor name in sys.argv[1:]: __import__(name)\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script, *modules, "sidecar.cli.logs"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return set(result.stdout.split())
