"""The programs that build a release: what they are given, and what a failure says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from release.commands import own_program, peer_program, run
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

SHOW = "import os; print(*(os.environ.get(one) for one in ('SOURCE_DATE_EPOCH', 'TZ', 'PYTHONPATH', 'MORE')))"


def test_a_program_gets_the_commits_time_and_not_our_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SOURCE_DATE_EPOCH", "1"), ("TZ", "Asia/Tokyo"), ("PYTHONPATH", "/nowhere")):
        monkeypatch.setenv(name, value)
    assert run(sys.executable, "-c", SHOW, epoch=9, more={"MORE": "a"}) == "9 UTC None a\n"


def test_a_failure_has_the_end_of_the_output_and_the_status() -> None:
    with pytest.raises(StartError, match=r"failed with status 7: x+the reason$") as caught:
        run(sys.executable, "-c", "import sys; print('x' * 5000 + 'the reason', file=sys.stderr); sys.exit(7)")
    assert caught.value.status == ExitStatus.UNKNOWN
    assert len(str(caught.value)) < 2000


def test_a_peer_of_the_cache_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "cache" / "tool-v1.2.3" / "tool"
    plain = tmp_path / "bin" / "tool"
    for one in (plain, built):
        one.parent.mkdir(parents=True)
        one.write_text("#!/bin/sh\n")
        one.chmod(0o755)
    monkeypatch.setenv("PATH", str(plain.parent))
    monkeypatch.setenv("SWITCHBACK_PEERS", str(tmp_path / "cache"))
    assert peer_program("tool") == str(built)
    built.unlink()
    assert peer_program("tool") == str(plain)
    plain.unlink()
    with pytest.raises(StartError, match="tool is missing: run `make release-peers`"):
        peer_program("tool")


def test_a_program_of_the_environment_is_beside_its_python() -> None:
    assert Path(own_program("uv")).parent == Path(sys.executable).parent
    with pytest.raises(StartError, match="nothing is missing: run this with `make release`"):
        own_program("nothing")
