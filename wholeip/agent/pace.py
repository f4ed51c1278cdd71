"""The times between what the agent does with the kernel.

The law: seconds alone; nothing waits here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReconcilePace:
    """Times in seconds."""

    gather: float = 0.01
    """After a transaction; changes that arrive meanwhile go into the next one."""
    backoff_first: float = 0.25
    backoff_limit: float = 30.0
    resync: float = 60.0
    """Between two comparisons with the kernel, while it notifies us of changes."""
    resync_blind: float = 10.0
    """The same without notifications."""
    after_repair: float = 1.0
    """From a repair to the next comparison: a program that keeps changing the table must not set our pace."""
