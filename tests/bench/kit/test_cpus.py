from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.bench.kit.cpus import Cpus, pinned, split_cpus


@pytest.mark.parametrize(
    ("available", "pin", "expected"),
    [
        pytest.param({0, 1}, True, Cpus(frozenset({0}), frozenset({1})), id="one each"),
        pytest.param({2, 3, 5}, True, Cpus(frozenset({2}), frozenset({3, 5})), id="the load has all others"),
        pytest.param({4}, True, Cpus(frozenset({4}), frozenset({4})), id="only one"),
        pytest.param({0, 1}, False, Cpus(frozenset({0, 1}), frozenset({0, 1})), id="not pinned"),
    ],
)
def test_the_server_has_a_processor_of_its_own_where_there_are_two(
    available: set[int], pin: bool, expected: Cpus
) -> None:
    assert split_cpus(available, pin=pin) == expected


def test_what_is_started_in_the_block_is_pinned_and_we_are_not_afterwards() -> None:
    before = os.sched_getaffinity(0)
    one = {min(before)}
    with pinned(one):
        shown = subprocess.check_output([sys.executable, "-c", "import os; print(os.sched_getaffinity(0))"])
    assert shown.decode().strip() == str(one)
    assert os.sched_getaffinity(0) == before
