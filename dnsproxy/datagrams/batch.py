"""Up to 64 datagrams a system call: recvmmsg(2) and sendmmsg(2), through ctypes.

The law: the contract of port.DatagramPort, and the same result as one system call per datagram. Buffers and headers are
made once; between two system calls they are touched in bulk through strided views, because a Python statement per field
and datagram would cost as much as the batch saves. A reply has two parts: its ID, which the kernel takes from the
buffer of the query, and its body.
"""

from __future__ import annotations

import array
import ctypes
import errno
import itertools
import socket
from collections.abc import Sequence

from dnsproxy.datagrams.headers import NAME_SIZES, Headers, addresses, chosen, lengths_of, mapped, pinned, system_calls
from dnsproxy.datagrams.late_replies import Late, LateReplies
from dnsproxy.datagrams.port import BATCH, CONTROL, ID, MESSAGE, Sender, age_of_last, ask_for_destination

_NAME = max(NAME_SIZES.values())
_CMSG_HEADER = 16
_DONTWAIT = int(socket.MSG_DONTWAIT)
_SLOT = MESSAGE + 64  # not a power of two: the starts of all slots would share a few cache lines
# struct sockaddr_in and sockaddr_in6 start alike: family, port, and then the address.
_PORT_START, _PORT_END = 2, 4
_IPV4, _IPV6 = 4, 16
_IPV6_START = 8  # behind the port and the flow label


class BatchPort:
    """Up to BATCH datagrams a system call."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.send_errors = 0
        self._descriptor = sock.fileno()
        self._local = ask_for_destination(sock)
        self._recvmmsg, self._sendmmsg = system_calls()
        self._late = LateReplies(sock, local=self._local)
        self._posted: list[Late] = []
        self._lay_headers()
        self._lengths: list[int] = []
        self._in_order = True

    def _lay_headers(self) -> None:
        """Make the buffers, and the headers that point to them, once."""
        self._input, source = mapped(_SLOT * BATCH)
        self._output, self._output_base = pinned(MESSAGE * BATCH)
        self._names, name = mapped(_NAME * BATCH)
        self._controls, control = mapped(CONTROL * BATCH)
        self._incoming, self._outgoing = Headers(), Headers(parts=2)
        self._starts = range(0, _SLOT * BATCH, _SLOT)
        self._bodies = range(ID, _SLOT * BATCH, _SLOT)
        self._id_addresses = addresses(source, _SLOT)
        self._name_addresses = addresses(name, _NAME)
        self._control_addresses = addresses(control, CONTROL)
        # All addresses of one IP family have one size, so the kernel leaves the lengths here unchanged.
        self._names_vary = self.socket.family not in NAME_SIZES
        self._name_size = NAME_SIZES.get(self.socket.family, _NAME)
        self._full_names = array.array("I", [self._name_size] * BATCH)
        self._full_controls = lengths_of(CONTROL)
        self._no_interface = array.array("I", [0] * BATCH)
        incoming = self._incoming
        incoming.bases[:] = self._id_addresses
        incoming.sizes[:] = lengths_of(MESSAGE)
        if self._local:
            incoming.control_lengths[:] = self._full_controls
        # The kernel takes the ID of a reply from the buffer of the query.
        self._outgoing.first_bases[:] = self._id_addresses
        self._outgoing.first_sizes[:] = lengths_of(ID)
        for headers in (self._incoming, self._outgoing):
            headers.names[:] = self._name_addresses
            headers.name_lengths[:] = self._full_names
            if self._local:
                headers.controls[:] = self._control_addresses
        # struct in_pktinfo starts with the interface, struct in6_pktinfo ends with it.
        interface = _CMSG_HEADER + (16 if self.socket.family == socket.AF_INET6 else 0)
        self._interfaces = memoryview(self._controls).cast("I")[interface // 4 :: CONTROL // 4]
        self._incoming_pointer = ctypes.byref(incoming.headers)
        self._outgoing_pointer = ctypes.byref(self._outgoing.headers)

    def receive(self, limit: int = BATCH) -> list[bytes]:
        """See DatagramPort."""
        incoming = self._incoming
        if self._names_vary or self._local:
            self._restore_lengths()
        count = self._recvmmsg(self._descriptor, self._incoming_pointer, limit, _DONTWAIT, None)
        if count <= 0:
            # -1 is EAGAIN, or an ICMP error for an earlier reply, which the kernel reports only once.
            self._lengths = []
            return []
        octets = self._input
        if count == 1:
            length = incoming.lengths[0]
            self._lengths = [length]
            return [octets[ID:length]]
        self._lengths = lengths = incoming.lengths[:count].tolist()
        return [
            octets[body : start + length]
            for body, start, length in zip(self._bodies, self._starts, lengths, strict=False)
        ]

    def _restore_lengths(self) -> None:
        """Give the last batch's headers the room for an address and a control message again."""
        incoming, used = self._incoming, len(self._lengths)
        if self._names_vary:
            incoming.name_lengths[:used] = self._full_names[:used]
        if self._local and used == 1:
            incoming.control_lengths[0] = CONTROL
        elif self._local:
            incoming.control_lengths[:used] = self._full_controls[:used]

    def age(self) -> float:
        """See DatagramPort."""
        return age_of_last(self.socket)

    def message(self, position: int) -> bytes:
        """See DatagramPort."""
        start = self._starts[position]
        return self._input[start : start + self._lengths[position]]

    def send(self, bodies: Sequence[bytes | None]) -> None:
        """See DatagramPort."""
        if len(bodies) == 1:
            if bodies[0] is not None:
                self._send_one(bodies[0])
            return
        taken: Sequence[int] = range(len(bodies))
        present: Sequence[bytes] = bodies  # type: ignore[assignment]
        try:
            octets = b"".join(present)
        except TypeError:
            # Cheaper than searching each batch for a None.
            taken = [position for position, body in enumerate(bodies) if body is not None]
            present = [body for body in bodies if body is not None]
            octets = b"".join(present)
        if len(octets) > len(self._output):
            late = [
                (self.message(position)[:ID] + body, self.sender(position))
                for body, position in zip(present, taken, strict=True)
            ]
            self.send_errors += self._late.send(late)
        elif present:
            self._output[: len(octets)] = octets
            self._lay_out(present, taken)
            self._transmit(len(present))

    def _send_one(self, body: bytes) -> None:
        """As _lay_out and _transmit for a batch of one, which is most of them unless there is load."""
        incoming, outgoing, size = self._incoming, self._outgoing, len(body)
        self._output[:size] = body
        outgoing.sizes[0], outgoing.bases[0] = size, self._output_base
        if self._names_vary:
            outgoing.name_lengths[0] = incoming.name_lengths[0]
        if self._local:
            self._interfaces[0] = 0
            outgoing.control_lengths[0] = incoming.control_lengths[0]
        if not self._in_order:
            self._point(range(1))
        self._transmit(1)

    def _lay_out(self, bodies: Sequence[bytes], taken: Sequence[int]) -> None:
        """Write the headers for sendmmsg. The n-th reply goes to sender taken[n]."""
        count = len(bodies)
        outgoing, incoming = self._outgoing, self._incoming
        lengths = list(map(len, bodies))
        starts = list(itertools.accumulate(lengths, initial=self._output_base))
        outgoing.sizes[:count] = array.array("Q", lengths)
        outgoing.bases[:count] = array.array("Q", starts[:count])
        if self._names_vary:
            outgoing.name_lengths[:count] = chosen(incoming.name_lengths, taken)
        if self._local:
            self._interfaces[:] = self._no_interface
            outgoing.control_lengths[:count] = chosen(incoming.control_lengths, taken)
        self._point(taken)

    def _point(self, taken: Sequence[int]) -> None:
        """Point the n-th outgoing header to the address buffers of incoming header taken[n]."""
        in_order = isinstance(taken, range)
        if in_order and self._in_order:
            return
        places = range(BATCH) if in_order else taken
        count = len(places)
        self._outgoing.first_bases[:count] = chosen(self._id_addresses, places)
        self._outgoing.names[:count] = chosen(self._name_addresses, places)
        if self._local:
            self._outgoing.controls[:count] = chosen(self._control_addresses, places)
        self._in_order = in_order

    def _transmit(self, count: int) -> None:
        sent = self._sendmmsg(self._descriptor, self._outgoing_pointer, count, _DONTWAIT)
        while sent < count:
            # sendmmsg stops at the first datagram that fails, and reports why only if it is the first of a call.
            sent = max(sent, 0)
            reason = 0 if sent else ctypes.get_errno()
            if reason == errno.EAGAIN:
                self.send_errors += count
                return
            if reason:
                self.send_errors += 1
                sent = 1
            count -= sent
            self._shift(sent, count)
            if not count:
                return
            sent = self._sendmmsg(self._descriptor, self._outgoing_pointer, count, _DONTWAIT)

    def _shift(self, done: int, left: int) -> None:
        """Move the remaining headers to the front. The senders are then no longer in the order of the batch."""
        moved = self._outgoing
        sender = (moved.first_bases, moved.names, moved.name_lengths, moved.controls, moved.control_lengths)
        for view in (moved.sizes, moved.bases, *sender):
            view[:left] = array.array(view.format, view[done : done + left].tolist())
        self._in_order = False

    def sender(self, position: int) -> Sender:
        """See DatagramPort."""
        start = position * _NAME
        size = self._incoming.name_lengths[position] if self._names_vary else self._name_size
        address = self._names[start : start + size]
        if not self._local:
            return address, b"", address[_PORT_END:]
        self._interfaces[position] = 0
        start = position * CONTROL
        control = self._controls[start : start + self._incoming.control_lengths[position]]
        return address, control, address[_PORT_END:]

    def post(self, message: bytes, sender: Sender) -> None:
        """See DatagramPort."""
        self._posted.append((message, sender))

    def flush(self) -> None:
        """See DatagramPort."""
        posted, self._posted = self._posted, []
        self.send_errors += self._late.send(posted)

    def source_port(self, sender: Sender) -> int:
        """See DatagramPort."""
        return int.from_bytes(sender[0][_PORT_START:_PORT_END], "big")

    def host(self, sender: Sender) -> str:
        """See DatagramPort."""
        name: bytes = sender[0]
        if len(name) == NAME_SIZES[socket.AF_INET]:
            return socket.inet_ntop(socket.AF_INET, name[_PORT_END : _PORT_END + _IPV4])
        return socket.inet_ntop(socket.AF_INET6, name[_IPV6_START : _IPV6_START + _IPV6])
