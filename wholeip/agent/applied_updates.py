"""The updates that the kernel has applied, for the task that ends flows.

The law: an update of which it is not known whether the kernel has applied it, because nft was killed or lost the
answer, is passed on with the next one: by then, nothing in the kernel shows what it had before. Tested in
tests/wholeip/agent/test_reconciler.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wholeip.agent.update import Update
from wholeip.ruleset.nft_errors import NftFailed, Refused

OnApplied = Callable[[Update], None]
"""Receives each update that the kernel has applied; the first one also if there was nothing to change."""


class AppliedUpdates:
    """Passes updates on."""

    def __init__(self, on_applied: OnApplied | None) -> None:
        self._on_applied = on_applied
        self._doubted: Update | None = None
        """The updates since the last one that was passed on, as one."""

    @property
    def has_doubted(self) -> bool:
        """Whether an update waits for the next one."""
        return self._doubted is not None

    @contextmanager
    def doubting(self, update: Update) -> Iterator[None]:
        """The block applies this update; after any error but Refused, the kernel may have it all the same."""
        try:
            yield
        except Refused:
            raise
        except NftFailed:
            self._doubted = self._with_doubted(update)
            raise

    def note(self, update: Update) -> None:
        """The kernel has what this update asks for."""
        update, self._doubted = self._with_doubted(update), None
        if self._on_applied is not None:
            self._on_applied(update)

    def _with_doubted(self, update: Update) -> Update:
        return update if self._doubted is None else self._doubted.then(update)
