"""Reads and changes our nftables table with the program nft; no other module runs it.

The law: a transaction is one run of nft, and so one batch for the kernel, which applies all of it or nothing (nft(8)).
Only our table is changed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

import trio

from wholeip.kernel.netlink_socket import netfilter_socket
from wholeip.kernel.table_dump import GiveWay, Place, dump_table, find_elements, read_generation
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
_FEW: Final = 100
"""Elements of which a script is made in well under a millisecond."""


class Table(Protocol):
    """The kernel's side of the reconciler; the tests have one in memory."""

    async def read_ruleset(self) -> Ruleset | None:
        """The ruleset in the kernel, or None without a table. Raises NftFailed."""

    async def dump_ruleset(self, *, give_way: GiveWay = trio.lowlevel.checkpoint) -> Ruleset | None:
        """The same in slices, with `give_way` in between, and each set as it is at another time. Raises NftFailed."""

    async def find_elements(self, wanted: Iterable[Place]) -> dict[Place, str]:
        """The values of those of some elements that are there, each asked for by its key: a dump may lack some.

        Intervals are not looked for, and an element that the kernel does not tell counts as absent.
        """

    async def read_generation(self) -> int | None:
        """A number that each transaction of any program changes; None if the kernel tells none."""

    async def apply(self, transaction: Transaction) -> None:
        """Apply all of it or nothing. Raises NftFailed."""

    async def delete_table(self) -> None:
        """Delete our table. Raises NftFailed."""

    async def watch_changes(
        self, changed: Callable[[], None], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Until cancelled, call `changed` when another program may have changed our table. Raises NftFailed."""


@dataclass
class Nft:
    """Our table in the kernel of this network namespace. Requires CAP_NET_ADMIN."""

    table: str = TABLE
    command: tuple[str, ...] = ("nft",)
    """The command that runs nft."""
    timeout_seconds: float = 30
    _own: list[int] = field(default_factory=list)
    """The process ids of the last runs, to recognise our own changes."""
    _starting: trio.Lock = field(default_factory=trio.Lock)
    """Held while nft starts and its process id is not known yet: nft may be done before that."""
    _changing: trio.Lock = field(default_factory=trio.Lock)
    """Held during each change of ours."""

    async def read_ruleset(self) -> Ruleset | None:
        """The ruleset in the kernel, or None without a table; its static part differs if anything in it is not ours.

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

    async def dump_ruleset(self, *, give_way: GiveWay = trio.lowlevel.checkpoint) -> Ruleset | None:
        """The same by netlink, in slices, with `give_way` in between, and each set as it is at another time.

        nft is asked only if there is no table, or an element that is not understood.

        Raises NftFailed.
        """
        found = await dump_table(self.table, self._changing, give_way)
        return await self.read_ruleset() if found is None else found

    async def find_elements(self, wanted: Iterable[Place]) -> dict[Place, str]:
        """The values of those of some elements that are there; see Table."""
        return await find_elements(self.table, wanted)

    async def read_generation(self) -> int | None:
        """A number that each transaction with any table changes; None if the kernel tells none."""
        return await read_generation()

    async def apply(self, transaction: Transaction) -> None:
        """Apply all of it at once. Raises NftFailed, and then nothing was applied."""
        if transaction:
            # A change of a few elements does not wait for a thread, which takes far longer on a busy node.
            if transaction.size <= _FEW:
                script = format_transaction(transaction)
            else:
                script = await trio.to_thread.run_sync(format_transaction, transaction)
            async with self._changing:
                await self._run(("--file", "-"), script)

    async def check(self, ruleset: Ruleset) -> None:
        """Check a ruleset without applying it. Raises NftFailed."""
        await self._run(("--check", "--file", "-"), format_ruleset(ruleset))

    async def delete_table(self) -> None:
        """Delete our table; no table is no error. Raises NftFailed."""
        async with self._changing:
            await self._run(("--file", "-"), f"add table inet {self.table}\ndelete table inet {self.table}\n")

    async def watch_changes(
        self, changed: Callable[[], None], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Until cancelled, call `changed` when another program may have changed our table.

        It starts once it listens: a read after that misses no change. It listens to the kernel and not to
        `nft monitor`, which reports neither its start nor, in JSON, the program that made a change.

        Raises NotPermitted or NoNfTables if the kernel gives no such events.
        """
        with await _listener() as listener:
            task_status.started()
            while True:
                try:
                    datagram = await listener.recv(_DATAGRAM_SIZE)
                except OSError as error:
                    if error.errno != errno.ENOBUFS:
                        raise
                    changed()  # more events than the buffer holds
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
            raise NoNft(f"the program {self.command[0]} is missing; install the package nftables") from error
        except PermissionError as error:
            raise NotPermitted(f"no permission to run {self.command[0]}: {error}") from error
        except OSError as error:
            raise Busy(f"{self.command[0]} cannot be run now: {error}") from error

    async def _wait(self, process: trio.Process) -> int:
        try:
            with trio.fail_after(self.timeout_seconds):
                return await process.wait()
        except trio.TooSlowError as error:
            raise NoAnswer(f"{self.command[0]} did not exit within {self.timeout_seconds:g} s") from error
        finally:
            with trio.CancelScope(shield=True):
                # A killed nft has applied all or nothing: the kernel has the batch or does not.
                process.kill()
                await process.wait()


@contextmanager
def _memory(content: bytes = b"") -> Iterator[int]:
    """A file in memory for the script and the output: it needs no task that serves a pipe."""
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
        raise NotPermitted(f"notifications of nftables changes require CAP_NET_ADMIN: {error}") from error
    except OSError as error:
        raise NoNfTables(f"the kernel has no notifications of nftables changes: {error}") from error
