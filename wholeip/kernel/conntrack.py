"""Ends flows that the rules no longer allow: the rules judge the first packet alone, and the flow then continues.

The law: ruleset/ended_flows.py decides which flows end; each is ended by its identity alone.

The module asks the kernel directly: the program conntrack reads the whole table for each flow that it deletes, and
pyroute2 has an event loop of its own, while this needs two kinds of message.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import trio

from sidecar.loop.slices import in_slices
from wholeip.kernel.netlink_socket import netfilter_socket, route_socket
from wholeip.ruleset.ctnetlink import Flow, format_dump, format_end, parse_flows
from wholeip.ruleset.ended_flows import NO_EGRESS, NewEgress, find_ended, pack, relevant_addresses
from wholeip.ruleset.netlink import parse_answer
from wholeip.ruleset.nft_errors import NftFailed, NotPermitted
from wholeip.ruleset.rtnetlink import format_route_request, is_local_route
from wholeip.ruleset.ruleset import Ruleset

_DATAGRAM_SIZE = 65536
_TIMEOUT_SECONDS = 30
_OCTETS: dict[int, int] = {socket.AF_INET: 4, socket.AF_INET6: 16}
"""The length of an address, by family."""


class ConntrackFailed(NftFailed):
    """The kernel did not list or end flows, so some that no rule allows may continue."""


async def end_flows(
    before: Ruleset | None, after: Ruleset, egress: NewEgress = NO_EGRESS, between: Sequence[Ruleset] = ()
) -> int:
    """End the flows that a change of the rules no longer allows, after the kernel has `after`; returns their number.

    Flows that are older than the addresses of `egress` end too. `before` None: the previous rules are unknown, so of
    the others only flows that `after` alone shows to be wrong are ended. `between`: rulesets that the kernel had after
    `before`, in part. All may omit elements that did not change. Reads all flows of their address families.

    Raises ConntrackFailed or NotPermitted.
    """
    earlier = (before, *between)
    try:
        with trio.fail_after(_TIMEOUT_SECONDS), await netfilter_socket() as kernel:
            egress = replace(egress, addresses=await _without_local(egress.addresses))
            ours = await in_slices(relevant_addresses([*earlier, after]))
            sources = await in_slices(pack(egress.addresses))
            ended = 0
            for family, octets in _OCTETS.items():
                kept = (frozenset(one for one in some if len(one) == octets) for some in (ours, sources))
                flows = await _flows(kernel, family, *kept)
                ended += await _end_each(kernel, family, await in_slices(find_ended(flows, earlier, after, egress)))
            return ended
    except PermissionError as error:
        raise NotPermitted(f"no permission to end flows: {error}") from error
    except (OSError, struct.error, KeyError, trio.TooSlowError) as error:
        raise ConntrackFailed(f"flows were not ended: {error!r}") from error


async def _end_each(kernel: trio.socket.SocketType, family: int, flows: Iterable[Flow]) -> int:
    ended = 0
    for flow in flows:
        await kernel.send(format_end(flow, family))
        ended += await _answer(kernel) == 0
    return ended


async def _flows(
    kernel: trio.socket.SocketType, family: int, addresses: frozenset[bytes], sources: frozenset[bytes]
) -> list[Flow]:
    """All flows are read before the first one is ended: the kernel skips entries of a list during deletes."""
    flows: list[Flow] = []
    if not addresses and not sources:
        return flows
    await kernel.send(format_dump(family))
    while True:
        datagram = await kernel.recv(_DATAGRAM_SIZE)
        flows += parse_flows(datagram, addresses, sources)
        if (number := parse_answer(datagram)) is not None:
            _raise_errno(number)
            return flows


async def _without_local(addresses: Mapping[str, str]) -> dict[str, str]:
    """Without pods in the network of this node: the rules except the node's own traffic."""
    if not addresses:
        return {}
    with await route_socket() as kernel:
        return {pod: address for pod, address in addresses.items() if not await _is_local(kernel, pod)}


async def _is_local(kernel: trio.socket.SocketType, address: str) -> bool:
    # Not asked of bind(2): it takes any address where net.ipv4.ip_nonlocal_bind is set, as keepalived needs it.
    await kernel.send(format_route_request(address))
    return is_local_route(await kernel.recv(_DATAGRAM_SIZE))


async def _answer(kernel: trio.socket.SocketType) -> int:
    while (number := parse_answer(await kernel.recv(_DATAGRAM_SIZE))) is None:
        pass
    if number != errno.ENOENT:  # the flow has ended by itself
        _raise_errno(number)
    return number


def _raise_errno(number: int) -> None:
    if number:
        raise OSError(number, os.strerror(number))
