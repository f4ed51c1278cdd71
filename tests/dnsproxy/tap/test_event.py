import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.tap.event import (
    Dropped,
    TapEvent,
    describe,
    format_dropped_json,
    format_event,
    format_event_json,
    parse_event,
)
from dnsproxy.tap.seen import Exchange, Outcome, Seen
from tests.kit.messages import header, opt_record, option, query, question

NOON = 1_700_000_000.25


def seen(message: bytes, reply: bytes = b"", outcome: Outcome = Outcome.DROPPED, **more: object) -> Seen:
    return Seen(NOON, 0.000_25, True, "192.0.2.7", 5353, message, reply, outcome, **more)  # type: ignore[arg-type]


def test_an_answer_of_the_table_names_its_row() -> None:
    asked = query("App.Example.org", 28)
    event = describe(seen(asked, header(0x8400), Outcome.TABLE, rule="*.example.org"))
    assert event == TapEvent(
        time="2023-11-14T22:13:20.250000Z",
        client="192.0.2.7",
        port=5353,
        transport="udp",
        qname="App.Example.org",
        qtype="AAAA",
        outcome="table",
        seconds=0.00025,
        rcode="NOERROR",
        rule="*.example.org",
    )
    assert format_event(event) == (
        "22:13:20.250000  192.0.2.7:5353  udp  App.Example.org AAAA  table NOERROR *.example.org  0.250 ms"
    )


def test_a_forwarded_query_names_its_upstream_and_the_client_behind_the_resolver() -> None:
    subnet = opt_record(options=option(8, b"\0\x01\x20\0\xc0\0\2\x09"))
    asked = query("example.net", additional=(subnet,))
    event = describe(seen(asked, header(0x8183), Outcome.UPSTREAM, exchange=Exchange("192.0.2.53:53", True, 0.1)))
    assert (event.upstream, event.rcode, event.subnet) == ("192.0.2.53:53", "NXDOMAIN", "192.0.2.9/32")
    assert "192.0.2.7:5353 for 192.0.2.9/32  udp  example.net A  upstream NXDOMAIN 192.0.2.53:53" in format_event(event)


@pytest.mark.parametrize(
    ("message", "qname", "qtype"),
    [
        pytest.param(b"", "", "", id="nothing"),
        pytest.param(query("a.b")[:-3], "", "", id="cut"),
        pytest.param(header(counts=(2, 0, 0, 0)) + question("a.b") * 2, "", "", id="two questions"),
        pytest.param(query(""), ".", "A", id="the root"),
        pytest.param(query("a.b", 65_280), "a.b", "TYPE65280", id="an unknown type"),
        pytest.param(query(b"\x03a.b\x05\x1b[31m\x00"), "a\\.b.\\027[31m", "A", id="dots and escape codes in labels"),
    ],
)
def test_any_question_is_shown_safely(message: bytes, qname: str, qtype: str) -> None:
    event = describe(seen(message))
    assert (event.qname, event.qtype, event.rcode) == (qname, qtype, "")
    assert format_event(event).isprintable()


def test_an_ipv6_client_stands_in_brackets() -> None:
    event = describe(Seen(NOON, 0.1, False, "2001:db8::7", 53, query("a.b"), b"", Outcome.DROPPED))
    assert "  [2001:db8::7]:53  tcp  " in format_event(event)


def test_a_replica_stands_before_the_client() -> None:
    event = TapEvent("2023-11-14T22:13:20.250000Z", "192.0.2.7", 1, "udp", "a.b", "A", "table", 0.1, pod="dnsproxy-0")
    assert "  dnsproxy-0 192.0.2.7:1  " in format_event(event)


@given(st.binary(max_size=80), st.binary(min_size=12, max_size=80), st.sampled_from(list(Outcome)))
def test_an_event_survives_its_line(message: bytes, reply: bytes, outcome: Outcome) -> None:
    event = describe(seen(message, reply, outcome))
    line = format_event_json(event)
    assert line.count(b"\n") == 1
    assert parse_event(line) == event


def test_a_note_of_drops_survives_its_line() -> None:
    assert parse_event(format_dropped_json(7)) == Dropped(7)


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b'{"dropped":"x"}', b"\xff", b"[" * 10_000, b'{"time":1}'])
def test_other_lines_are_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_event(line)
