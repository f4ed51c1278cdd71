"""Who may ask for the zones: an address and a signature, judged by dnspython; all others get an error and no record."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any, Final

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.tsig
import pytest
import structlog.testing
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from dnsproxy.dns import wire
from dnsproxy.dns.wire import Query
from dnsproxy.primary.request_check import RequestCheck, Sealer
from dnsproxy.primary.settings import RpzSettings
from dnsproxy.zone.requests import format_request
from dnsproxy.zone.signing import FUDGE, Signer
from dnsproxy.zone.tsig_keys import TsigKey
from tests.kit.messages import opt_record, query, tsig_record
from tests.kit.strategies import mutate
from tests.kit.zone_servers import KEYS, SIGNED, dns_key
from tests.kit.zone_sides import LOOPBACK, ZONE, PrimarySide

KEY: Final = KEYS[3]
STRANGER: Final = TsigKey("stranger.example.org", "hmac-sha256", b"x" * 16)
OTHER_ALGORITHM: Final = TsigKey(KEY.name, "hmac-sha512", KEY.secret)
NOW: Final = 1_700_000_000
BADSIG, BADKEY, BADTIME = 16, 17, 18
AXFR: Final = format_request(ZONE, serial=None, ident=7)
IXFR: Final = format_request(ZONE, serial=1, ident=7)


def signed(key: TsigKey = KEY, *, at: int = NOW, message: bytes = AXFR) -> bytes:
    return Signer(key).sign(message, now=at)


def scanned(message: bytes) -> Query:
    found = wire.scan_query(message)
    assert isinstance(found, Query)
    return found


def make_check(settings: RpzSettings = SIGNED) -> RequestCheck:
    return RequestCheck(settings, now=lambda: NOW)


def refused(message: bytes, *, client: str = LOOPBACK, settings: RpzSettings = SIGNED) -> bytes:
    found = make_check(settings).check(scanned(message), client=client, stream=True)
    assert isinstance(found, bytes), "it was not refused"
    return found


def read_unchecked(message: bytes) -> Any:
    """A message as dnspython reads it, whatever its signature."""
    return dns.message.from_wire(message, keyring=False, continue_on_error=True)


def error_of(reply: bytes) -> tuple[int, int | None]:
    """The response code, and the error in the TSIG record."""
    found = read_unchecked(reply)
    assert not found.answer
    assert found.flags & dns.flags.QR
    error = found.tsig[0].error if found.tsig else None
    return found.rcode(), error


def with_additional(message: bytes, *records: bytes) -> bytes:
    return message[:10] + struct.pack("!H", len(records)) + message[12:] + b"".join(records)


def tsig_of(message: bytes) -> bytes:
    """The record that signing appended."""
    return message[len(AXFR) :]


def changed(message: bytes, change: Callable[[Any], Any]) -> bytes:
    """A request whose TSIG record was changed after signing."""
    found = read_unchecked(message)
    rdata = change(found.tsig[0])
    data = rdata.to_wire()
    owner = found.tsig.name.to_wire()
    return with_additional(AXFR, owner + struct.pack("!HHIH", 250, 255, 0, len(data)) + data)


async def test_a_signed_request_of_every_key_is_taken() -> None:
    for key in KEYS:
        assert isinstance(make_check().check(scanned(signed(key)), client=LOOPBACK, stream=True), Sealer)


@pytest.mark.parametrize(
    ("message", "rcode", "error"),
    [
        pytest.param(AXFR, dns.rcode.REFUSED, None, id="no signature"),
        pytest.param(with_additional(AXFR, opt_record()), dns.rcode.REFUSED, None, id="an OPT, and no signature"),
        pytest.param(signed(STRANGER), dns.rcode.NOTAUTH, BADKEY, id="an unknown key"),
        pytest.param(signed(TsigKey(KEY.name, KEY.algorithm, b"?")), dns.rcode.NOTAUTH, BADSIG, id="another secret"),
        pytest.param(signed(OTHER_ALGORITHM), dns.rcode.NOTAUTH, BADKEY, id="another algorithm"),
        pytest.param(signed(at=NOW - FUDGE - 1), dns.rcode.NOTAUTH, BADTIME, id="a clock that is behind"),
        pytest.param(signed(at=NOW + FUDGE + 1), dns.rcode.NOTAUTH, BADTIME, id="a clock that is ahead"),
        pytest.param(signed(at=0), dns.rcode.NOTAUTH, BADTIME, id="a clock at its beginning"),
        pytest.param(signed(at=(1 << 48) - 1), dns.rcode.NOTAUTH, BADTIME, id="the last second"),
        pytest.param(
            changed(signed(), lambda rdata: rdata.replace(mac=rdata.mac[:16])),
            dns.rcode.NOTAUTH,
            BADSIG,
            id="half a MAC",
        ),
        pytest.param(
            changed(signed(), lambda rdata: rdata.replace(mac=b"")), dns.rcode.NOTAUTH, BADSIG, id="an empty MAC"
        ),
        pytest.param(
            changed(signed(), lambda rdata: rdata.replace(fudge=65_535)), dns.rcode.NOTAUTH, BADSIG, id="a longer fudge"
        ),
        pytest.param(
            changed(signed(), lambda rdata: rdata.replace(other=b"more")), dns.rcode.NOTAUTH, BADSIG, id="other data"
        ),
        pytest.param(
            changed(signed(at=NOW - 500), lambda rdata: rdata.replace(time_signed=NOW)),
            dns.rcode.NOTAUTH,
            BADSIG,
            id="an old signature with a new time",
        ),
        pytest.param(
            with_additional(AXFR, tsig_of(signed()), opt_record()),
            dns.rcode.FORMERR,
            None,
            id="an OPT after it",
        ),
        pytest.param(
            with_additional(AXFR, tsig_of(signed()), tsig_of(signed())), dns.rcode.FORMERR, None, id="two TSIGs"
        ),
        pytest.param(
            with_additional(AXFR, tsig_record(), tsig_of(signed())),
            dns.rcode.FORMERR,
            None,
            id="a stranger's first",
        ),
        pytest.param(with_additional(AXFR, tsig_record()), dns.rcode.NOTAUTH, BADKEY, id="a key that nobody has"),
        pytest.param(
            with_additional(AXFR, tsig_of(signed())[:-1] + b"\x09"),
            dns.rcode.FORMERR,
            None,
            id="a wrong length",
        ),
        pytest.param(
            with_additional(IXFR, tsig_of(signed())), dns.rcode.NOTAUTH, BADSIG, id="the signature of another request"
        ),
    ],
)
async def test_a_request_without_a_good_signature_is_refused(message: bytes, rcode: int, error: int | None) -> None:
    assert error_of(refused(message)) == (rcode, error)


async def test_without_keys_a_signature_is_refused_rather_than_ignored() -> None:
    plain = RpzSettings(ZONE)
    assert error_of(refused(signed(), settings=plain)) == (dns.rcode.NOTAUTH, BADKEY)
    not_last = with_additional(AXFR, tsig_of(signed()), opt_record())
    assert error_of(refused(not_last, settings=plain)) == (dns.rcode.FORMERR, None)
    assert isinstance(make_check(plain).check(scanned(AXFR), client=LOOPBACK, stream=True), Sealer)


@pytest.mark.parametrize("skew", [-FUDGE - 1, FUDGE + 1, -86_400])
async def test_a_late_signature_gets_the_servers_time_signed_at_the_clients(skew: int) -> None:
    """RFC 8945 section 5.2.3: so that the client can check the answer in spite of its clock."""
    message = signed(at=NOW + skew)
    reply = refused(message)
    found = read_unchecked(reply)
    rdata = found.tsig[0]
    assert rdata.time_signed == NOW + skew
    assert rdata.other == struct.pack("!HI", NOW >> 32, NOW & 0xFFFFFFFF)
    request_mac = read_unchecked(message).mac
    body = reply[:10] + b"\0\0" + reply[12 : reply.index(found.tsig.name.to_wire())]
    # dnspython looks at the error before the signature.
    digest: Any = dns.tsig._digest
    digest(body, dns_key(KEY), rdata, None, request_mac, None, None).verify(rdata.mac)
    with pytest.raises(dns.tsig.PeerBadTime):
        dns.message.from_wire(reply, keyring=dns_key(KEY), request_mac=request_mac)


async def test_a_signature_counts_once_over_tcp_and_is_forgotten_with_its_time(mock_clock: MockClock) -> None:
    check = make_check()
    first, second = scanned(signed()), scanned(signed(message=IXFR))
    for one in (first, second):
        assert isinstance(check.check(one, client=LOOPBACK, stream=True), Sealer)
        replayed = check.check(one, client="127.0.0.2", stream=True)
        assert isinstance(replayed, bytes)
        assert error_of(replayed) == (dns.rcode.NOTAUTH, None)
    # Over UDP the same octets may come twice by themselves.
    for _ in range(2):
        assert isinstance(check.check(scanned(signed(at=NOW + 1)), client=LOOPBACK, stream=False), Sealer)
    mock_clock.jump(2 * FUDGE + 1)
    assert isinstance(check.check(first, client=LOOPBACK, stream=True), Sealer)


@pytest.mark.parametrize(
    ("client", "taken"),
    [
        ("192.0.2.1", True),
        ("192.0.2.255", True),
        ("192.0.3.0", False),
        ("127.0.0.1", False),
        ("::ffff:192.0.2.1", True),
        ("::ffff:192.0.3.1", False),
        ("2001:db8::1", True),
        ("2001:db8:1::1", False),
        ("fe80::1%eth0", True),
        ("fe80::1:0:0:0:1%eth0", False),
        ("::1", False),
    ],
)
async def test_a_client_outside_of_all_networks_is_refused_whatever_it_signs(client: str, taken: bool) -> None:
    networks = tuple(map(ip_network, ("192.0.2.0/24", "2001:db8::/48", "fe80::/64")))
    for message, keys in ((AXFR, ()), (signed(), KEYS)):
        found = make_check(RpzSettings(ZONE, keys, networks)).check(scanned(message), client=client, stream=True)
        assert isinstance(found, Sealer) is taken
        if isinstance(found, bytes):
            assert error_of(found) == (dns.rcode.REFUSED, None)


async def test_only_this_host_may_ask_by_default() -> None:
    for client, taken in (
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("192.0.2.1", False),
        ("::2", False),
    ):
        found = make_check(RpzSettings(ZONE)).check(scanned(AXFR), client=client, stream=True)
        assert isinstance(found, Sealer) is taken


async def test_refusals_are_logged_once_a_minute_for_each_client_and_reason(mock_clock: MockClock) -> None:
    with structlog.testing.capture_logs() as logged:
        check = make_check()
        for _ in range(50):
            check.check(scanned(AXFR), client=LOOPBACK, stream=True)
            check.check(scanned(signed(STRANGER)), client=LOOPBACK, stream=True)
        assert [one["reason"] for one in logged] == ["it is not signed (--rpz-key)", "its signature: BADKEY"]
        assert not any(KEY.secret.decode() in str(one) for one in logged)
        mock_clock.jump(61)
        check.check(scanned(AXFR), client=LOOPBACK, stream=True)
        assert len(logged) == 3
        for number in range(5_000):
            check.check(scanned(AXFR), client=f"127.0.{number >> 8}.{number & 255}", stream=True)
    assert check.refusals.count == 5_101
    assert len(check.refusals._logged) <= 500


def fresh(message: bytes) -> bytes:
    return Signer(KEY).sign(message, now=int(time.time()))


REQUESTS: Final = (
    AXFR,
    IXFR,
    query(ZONE, 6),
    with_additional(AXFR, opt_record()),
    query("app.example.org.rpz.example.org"),
)


@given(
    st.integers(0, 2**32),
    st.integers(0, len(REQUESTS) - 1),
    st.booleans(),
    st.sampled_from([SIGNED, RpzSettings(ZONE)]),
)
def test_mutated_requests_get_records_only_if_dnspython_takes_their_signature_too(
    seed: int, number: int, stream: bool, settings: RpzSettings
) -> None:
    async def ask() -> None:
        primary = PrimarySide(settings=settings)
        await primary.swap()
        others = (*REQUESTS, *map(fresh, REQUESTS), fresh(AXFR) + fresh(AXFR))
        message = mutate(fresh(REQUESTS[number]), random.Random(seed), others=others)  # noqa: S311
        found = wire.scan_query(message)
        if not isinstance(found, Query):
            return
        answer = primary.server._answer(found, client=LOOPBACK, stream=stream)
        replies = [answer] if isinstance(answer, bytes) else [one async for one in answer.messages()]
        assert replies
        for reply in replies:
            assert reply[:2] == message[:2]
            if reply[6:8] != b"\0\0" and settings.keys:
                keyring = {dns.name.from_text(key.name): dns_key(key) for key in KEYS}
                assert dns.message.from_wire(message, keyring=keyring).had_tsig

    trio.run(ask)
