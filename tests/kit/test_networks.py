from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.kit.networks import Network, one_network, root

__all__ = ["root"]
pytestmark = pytest.mark.peer("unshare", "ip")

NETWORK = Path("/proc/thread-self/ns/net")


@pytest.fixture
def network(root: None) -> Iterator[Network]:  # noqa: ARG001  # skips who is not
    with one_network() as made:
        yield made


def of_a_thread() -> str:
    """The network in which trio would start a program: that of its worker thread."""
    return str(trio.run(trio.to_thread.run_sync, NETWORK.readlink))


def of_all_threads() -> set[str]:
    return {os.readlink(f"/proc/self/task/{one}/ns/net") for one in os.listdir("/proc/self/task")}


def test_a_thread_that_was_kept_from_before_is_not_used_inside(network: Network) -> None:
    before = of_a_thread()
    with network.entered():
        assert of_a_thread() == str(NETWORK.readlink())
        assert str(NETWORK.readlink()) != before
    assert of_a_thread() == before


def test_no_thread_stays_behind(network: Network) -> None:
    with network.entered():
        inside = of_a_thread()
        assert inside in of_all_threads()
    assert inside not in of_all_threads()


def test_a_network_may_be_entered_twice(network: Network) -> None:
    before = str(NETWORK.readlink())
    with network.entered(), network.entered():
        inside = of_a_thread()
    assert inside != before
    assert of_all_threads() == {before}


def test_an_error_leaves_it(network: Network) -> None:
    before = str(NETWORK.readlink())
    with pytest.raises(ZeroDivisionError), network.entered():
        trio.run(trio.to_thread.run_sync, lambda: 1 // 0)
    assert of_a_thread() == before
