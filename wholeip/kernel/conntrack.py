"""Ends flows that the rules no longer allow: a flow is judged by its first packet alone, and then goes on.

The law: no flow is ended but by the judgement of `conntrack_flows`, and each by what names it alone.

Asked of the kernel itself: the program conntrack reads the whole table for each thing that it deletes, and pyroute2
brings an event loop of another kind, where this takes two kinds of message.
"""

from __future__ import annotations

import errno
import os
import socket
import struct

import trio

from wholeip.kernel.netlink_socket import netfilter_socket
from wholeip.ruleset.flows import (
    Flow,
    format_dump,
    format_end,
    is_ended,
    parse_answer,
    parse_flows,
    relevant_addresses,
)
from wholeip.ruleset.nft_errors import NftFailed, NotPermitted
from wholeip.ruleset.ruleset import Ruleset

_DATAGRAM_SIZE = 65536
_TIMEOUT_SECONDS = 30
_OCTETS: dict[int, int] = {socket.AF_INET: 4, socket.AF_INET6: 16}
"""Of an address."""


class ConntrackFailed(NftFailed):
    """The kernel did not list or end flows, so some may go on that no rule allows any more."""


async def end_flows(before: Ruleset | None, after: Ruleset) -> int:
    """End what the change of the rules no longer allows, once `after` is in the kernel; give how many ended.

    Without `before`, it is unknown what was there: only what is wrong by `after` alone is ended. Both may leave out
    what did not change. Reads every flow that the kernel tracks in their families. Raises ConntrackFailed or
    NotPermitted.
    """
    try:
        with trio.fail_after(_TIMEOUT_SECONDS), await netfilter_socket() as asked:
            return sum([await _end_flows(asked, family, before, after) for family in (socket.AF_INET, socket.AF_INET6)])
    except PermissionError as error:
        raise NotPermitted(f"flows are not ours to end: {error}") from error
    except (OSError, struct.error, KeyError, trio.TooSlowError) as error:
        raise ConntrackFailed(f"flows were not ended: {error!r}") from error


async def _end_flows(asked: trio.socket.SocketType, family: int, before: Ruleset | None, after: Ruleset) -> int:
    ended = 0
    addresses = frozenset(one for one in relevant_addresses(before, after) if len(one) == _OCTETS[family])
    for flow in await _flows(asked, family, addresses):
        if is_ended(flow, before, after):
            await asked.send(format_end(flow, family))
            ended += await _answer(asked) == 0
    return ended


async def _flows(asked: trio.socket.SocketType, family: int, addresses: frozenset[bytes]) -> list[Flow]:
    """All are read before the first is ended: what is deleted meanwhile makes a list skip."""
    flows: list[Flow] = []
    if not addresses:
        return flows
    await asked.send(format_dump(family))
    while True:
        datagram = await asked.recv(_DATAGRAM_SIZE)
        flows += parse_flows(datagram, addresses)
        if (number := parse_answer(datagram)) is not None:
            _judge(number)
            return flows


async def _answer(asked: trio.socket.SocketType) -> int:
    while (number := parse_answer(await asked.recv(_DATAGRAM_SIZE))) is None:
        pass
    if number != errno.ENOENT:  # it has ended by itself
        _judge(number)
    return number


def _judge(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))
