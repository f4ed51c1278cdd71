"""The law of the feed: a reader has exactly the versions of the writer, whole and in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.answers.answer_records import Answers, Claimed
from dnsproxy.answers.table import Host, HostTable
from dnsproxy.dns.names import Reach
from dnsproxy.replace.balancers import Balancers
from dnsproxy.workers.feed import FeedReader, FeedWriter
from dnsproxy.workers.messages import FOR_SPAWNER, Begin, Frames, HostRows, Publish, frame

NAMES = ("a.example.org", "b.example.org", "a.b.example.org", "*.example.org", "*.b.example.org")
SERVICES = ("", "shop/web", "shop/other")
ZONES = ("example.org", "b.example.org")
BALANCERS = (
    Balancers(),
    Balancers({"203.0.113.10": ("10.96.7.7", "2001:db8::7")}),
    Balancers({"lb.example.net": ("10.96.7.7",)}, {"203.0.113.10": (), "198.51.100.0/24": ()}),
)


def hosts() -> st.SearchStrategy[Host]:
    """Hosts of a few names, so that they change and go."""

    def make(name: str, last: int, barred: bool, many: bool, service: str, claimed: Claimed) -> Host:
        addresses = (f"192.0.2.{last}",) if last else ()
        if not name.startswith("*"):
            return Host(name, Reach.NAME, addresses, barred and not addresses, service, claimed)
        reach = Reach.ANY_LABELS if many else Reach.ONE_LABEL
        return Host(name, reach, addresses, service=service, claimed=claimed)

    return st.builds(
        make,
        st.sampled_from(NAMES),
        st.integers(0, 3),
        st.booleans(),
        st.booleans(),
        st.sampled_from(SERVICES),
        st.sampled_from(Claimed),
    )


Step = Host | Sequence[str] | frozenset[str] | Balancers | int | None
"""A host, closed zones, unready Services, load balancers, another TTL with an empty table, or a publication."""
STEPS = st.lists(
    st.one_of(
        hosts(),
        st.lists(st.sampled_from(ZONES), unique=True),
        st.frozensets(st.sampled_from(SERVICES[1:])),
        st.sampled_from(BALANCERS),
        st.integers(5, 6),
        st.none(),
        st.none(),
    ),
    max_size=60,
)


def content(table: HostTable) -> object:
    """All that a table says, as comparable values."""
    return (
        {name: row(one) for name, one in table.exact.items()},
        {name: [None if one is None else row(one) for one in pair] for name, pair in table.wildcards.items()},
        dict(table.above),
        set(table.never),
        table.closed,
        table.unready,
        table.leads.balancers,
        table.ttl,
        len(table),
    )


def row(one: Answers) -> object:
    return one.addresses, one.service, one.claimed


def play(steps: Iterable[Step]) -> tuple[bytes, list[object]]:
    """The octets of a feed, and the content of each version."""
    octets = bytearray()
    versions: list[object] = []

    def begin(ttl: int, *, version: int = 0) -> FeedWriter:
        return FeedWriter(
            ttl=ttl, never=["never.example.org"], version=version, send=lambda message: octets.extend(frame(message))
        )

    writer = begin(5)
    for step in steps:
        if isinstance(step, Host):
            writer.put(step)
        elif isinstance(step, int):
            writer = begin(step, version=writer.version)
        elif isinstance(step, frozenset):
            writer.forward(step)
        elif isinstance(step, Balancers):
            writer.lead(step)
        elif step is not None:
            writer.close(step)
        else:
            before = writer.version
            table = writer.publish()
            if writer.version > before:
                versions.append(content(table))
    return bytes(octets), versions


@given(STEPS, st.integers(1, 200), st.booleans())
def test_a_reader_shows_every_version_as_the_writer_did(steps: list[Step], size: int, early: bool) -> None:
    octets, versions = play(steps)
    frames, reader = Frames(), FeedReader()
    shown: list[object] = []
    for at in range(0, len(octets), size):
        for message in frames.feed(octets[at : at + size], FOR_SPAWNER):
            match message:
                case Begin() | HostRows():
                    reader.pending.append(message)
                    if early:
                        # As a worker does, which shows its table meanwhile.
                        for _ in reader.take_in():
                            pass
                case Publish():
                    shown.append(content(reader.publish(message)))
                    assert reader.version == len(shown)
    assert shown == versions


@given(STEPS)
def test_a_fork_amid_a_version_shows_the_last_whole_one(steps: list[Step]) -> None:
    octets, versions = play(steps)
    reader = FeedReader()
    for message in Frames().feed(octets, FOR_SPAWNER):
        match message:
            case Begin() | HostRows():
                reader.pending.append(message)
            case Publish():
                reader.publish(message)
                reader.prepare()
        if reader.version:
            assert content(reader.table()) == versions[reader.version - 1]


def test_what_did_not_change_is_not_sent_again() -> None:
    sent: list[Begin | HostRows | Publish] = []
    writer = FeedWriter(ttl=5, send=sent.append)
    writer.close(["example.org"])
    writer.forward(frozenset({"shop/web"}))
    writer.lead(BALANCERS[1])
    writer.publish()
    writer.publish()
    writer.put(Host("a.example.org", Reach.NAME, ("192.0.2.1",)))
    writer.publish()
    assert sent == [
        Begin(5, ()),
        Publish(1, ("example.org",), frozenset({"shop/web"}), BALANCERS[1]),
        HostRows([("a.example.org", Reach.NAME, ("192.0.2.1",), False, "", Claimed.NO)]),
        Publish(2),
    ]


def test_load_balancers_that_go_are_a_change_that_is_sent() -> None:
    sent: list[Begin | HostRows | Publish] = []
    writer = FeedWriter(ttl=5, send=sent.append)
    for lead in (BALANCERS[2], BALANCERS[2], Balancers()):
        writer.lead(lead)
        writer.publish()
    assert sent == [Begin(5, ()), Publish(1, balancers=BALANCERS[2]), Publish(2, balancers=Balancers())]
