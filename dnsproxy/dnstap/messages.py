"""dnstap messages: what a Seen is in the words of dnstap.proto (https://dnstap.info), as protobuf octets.

Protobuf here is three kinds of field: the library would be a dependency with compiled code, 4 MB of memory and 12 ms of
each start. The real `dnstap` program reads what this module writes, in tests/peers/test_dnstap.py.

The law: octets, addresses and times are those of the network; what is not known is left out and never guessed. An
exchange that several clients shared appears once, with the client that caused it. Pure.
"""

from __future__ import annotations

from enum import IntEnum
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from dnsproxy.tap.seen import Exchange, Seen
from sidecar.values.endpoints import parse_endpoint

# Protobuf's wire types (https://protobuf.dev/programming-guides/encoding/); no field here has a number above 15, so
# each key is one octet.
_VARINT: Final = 0
_LENGTH: Final = 2
_FIXED32: Final = 5

_IDENTITY, _VERSION, _MESSAGE, _TYPE = 1, 2, 14, 15
"""Fields of Dnstap."""
_IS_MESSAGE: Final = 1
_SEVEN_BITS: Final = 0x7F
_ONE_OCTET: Final = tuple(bytes((number,)) for number in range(_SEVEN_BITS + 1))
_IPV4_OCTETS: Final = 4
_BILLION: Final = 1_000_000_000
_KNOWN: Final = 1_000


class Kind(IntEnum):
    """Message.Type, as far as this server has them."""

    CLIENT_QUERY = 5
    CLIENT_RESPONSE = 6
    FORWARDER_QUERY = 7
    FORWARDER_RESPONSE = 8


class Protocol(IntEnum):
    """SocketProtocol."""

    UDP = 1
    TCP = 2
    DOT = 3


class Peer(NamedTuple):
    """The other side of a message."""

    address: bytes
    """4 or 16 octets."""
    port: int
    """0 if it is not known."""
    protocol: Protocol


def varint(number: int) -> bytes:
    """Protobuf's form of a number that is not negative."""
    if number <= _SEVEN_BITS:
        return _ONE_OCTET[number]
    octets = bytearray()
    while number > _SEVEN_BITS:
        octets.append(number & _SEVEN_BITS | _SEVEN_BITS + 1)
        number >>= 7
    octets.append(number)
    return bytes(octets)


def _number(field: int, value: int) -> bytes:
    return _ONE_OCTET[field << 3 | _VARINT] + varint(value)


def _octets(field: int, value: bytes) -> bytes:
    return _ONE_OCTET[field << 3 | _LENGTH] + varint(len(value)) + value


def _time(field: int, nanoseconds: int) -> bytes:
    """Two fields: whole seconds, and nanoseconds in the next number."""
    seconds, rest = divmod(max(0, nanoseconds), _BILLION)
    return _number(field, seconds) + _ONE_OCTET[field + 1 << 3 | _FIXED32] + rest.to_bytes(4, "little")


class MessageWriter:
    """Writes the messages of one server."""

    def __init__(self, *, identity: str, version: str) -> None:
        words = ((_IDENTITY, identity), (_VERSION, version))
        self._prefix = b"".join(_octets(field, text.encode()) for field, text in words if text)
        self._prefix += _number(_TYPE, _IS_MESSAGE)
        self._upstreams: dict[tuple[str, bool], Peer] = {}
        self._addresses: dict[str, bytes] = {}

    def messages_of(self, seen: Seen) -> list[bytes]:
        """The messages of one query, in the order of their times."""
        ended = round(seen.time * _BILLION)
        arrived = ended - round(seen.seconds * _BILLION)
        client = Peer(self._address(seen.client), seen.port, Protocol.UDP if seen.datagram else Protocol.TCP)
        messages = [self._query(Kind.CLIENT_QUERY, client, arrived, seen.query)]
        if seen.exchange is not None and seen.exchange.query:
            messages += self._exchange(seen.exchange, arrived, ended)
        if seen.reply:
            messages.append(self._response(Kind.CLIENT_RESPONSE, client, (arrived, ended), seen.reply))
        return messages

    def _exchange(self, exchange: Exchange, arrived: int, ended: int) -> list[bytes]:
        """Before its client's end. A clock that was set meanwhile must not put it before its client's question."""
        asked = max(arrived, ended - round(exchange.seconds * _BILLION))
        upstream = self._upstream(exchange.upstream, datagram=exchange.datagram)
        return [
            self._query(Kind.FORWARDER_QUERY, upstream, asked, exchange.query),
            self._response(Kind.FORWARDER_RESPONSE, upstream, (asked, ended), exchange.reply),
        ]

    def _query(self, kind: Kind, peer: Peer, asked: int, message: bytes) -> bytes:
        return self._wrap(_socket(kind, peer) + _time(8, asked) + _octets(10, message))

    def _response(self, kind: Kind, peer: Peer, times: tuple[int, int], message: bytes) -> bytes:
        asked, answered = times
        return self._wrap(_socket(kind, peer) + _time(8, asked) + _time(12, answered) + _octets(14, message))

    def _wrap(self, message: bytes) -> bytes:
        return self._prefix + _octets(_MESSAGE, message)

    def _address(self, host: str) -> bytes:
        """Remembered, because reading an address is half of the work, and behind a resolver clients are few."""
        known = self._addresses.get(host)
        if known is None:
            if len(self._addresses) >= _KNOWN:
                self._addresses.clear()
            known = self._addresses[host] = _packed(host)
        return known

    def _upstream(self, text: str, *, datagram: bool) -> Peer:
        key = text, datagram
        known = self._upstreams.get(key)
        if known is None:
            if len(self._upstreams) >= _KNOWN:  # upstreams that follow a ConfigMap may change for ever
                self._upstreams.clear()
            known = self._upstreams[key] = parse_peer(text, datagram=datagram)
        return known


def parse_peer(upstream: str, *, datagram: bool) -> Peer:
    """The peer of an Exchange: `192.0.2.53:53`, `tcp://…`, `tls://ADDR:PORT#NAME`. Raises ValueError."""
    scheme, mark, rest = upstream.rpartition("://")
    endpoint = parse_endpoint(rest.partition("#")[0])
    secure = bool(mark) and scheme == "tls"
    protocol = Protocol.DOT if secure else Protocol.UDP if datagram else Protocol.TCP
    return Peer(_packed(endpoint.host), endpoint.port, protocol)


def _packed(host: str) -> bytes:
    address = ip_address(host)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).packed


def _socket(kind: Kind, peer: Peer) -> bytes:
    """The kind, the socket, and the side that is known: a client asked, an upstream responds."""
    asked_by = kind in (Kind.CLIENT_QUERY, Kind.CLIENT_RESPONSE)
    address, port = (4, 6) if asked_by else (5, 7)
    head = bytes((8, kind, 16, 1 if len(peer.address) == _IPV4_OCTETS else 2, 24, peer.protocol))
    return head + _octets(address, peer.address) + (_number(port, peer.port) if peer.port else b"")
