"""The kernel's nftables by way of the program nft: the one place that runs it.

The law: a transaction is one run of nft, and so one batch to the kernel, which takes all of it or nothing (nft(8)); no
table but ours is touched.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

import trio

from wholeip.kernel.netlink_socket import netfilter_socket
from wholeip.ruleset.nft_errors import (
    NOT_THERE,
    Busy,
    NoAnswer,
    NoNft,
    NoNfTables,
    NotPermitted,
    Refused,
    UnknownListing,
    judge_failure,
)
from wholeip.ruleset.nft_events import is_change
from wholeip.ruleset.nft_listing import NoListing, parse_listing
from wholeip.ruleset.ruleset import TABLE, Ruleset, Transaction, format_ruleset, format_transaction

_NETLINK_GROUP: Final = 7
"""NFNLGRP_NFTABLES of linux/netfilter/nfnetlink.h."""
_DATAGRAM_SIZE: Final = 65536
_REMEMBERED_RUNS: Final = 64


class Table(Protocol):
    """What the agent needs of a kernel; the tests have one in memory."""

    async def read_ruleset(self) -> Ruleset | None:
        """What the kernel has, or None without a table. Raises NftFailed."""

    async def apply(self, transaction: Transaction) -> None:
        """All of it or nothing. Raises NftFailed."""

    async def delete_table(self) -> None:
        """Remove all that is ours. Raises NftFailed."""

    async def watch_changes(
        self, changed: Callable[[], None], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Until cancelled, call `changed` whenever somebody else may have changed our table. Raises NftFailed."""


@dataclass
class Nft:
    """Our table in the kernel of this network namespace. Takes CAP_NET_ADMIN."""

    table: str = TABLE
    command: tuple[str, ...] = ("nft",)
    """What runs nft here."""
    timeout_seconds: float = 30
    _own: list[int] = field(default_factory=list)
    """The process ids of the last runs, by which our own changes are known."""
    _starting: trio.Lock = field(default_factory=trio.Lock)
    """Held while a run has begun whose process id is not known yet: it may be done before that."""

    async def read_ruleset(self) -> Ruleset | None:
        """What the kernel has, or None without a table; its static part differs where anything in it is not ours.

        Raises NftFailed.
        """
        arguments = ("--json", "--numeric", "list", "table", "inet", self.table)
        try:
            listing = await self._run(arguments)
        except Refused as refused:
            if refused.message == NOT_THERE:
                return None
            raise
        try:
            return await trio.to_thread.run_sync(parse_listing, listing, self.table)
        except NoListing as error:
            raise UnknownListing(str(error)) from error

    async def apply(self, transaction: Transaction) -> None:
        """Do all of it at once. Raises NftFailed, and then nothing of it was done."""
        if transaction:
            script = await trio.to_thread.run_sync(format_transaction, transaction)
            await self._run(("--file", "-"), script)

    async def check(self, ruleset: Ruleset) -> None:
        """Have it judged as if it were applied. Raises NftFailed."""
        await self._run(("--check", "--file", "-"), format_ruleset(ruleset))

    async def delete_table(self) -> None:
        """Remove all that is ours; well if there is none. Raises NftFailed."""
        await self._run(("--file", "-"), f"add table inet {self.table}\ndelete table inet {self.table}\n")

    async def watch_changes(
        self, changed: Callable[[], None], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Until cancelled, call `changed` whenever somebody else may have changed our table: then compare.

        Started once it listens: what is read after that misses nothing. It listens to the kernel itself, and not to
        `nft monitor`, which says neither when it has begun nor, in JSON, who changed something.

        Raises NotPermitted or NoNfTables where the kernel gives no such events.
        """
        with await _listener() as listener:
            task_status.started()
            while True:
                try:
                    datagram = await listener.recv(_DATAGRAM_SIZE)
                except OSError as error:
                    if error.errno != errno.ENOBUFS:
                        raise
                    changed()  # more happened than the buffer holds
                    continue
                async with self._starting:
                    own = frozenset(self._own)
                if is_change(datagram, self.table, own):
                    changed()

    async def _run(self, arguments: Sequence[str], script: str = "") -> str:
        try:
            with _memory(script.encode()) as stdin, _memory() as stdout, _memory() as stderr:
                async with self._starting:
                    process = await trio.lowlevel.open_process(
                        (*self.command, *arguments), stdin=stdin, stdout=stdout, stderr=stderr
                    )
                    self._own = [*self._own[-_REMEMBERED_RUNS:], process.pid]
                if await self._wait(process) != 0:
                    raise judge_failure(_content(stderr), script)
                return _content(stdout)
        except FileNotFoundError as error:
            raise NoNft(f"there is no program {self.command[0]}") from error
        except PermissionError as error:
            raise NotPermitted(f"{self.command[0]} may not be run: {error}") from error
        except OSError as error:
            raise Busy(f"{self.command[0]} cannot be run now: {error}") from error

    async def _wait(self, process: trio.Process) -> int:
        try:
            with trio.fail_after(self.timeout_seconds):
                return await process.wait()
        except trio.TooSlowError as error:
            raise NoAnswer(f"{self.command[0]} did not end within {self.timeout_seconds:g} s") from error
        finally:
            with trio.CancelScope(shield=True):
                # Cut short, it has applied all or nothing: the kernel has the batch or does not.
                process.kill()
                await process.wait()


@contextmanager
def _memory(content: bytes = b"") -> Iterator[int]:
    """A file in memory: a script is fed and an answer is kept without a pipe that somebody has to serve."""
    descriptor = os.memfd_create("nft")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _content(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


async def _listener() -> trio.socket.SocketType:
    try:
        return await netfilter_socket(group=_NETLINK_GROUP)
    except PermissionError as error:
        raise NotPermitted(f"the kernel tells of changes to nftables to CAP_NET_ADMIN alone: {error}") from error
    except OSError as error:
        raise NoNfTables(f"the kernel does not tell of changes to nftables: {error}") from error
