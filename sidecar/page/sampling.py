"""Fills a history while a program runs.

The law: a sample costs a few microseconds, whoever looks or not, so that a page that is opened after a fault shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from sidecar.page.history import EVERY, History


async def keep_sampling(history: History, read: Callable[[], Mapping[str, float]]) -> None:
    """Take a sample every EVERY seconds until cancelled."""
    while True:
        history.take(trio.current_time(), read())
        await trio.sleep(EVERY)
