"""Sockets inside a network namespace: a process that holds the namespace and executes requests in lines of JSON.

The law: all that it opens ends with it, and it ends with its standard input.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Any

Message = dict[str, Any]
_OFFERED_SECONDS = 20.0
"""For what should happen; a busy machine may take its time."""
_ICMP = {socket.AF_INET: (socket.IPPROTO_ICMP, 8, 0), socket.AF_INET6: (socket.IPPROTO_ICMPV6, 128, 129)}
_IP_MTU = 14
_IPV6_MTU = 24


class Inside:
    """What is open in here, by number."""

    def __init__(self) -> None:
        self.opened: dict[int, socket.socket] = {}
        self.numbers = itertools.count()
        self.sprinkling: set[int] = set()

    def ready(self) -> None:
        """Answer, which tells that the namespace is there."""

    def serve(self, port: int) -> None:
        """Tell everyone who asks by TCP or UDP, IPv4 or IPv6, which address they come from."""
        stream, datagrams = (socket.socket(socket.AF_INET6, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM))
        for one in (stream, datagrams):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            one.bind(("::", port))
        stream.listen(64)
        _in_background(_accept, stream)
        _in_background(_answer_datagrams, datagrams)

    def ask(self, kind: str, address: str, port: int) -> str:
        """Who the server sees, from a socket of this once."""
        number = self.open(kind, address, port)
        answer = self.exchange(number)
        self.close(number)
        return answer

    def open(self, kind: str, address: str, port: int, source_port: int = 0, *, wait: bool = True) -> int:
        """A socket that is connected, or on its way to be."""
        one = socket.socket(_family(address), socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
        one.settimeout(_OFFERED_SECONDS)
        if source_port:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("", source_port))
        if not wait:
            one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.connect((address, port))
        return self._keep(one)

    def exchange(self, number: int, size: int = 1) -> str:
        """One question of so many octets and its answer."""
        one = self.opened[number]
        one.send(b"?" * size)
        return one.recv(100).decode()

    def send(self, number: int) -> None:
        """A question whose answer is not waited for."""
        self.opened[number].send(b"?")

    def is_connected(self, number: int) -> bool:
        """Whether the other side of a TCP connection has answered."""
        try:
            self.opened[number].getpeername()
        except OSError:
            return False
        return True

    def mtu(self, number: int) -> int:
        """What the kernel believes that the way to the other side takes."""
        one = self.opened[number]
        if one.family == socket.AF_INET:
            return one.getsockopt(socket.IPPROTO_IP, _IP_MTU)
        return one.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU)

    def name(self, number: int) -> list[Any]:
        """Address and port of this side."""
        return list(self.opened[number].getsockname()[:2])

    def close(self, number: int) -> None:
        """Be done with it."""
        self.opened.pop(number).close()

    def ping(self, address: str) -> str:
        """Who answers an echo request."""
        family = _family(address)
        protocol, request, reply = _ICMP[family]
        with socket.socket(family, socket.SOCK_RAW, protocol) as one:
            one.settimeout(_OFFERED_SECONDS)
            identity = os.getpid() & 0xFFFF
            packet = _icmp(family, request, struct.pack("!HH", identity, 1) + b"whole")
            one.sendto(packet, (address, 0))
            while True:
                data, source = one.recvfrom(2000)
                answer = data[20:] if family == socket.AF_INET else data
                if answer[0] == reply and struct.unpack("!H", answer[4:6])[0] == identity:
                    return str(source[0])

    def listen_raw(self, family: int, protocol: int) -> int:
        """Hear every packet of a protocol that comes in."""
        one = socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_RAW, protocol)
        one.settimeout(_OFFERED_SECONDS)
        return self._keep(one)

    def hear(self, number: int) -> list[str]:
        """Source and payload (hexadecimal, without the IPv4 header) of the next packet."""
        one = self.opened[number]
        data, source = one.recvfrom(2000)
        return [source[0], (data[(data[0] & 15) * 4 :] if one.family == socket.AF_INET else data).hex()]

    def send_raw(self, address: str, protocol: int, payload: str, hops: int = 0) -> None:
        """Send one packet with this payload."""
        with socket.socket(_family(address), socket.SOCK_RAW, protocol) as one:
            if hops:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
            one.sendto(bytes.fromhex(payload), (address, 0))

    def icmp_error(self, address: str, kind: int, code: int, rest: int, embedded: str) -> None:
        """Send an ICMP error as a router would: `rest` is the MTU, `embedded` the packet that it is about."""
        family = _family(address)
        with socket.socket(family, socket.SOCK_RAW, _ICMP[family][0]) as one:
            one.sendto(_icmp(family, kind, struct.pack("!I", rest) + bytes.fromhex(embedded), code), (address, 0))

    def sink(self, port: int) -> None:
        """Take datagrams and read none: what the kernel has no room for is lost where it arrived."""
        one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        one.bind(("::", port))
        self._keep(one)

    def blast(self, address: str, port: int, seconds: float) -> list[float]:
        """Datagrams of 64 octets one after another: how many, and the processor's time, the kernel's way included."""
        number = self.open("udp", address, port)
        one = self.opened[number]
        payload, count, begun, used = b"x" * 64, 0, time.monotonic(), time.process_time()
        while time.monotonic() < begun + seconds:
            for _ in range(200):
                with contextlib.suppress(OSError):  # the sender's own buffer is full
                    one.send(payload)
            count += 200
        self.close(number)
        return [count, time.process_time() - used, time.monotonic() - begun]

    def knock(self, address: str, port: int, seconds: float) -> list[float]:
        """Connections that are refused, one after another: how many, and the processor's time."""
        count, begun, used = 0, time.monotonic(), time.process_time()
        while time.monotonic() < begun + seconds:
            with socket.socket(_family(address), socket.SOCK_STREAM) as one:
                one.connect_ex((address, port))
            count += 1
        return [count, time.process_time() - used]

    def sprinkle(self, address: str, port: int) -> int:
        """A datagram every half millisecond, each a flow of its own, until `stop`."""
        number = next(self.numbers)
        self.sprinkling.add(number)
        _in_background(self._sprinkle, number, address, port)
        return number

    def _sprinkle(self, number: int, address: str, port: int) -> None:
        while number in self.sprinkling:
            with socket.socket(_family(address), socket.SOCK_DGRAM) as one:
                one.sendto(b"?", (address, port))
            time.sleep(0.0005)

    def stop(self, number: int) -> None:
        """No more of that."""
        self.sprinkling.discard(number)

    def arrival(self, number: int, source: str) -> float:
        """When the next packet from this source came; by a clock that all places share."""
        while self.opened[number].recvfrom(2000)[1][0] != source:
            pass
        return time.monotonic()

    def many_flows(self, address: str, port: int, count: int) -> None:
        """A datagram from each of so many ports."""
        for source_port in range(20000, 20000 + count):
            with socket.socket(_family(address), socket.SOCK_DGRAM) as one:
                with contextlib.suppress(OSError):  # another socket has it
                    one.bind(("", source_port))
                one.sendto(b"?", (address, port))

    def capture(self, interface: str) -> int:
        """Every packet on an interface, coming and going."""
        one = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        one.bind((interface, 3))
        return self._keep(one)

    def captured(self, number: int) -> list[list[str]]:
        """All that have passed since: "in" or "out", and the packet (hexadecimal, from the IP header on)."""
        one = self.opened[number]
        one.setblocking(False)
        packets = []
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, (_, _, kind, *_) = one.recvfrom(65536)
                packets.append(["out" if kind == socket.PACKET_OUTGOING else "in", packet.hex()])
        return packets

    def _keep(self, one: socket.socket) -> int:
        number = next(self.numbers)
        self.opened[number] = one
        return number


def _accept(listener: socket.socket) -> None:
    while True:
        connection, peer = listener.accept()
        _in_background(_answer_stream, connection, _plain(peer[0]))


def _answer_stream(connection: socket.socket, peer: str) -> None:
    with connection, contextlib.suppress(OSError):
        while connection.recv(100):
            connection.sendall(peer.encode())


def _answer_datagrams(datagrams: socket.socket) -> None:
    while True:
        _, peer = datagrams.recvfrom(65536)
        with contextlib.suppress(OSError):  # an ICMP error for an earlier answer
            datagrams.sendto(_plain(peer[0]).encode(), peer)


def _in_background(work: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _plain(address: str) -> str:
    """An IPv4 address as such where a socket of both families saw it."""
    parsed = ip_address(address)
    return str(parsed.ipv4_mapped or parsed) if isinstance(parsed, IPv6Address) else address


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _icmp(family: int, kind: int, rest: bytes, code: int = 0) -> bytes:
    """The checksum of ICMPv6 is the kernel's to make (RFC 3542 section 3.1)."""
    packet = struct.pack("!BBH", kind, code, 0) + rest
    if family == socket.AF_INET6:
        return packet
    padded = packet + b"\0" * (len(packet) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    total = (total & 0xFFFF) + (total >> 16)
    total += total >> 16
    return struct.pack("!BBH", kind, code, ~total & 0xFFFF) + rest


def main() -> None:
    """Read requests until there are no more."""
    inside = Inside()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = [True, getattr(inside, name)(**arguments)]
        except OSError as error:
            answer = [False, error.strerror or str(error)]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
