from __future__ import annotations

import os

import pytest

from tests.bench.fleet.usage import parse_shares, read_run_time, read_session_memory


def test_memory_is_read_in_shares() -> None:
    text = "5571-7fff ---p 00000000 00:00 0  [rollup]\nRss:  2048 kB\nPss:  1024 kB\nPss_Anon:  1 kB\n"
    assert parse_shares(text) == (2.0, 1.0)


@pytest.mark.parametrize("text", ["", "Rss: 5 kB\n"])
def test_without_both_there_is_no_memory(text: str) -> None:
    with pytest.raises(KeyError):
        parse_shares(text)


def test_our_own_process_has_time_and_its_session_memory() -> None:
    assert read_run_time(os.getpid()) > 0
    assert read_session_memory(os.getsid(0)) > 0
