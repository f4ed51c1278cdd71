"""The limit of descriptors, and the shares of it. Tests that change a limit run in a process of their own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from sidecar.sockets import descriptors
from sidecar.sockets.descriptors import LEAST_FREE, admin_share, descriptor_limit, free_descriptors
from sidecar.values.errors import StartError
from tests.kit.launched import ROOT, limited


def run(code: str, *, open_files: tuple[int, int]) -> str:
    command = [*limited(open_files), sys.executable, "-c", f"from sidecar.sockets.descriptors import *\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=ROOT).stdout.strip()


@pytest.mark.parametrize(("soft", "hard"), [(64, 128), (128, 128), (256, 1024)])
def test_the_soft_limit_becomes_the_hard_one(soft: int, hard: int) -> None:
    code = "before = descriptor_limit(); raise_descriptor_limit(); print(before, descriptor_limit())"
    assert run(code, open_files=(soft, hard)) == f"{soft} {hard}"


def test_a_kernel_that_refuses_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    before = descriptor_limit()
    descriptors.raise_descriptor_limit()
    assert descriptor_limit() == before


@pytest.mark.parametrize("limit", [resource.RLIM_INFINITY, 1_073_741_816])
def test_a_limit_without_end_is_a_number_to_divide(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))
    assert descriptor_limit() == 1_048_576


@pytest.mark.parametrize(("limit", "share"), [(1, 4), (64, 8), (1024, 128), (8192, 256), (1_048_576, 256)])
def test_the_admin_port_has_a_share_of_any_limit(limit: int, share: int) -> None:
    assert admin_share(limit) == share


def test_open_descriptors_and_those_to_come_are_not_free() -> None:
    code = "print(free_descriptors(), free_descriptors(upcoming=7)); f = open('/dev/null'); print(free_descriptors())"
    first, later = run(code, open_files=(200, 200)).splitlines()
    free, without = map(int, first.split())
    assert (free - without, free - int(later)) == (7, 1)
    assert 190 <= free < 200


def test_too_few_are_an_error_that_names_the_limit_and_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "descriptor_limit", lambda: 40)
    monkeypatch.setattr(descriptors, "_open_descriptors", lambda: 15)
    assert free_descriptors() == 25
    assert LEAST_FREE == 24
    with pytest.raises(StartError, match="the limit of open files is 40, and at least 41 are needed; raise it"):
        free_descriptors(upcoming=2)


def test_without_a_list_of_descriptors_a_number_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_path: str) -> list[str]:
        raise FileNotFoundError

    monkeypatch.setattr(descriptors, "descriptor_limit", lambda: 100)
    monkeypatch.setattr(os, "listdir", missing)
    assert free_descriptors() == 84
