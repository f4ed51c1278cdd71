"""Names that objects claim, with a server and a public DNS: what leads here is answered, the rest is untouched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import trio

from dnsproxy.answers.answer_records import Claimed
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.answers.table_writer import TableWriter
from dnsproxy.dns.names import Reach
from dnsproxy.forward.deadlines import IMPATIENT
from dnsproxy.replace.balancers import Balancers
from dnsproxy.tap.seen import Outcome
from tests.kit import upstream_replies as upstream
from tests.kit.dns_server import Running, running, wait_until
from tests.kit.faulty_upstream import FaultyUpstream, Script, Step, Until, faulty_upstream, refusing_upstream, silence
from tests.kit.messages import AAAA, TXT, A, opt_record, query, read_both, read_dnspython
from tests.kit.polling import pause
from tests.kit.public_dns import PublicDns

BALANCER = "203.0.113.10"
BALANCER_6 = "2001:db8:a::10"
RELAY = "10.96.7.7"
ELSEWHERE = "198.51.100.7"
HTTPS = 65
ANY = 255

LINES = (
    f"app.example.org 60 A {BALANCER}",
    f"www.example.org 60 A {ELSEWHERE}",
    f"both.example.org 60 A {BALANCER}",
    f"both.example.org 60 A {ELSEWHERE}",
    "shop.example.org 60 CNAME cdn.example.com.",
    f"cdn.example.com 60 A {ELSEWHERE}",
    "alias.example.org 60 CNAME lb.example.net.",
    "lb.example.net 60 A 203.0.113.99",
    "six.example.org 60 AAAA 2001:db8:e::1",
    "note.example.org 60 TXT hello",
    f"customers.example.net 60 A {BALANCER}",
    f"other.example.net 60 A {ELSEWHERE}",
)


def table_with(
    *names: str, claimed: Claimed = Claimed.VERIFIED, replaced: bool = False, relay: tuple[str, ...] = (RELAY,)
) -> HostTable:
    """Rows for names and wildcards, with load balancers that lead here."""
    writer = TableWriter(ttl=5)
    for name in names:
        writer.put(Host(name, Reach.ANY_LABELS if name.startswith("*.") else Reach.NAME, relay, claimed=claimed))
    leads = {BALANCER: relay, BALANCER_6: relay, "lb.example.net": relay}
    writer.lead(Balancers(leads, {}) if replaced else Balancers({}, dict.fromkeys(leads, ())))
    return writer.publish()


@dataclass
class World:
    """A server, what it asks, and one way to ask it."""

    running: Running
    there: FaultyUpstream
    ask: Callable[[bytes], Awaitable[bytes]]

    @property
    def asked(self) -> int:
        """Queries that the upstream has got, over UDP and TCP."""
        return len(self.there.asked_datagrams) + len(self.there.asked_streams)

    async def addresses(self, name: str, qtype: int = A) -> set[str]:
        """The contents of the records in the reply."""
        return {str(content) for _, _, _, content in read_both(await self.ask(query(name, qtype))).answers}

    def led(self) -> dict[bytes, tuple[bytes, ...]]:
        """The names that lead elsewhere."""
        return {one.name: one.leads for one in self.running.server.led()[1]}


@pytest.fixture(params=["UDP", "TCP"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def world_of(table: HostTable, transport: str, *lines: str) -> AsyncIterator[World]:
    public = PublicDns(*(lines or LINES))
    async with faulty_upstream(public, public) as there, running(there.endpoint, table=table) as server:
        yield World(server, there, server.ask if transport == "UDP" else server.ask_stream)


async def test_a_name_that_leads_here_is_answered_from_its_row_and_the_second_query_asks_nobody(
    transport: str,
) -> None:
    async with world_of(table_with("app.example.org"), transport) as world:
        assert await world.addresses("app.example.org") == {RELAY}
        asked = world.asked
        for _ in range(3):
            assert await world.addresses("APP.example.org") == {RELAY}
        assert world.asked == asked
        assert world.led() == {}


@pytest.mark.parametrize("name", ["www.example.org", "shop.example.org"])
async def test_a_name_that_leads_elsewhere_passes_octet_for_octet(name: str, transport: str) -> None:
    table = table_with("*.example.org", "app.example.org")
    async with world_of(table, transport) as world:
        public = PublicDns(*LINES)
        for message in (query(name), query(name, AAAA), query(name, HTTPS), query(name.upper())):
            for _ in range(2):
                assert await world.ask(message) == public.reply(message)


async def test_where_a_name_leads_is_known_after_it_was_asked(transport: str) -> None:
    async with world_of(table_with("www.example.org"), transport) as world:
        assert world.led() == {}
        await world.addresses("www.example.org")
        assert world.led() == {b"\3www\7example\3org\0": (bytes([198, 51, 100, 7]),)}


async def test_a_name_without_record_is_answered_from_its_row(transport: str) -> None:
    async with world_of(table_with("preview.example.org", "*.example.org"), transport) as world:
        assert await world.addresses("preview.example.org") == {RELAY}
        assert await world.addresses("any.example.org") == {RELAY}
        assert await world.addresses("note.example.org") == {RELAY}
        asked = world.asked
        assert await world.addresses("any.example.org") == {RELAY}
        assert world.asked == asked


async def test_an_enforced_name_without_record_is_passed_on(transport: str) -> None:
    async with world_of(table_with("preview.example.org", claimed=Claimed.ENFORCED), transport) as world:
        message = query("preview.example.org")
        assert await world.ask(message) == PublicDns(*LINES).reply(message)


async def test_a_name_with_addresses_of_the_other_family_alone_keeps_them(transport: str) -> None:
    async with world_of(table_with("six.example.org"), transport) as world:
        public = PublicDns(*LINES)
        for message in (query("six.example.org"), query("six.example.org", AAAA), query("six.example.org")):
            assert await world.ask(message) == public.reply(message)


async def test_of_two_addresses_the_one_that_leads_here_is_replaced_and_the_other_stays(transport: str) -> None:
    async with world_of(table_with("both.example.org"), transport) as world:
        for _ in range(2):
            assert await world.addresses("both.example.org") == {RELAY, ELSEWHERE}


async def test_an_alias_of_a_balancers_hostname_leads_here_whatever_its_addresses_are(transport: str) -> None:
    async with world_of(table_with("alias.example.org"), transport) as world:
        assert await world.addresses("alias.example.org") == {RELAY}


async def test_records_of_other_types_come_from_public_dns(transport: str) -> None:
    async with world_of(table_with("app.example.org", "note.example.org"), transport) as world:
        message = query("note.example.org", TXT)
        assert await world.ask(message) == PublicDns(*LINES).reply(message)
        # NXDOMAIN would deny the address that is answered here.
        assert read_both(await world.ask(query("preview.example.org", TXT))).rcode == upstream.NXDOMAIN
        await world.addresses("app.example.org")
        assert read_both(await world.ask(query("app.example.org", TXT))).rcode == 0


@pytest.mark.parametrize("qtype", [HTTPS, ANY])
async def test_other_types_of_a_name_that_leads_here_are_those_of_its_row(qtype: int, transport: str) -> None:
    async with world_of(table_with("app.example.org"), transport) as world:
        await world.addresses("app.example.org")
        asked = world.asked
        reading = read_both(await world.ask(query("app.example.org", qtype)))
        assert reading.rcode == 0
        assert BALANCER not in str(reading)
        assert world.asked == asked


async def test_without_a_reply_a_name_is_answered_from_its_row_in_time_and_then_at_once(transport: str) -> None:
    async with world_of(table_with("app.example.org"), transport) as world:
        world.there.datagrams = world.there.streams = silence
        begun = trio.current_time()
        assert await world.addresses("app.example.org") == {RELAY}
        assert trio.current_time() - begun < 2
        asked = world.asked
        assert await world.addresses("app.example.org") == {RELAY}
        assert world.asked == asked


@pytest.mark.parametrize("rcode", [upstream.SERVFAIL, upstream.REFUSED, upstream.FORMERR])
async def test_a_reply_that_says_nothing_is_no_reply(rcode: int, transport: str) -> None:
    async with world_of(table_with("app.example.org"), transport) as world:
        world.there.datagrams = world.there.streams = lambda asked: [upstream.right(asked, rcode=rcode, answers=0)]
        assert await world.addresses("app.example.org") == {RELAY}


def failing_for_six(rcode: int | None) -> Script:
    """A public DNS that has no reply to AAAA, or this error."""
    public = PublicDns(*LINES)

    def script(asked: bytes) -> list[Step]:
        if AAAA.to_bytes(2, "big") + b"\0\1" not in asked:
            return [public.reply(asked)]
        return [] if rcode is None else [upstream.right(asked, rcode=rcode, answers=0)]

    return script


@pytest.mark.parametrize(
    "rcode", [upstream.SERVFAIL, upstream.REFUSED, upstream.NXDOMAIN], ids=["SERVFAIL", "REFUSED", "NXDOMAIN"]
)
@pytest.mark.parametrize("known", [False, True], ids=["asked first", "asked second"])
async def test_a_server_that_fails_for_the_other_family_loses_no_name(rcode: int, known: bool, transport: str) -> None:
    """RFC 4074 section 4: such servers are older than IPv6, or load balancers."""
    table = table_with("www.example.org", relay=(RELAY, "fd00:96::7"))
    async with world_of(table, transport) as world:
        world.there.datagrams = world.there.streams = failing_for_six(rcode)
        if known or rcode == upstream.NXDOMAIN:
            assert await world.addresses("www.example.org") == {ELSEWHERE}
        for _ in range(2):
            assert await world.addresses("www.example.org", AAAA) == set()
            assert await world.addresses("www.example.org") == {ELSEWHERE}


async def test_a_name_that_leads_elsewhere_by_one_family_is_not_taken_while_the_other_is_silent(transport: str) -> None:
    table = table_with("www.example.org", relay=(RELAY, "fd00:96::7"))
    async with world_of(table, transport) as world:
        world.there.datagrams = world.there.streams = failing_for_six(None)
        assert await world.addresses("www.example.org") == {ELSEWHERE}
        reading = read_both(await world.ask(query("www.example.org", AAAA)))
        assert reading.rcode == upstream.SERVFAIL
        assert not reading.answers


async def test_an_answer_ends_when_the_other_family_leads_elsewhere(transport: str) -> None:
    table = table_with("www.example.org", relay=(RELAY, "fd00:96::7"))
    async with world_of(table, transport) as world:
        world.there.datagrams = world.there.streams = failing_for_six(upstream.NXDOMAIN)
        for _ in range(2):
            assert await world.addresses("www.example.org", AAAA) == {"fd00:96::7"}
        assert await world.addresses("www.example.org") == {ELSEWHERE}
        verdicts = world.running.forwarder.verification.verdicts
        world.running.server.forget_recipes(verdicts.expire(trio.current_time()))
        assert await world.addresses("www.example.org", AAAA) == set()


async def test_a_client_that_validates_by_itself_gets_nxdomain_above_a_name_of_the_table(transport: str) -> None:
    async with world_of(table_with("app.example.org"), transport, "other.example.net 60 A 192.0.2.1") as world:
        message = query("example.org", flags=0x0110, additional=(opt_record(flags=0x8000),))
        assert read_both(await world.ask(message)).rcode == upstream.NXDOMAIN
        assert read_both(await world.ask(query("example.org"))).rcode == 0


@pytest.mark.parametrize("qtype", [HTTPS, ANY])
async def test_an_error_for_another_type_says_nothing_about_the_addresses(qtype: int, transport: str) -> None:
    """Some servers refuse ANY, or fail for types that they do not know."""
    async with world_of(table_with("www.example.org"), transport) as world:
        world.there.datagrams = world.there.streams = lambda asked: [
            upstream.right(asked, rcode=upstream.SERVFAIL, answers=0)
        ]
        await world.ask(query("www.example.org", qtype))
        world.there.datagrams = world.there.streams = PublicDns(*LINES)
        assert await world.addresses("www.example.org") == {ELSEWHERE}


async def test_an_empty_reply_is_waited_for_over_two_families_also_by_clients_that_ask_again(transport: str) -> None:
    """The second upstream refuses: nothing is asked there any more while the other family is looked up."""
    held = trio.Event()
    public = PublicDns("app.example.org 60 A 203.0.113.10")

    def script(asked: bytes) -> list[Step]:
        is_first_family = AAAA.to_bytes(2, "big") + b"\0\1" in asked
        return [public.reply(asked)] if is_first_family else [Until(held), public.reply(asked)]

    with refusing_upstream() as refusing:
        async with (
            faulty_upstream(script, script) as there,
            running(there.endpoint, refusing, table=table_with("app.example.org")) as server,
            trio.open_nursery() as nursery,
        ):
            world = World(server, there, server.ask if transport == "UDP" else server.ask_stream)
            message, replies = query("app.example.org", AAAA), list[bytes]()

            async def ask() -> None:
                replies.append(await world.ask(message))

            nursery.start_soon(ask)
            await wait_until(lambda: world.asked == 2)
            if transport == "UDP":
                async with server.client() as client:
                    for _ in range(6):
                        await trio.sleep(IMPATIENT)
                        await client.send(message)
            held.set()
            await wait_until(lambda: bool(replies))
            assert read_both(replies[0]).rcode == 0
            assert await world.addresses("app.example.org") == {RELAY}
            assert server.server.counters.failures == 0


async def test_a_name_that_gets_another_row_is_looked_up_again_and_answered_meanwhile(transport: str) -> None:
    """Its object has got another class, which has a load balancer of its own."""

    def table_of_row(relay: str) -> HostTable:
        writer = TableWriter(ttl=5)
        writer.put(Host("app.example.org", Reach.NAME, (relay,), claimed=Claimed.VERIFIED))
        writer.lead(Balancers({BALANCER: (RELAY,)}))
        return writer.publish()

    async with world_of(table_of_row(RELAY), transport) as world:
        assert await world.addresses("app.example.org") == {RELAY}
        world.running.server.table = table_of_row(OTHER_RELAY)
        asked = world.asked
        assert await world.addresses("app.example.org") == {OTHER_RELAY}
        await wait_until(lambda: world.asked > asked)
        with trio.fail_after(5):
            while await world.addresses("app.example.org") != {RELAY}:
                await pause()


async def test_a_name_that_waits_for_its_namespace_is_replaced_as_any_other(transport: str) -> None:
    """Its object is gone, and its record still leads to the load balancer."""
    writer = TableWriter(ttl=5)
    writer.put(Host("customers.example.net", Reach.NAME, (), barred=True))
    writer.lead(Balancers({BALANCER: (RELAY,)}))
    async with world_of(writer.publish(), transport) as world:
        assert await world.addresses("customers.example.net") == {RELAY}


async def test_a_verdict_that_is_pushed_out_takes_its_recipe_with_it(transport: str) -> None:
    async with world_of(table_with("*.example.org"), transport, f"*.example.org 60 A {BALANCER}") as world:
        assert await world.addresses("a.example.org") == {RELAY}
        assert await world.addresses("a.example.org") == {RELAY}
        verdicts = world.running.forwarder.verification.verdicts
        found = verdicts.find_fresh(b"\1a\7example\3org\0", A, trio.current_time())
        assert found is not None
        for number in range(3_000):
            verdicts.note(b"\6%06d\7example\3org\0" % number, A, found, below=True)
        asked = world.asked
        world.running.server.forget_recipes(verdicts.expire(trio.current_time()))
        await world.addresses("a.example.org")
        assert world.asked > asked


async def test_a_name_that_led_elsewhere_is_not_taken_while_public_dns_is_silent(transport: str) -> None:
    async with world_of(table_with("www.example.org"), transport) as world:
        assert await world.addresses("www.example.org") == {ELSEWHERE}
        world.there.datagrams = world.there.streams = silence
        reading = read_both(await world.ask(query("www.example.org")))
        assert reading.rcode == upstream.SERVFAIL


async def test_a_verdict_whose_time_is_over_still_answers_while_it_is_renewed(transport: str) -> None:
    async with world_of(table_with("app.example.org"), transport) as world:
        assert await world.addresses("app.example.org") == {RELAY}
        public = PublicDns(f"app.example.org 60 A {ELSEWHERE}")
        world.there.datagrams = world.there.streams = public
        verdicts = world.running.forwarder.verification.verdicts
        verdicts.end_all(trio.current_time())
        world.running.server.forget_recipes(verdicts.expire(trio.current_time()))
        assert await world.addresses("app.example.org") == {RELAY}
        await wait_until(lambda: bool(world.led()))
        assert await world.addresses("app.example.org") == {ELSEWHERE}


async def test_a_reported_name_is_answered_at_once_and_where_it_leads_is_found_out_beside(transport: str) -> None:
    table = table_with("www.example.org", "app.example.org", claimed=Claimed.REPORTED)
    async with world_of(table, transport) as world:
        assert await world.addresses("www.example.org") == {RELAY}
        assert await world.addresses("app.example.org") == {RELAY}
        await wait_until(lambda: world.led() == {b"\3www\7example\3org\0": (bytes([198, 51, 100, 7]),)})
        asked = world.asked
        assert await world.addresses("www.example.org") == {RELAY}
        assert world.asked == asked


async def test_the_owners_word_asks_nobody(transport: str) -> None:
    async with world_of(table_with("www.example.org", claimed=Claimed.NO), transport) as world:
        assert await world.addresses("www.example.org") == {RELAY}
        assert world.asked == 0


async def test_a_client_that_validates_by_itself_gets_what_public_dns_says(transport: str) -> None:
    table = table_with("app.example.org", replaced=True)
    async with world_of(table, transport) as world:
        assert await world.addresses("app.example.org") == {RELAY}
        for name in ("app.example.org", "customers.example.net"):
            message = query(name, flags=0x0110, additional=(opt_record(flags=0x8000),))
            assert await world.ask(message) == PublicDns(*LINES).reply(message)


OTHER_RELAY = "10.96.7.8"
"""What another class, or a Gateway, is answered with."""


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param({}, RELAY, id="of one class, which is not that of the row"),
        pytest.param({BALANCER: ()}, OTHER_RELAY, id="that several classes share"),
    ],
)
async def test_a_row_answers_where_its_own_class_has_the_load_balancer(
    known: dict[str, tuple[str, ...]], expected: str, transport: str
) -> None:
    writer = TableWriter(ttl=5)
    writer.put(Host("app.example.org", Reach.NAME, (OTHER_RELAY,), claimed=Claimed.VERIFIED))
    writer.lead(Balancers({BALANCER: (RELAY,)}, known))
    async with world_of(writer.publish(), transport) as world:
        for _ in range(2):
            assert await world.addresses("app.example.org") == {expected}
        assert await world.addresses("customers.example.net") == {RELAY}


async def test_a_denied_name_is_never_touched(transport: str) -> None:
    writer = TableWriter(ttl=5, never=["customers.example.net"])
    writer.lead(Balancers({BALANCER: (RELAY,)}))
    async with world_of(writer.publish(), transport) as world:
        message = query("customers.example.net")
        assert await world.ask(message) == PublicDns(*LINES).reply(message)
        assert await world.addresses("app.example.org") == {RELAY}


# --- Replies to any name ---


async def test_what_leads_to_a_balancer_is_replaced_whatever_its_name(transport: str) -> None:
    async with world_of(table_with(replaced=True), transport) as world:
        assert await world.addresses("customers.example.net") == {RELAY}
        assert await world.addresses("both.example.org") == {RELAY, ELSEWHERE}
        answers = read_dnspython(await world.ask(query("alias.example.org"))).answers
        assert RELAY in {str(content) for _, _, _, content in answers}
        assert world.running.server.counters.forward_replaced == 3


async def test_replies_that_lead_elsewhere_pass_octet_for_octet(transport: str) -> None:
    async with world_of(table_with(replaced=True), transport) as world:
        public = PublicDns(*LINES)
        for message in (query("other.example.net"), query("OTHER.example.net", AAAA), query("no.example.net")):
            assert await world.ask(message) == public.reply(message)
        assert world.running.server.counters.forward_replaced == 0


async def test_balancers_that_are_only_known_replace_nothing_outside_the_table(transport: str) -> None:
    async with world_of(table_with("app.example.org"), transport) as world:
        message = query("customers.example.net")
        assert await world.ask(message) == PublicDns(*LINES).reply(message)


async def test_another_balancer_counts_with_the_next_table(transport: str) -> None:
    async with world_of(table_with("www.example.org"), transport) as world:
        assert await world.addresses("www.example.org") == {ELSEWHERE}
        writer = TableWriter(ttl=5)
        writer.put(Host("www.example.org", Reach.NAME, (RELAY,), claimed=Claimed.VERIFIED))
        writer.lead(Balancers({}, {ELSEWHERE: ()}))
        world.running.server.table = writer.publish()
        assert await world.addresses("www.example.org") == {RELAY}
        assert world.led() == {}


async def test_what_was_replaced_is_shown_as_replaced(transport: str) -> None:
    async with world_of(table_with("app.example.org", replaced=True), transport) as world:
        with world.running.server.tap.subscribe() as subscription:
            for name in ("customers.example.net", "other.example.net", "app.example.org", "app.example.org"):
                await world.ask(query(name))
            seen: list[Outcome] = []
            while len(seen) < 4:
                seen += await subscription.receive(lambda one: one.outcome)
        assert seen == [Outcome.REPLACED, Outcome.UPSTREAM, Outcome.TABLE, Outcome.TABLE]


async def test_random_names_below_a_wildcard_push_out_no_verdict_of_another_name(transport: str) -> None:
    async with world_of(table_with("app.example.org", "*.apps.example.org"), transport) as world:
        verdicts = world.running.forwarder.verification.verdicts
        await world.addresses("app.example.org")
        for number in range(50):
            assert await world.addresses(f"x{number}.apps.example.org") == {RELAY}
        assert verdicts.find_fresh(b"\3app\7example\3org\0", A, trio.current_time())
