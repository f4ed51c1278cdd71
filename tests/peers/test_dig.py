"""dig's output is read correctly, and each verdict is given for a reply that deserves it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kit.dig import DigEdns, DigReply, NotRead, parse_dig
from tests.peers.ednscomp import Expected, find_faults

PLAIN = """
; <<>> DiG 9.18.49 <<>> @127.0.0.1 app.example.org
;; Got answer:
;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 40840
;; flags: qr aa rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1

;; OPT PSEUDOSECTION:
; EDNS: version: 0, flags:; udp: 1232
;; QUESTION SECTION:
;app.example.org.		IN	A

;; ANSWER SECTION:
app.example.org.	5	IN	A	192.0.2.80

;; Query time: 0 msec
;; MSG SIZE  rcvd: 60
"""

REPLY = DigReply(
    opcode="QUERY",
    status="NOERROR",
    flags=frozenset({"qr", "aa", "rd", "ra"}),
    mbz=0,
    counts=(1, 1, 0, 1),
    edns=DigEdns(0, frozenset(), 0, 1232, ()),
    sections=(("QUESTION", (";app.example.org.\t\tIN\tA",)), ("ANSWER", ("app.example.org.\t5\tIN\tA\t192.0.2.80",))),
    size=60,
)
EDNS = DigEdns(0, frozenset(), 0, 1232, ())
SOA = ("example.org. 5 IN SOA ns.example.org. nobody.invalid. 1 2 3 4 5",)


def test_a_reply_is_read_whole() -> None:
    assert parse_dig(PLAIN) == REPLY


def test_the_id_and_the_time_make_no_difference() -> None:
    other = PLAIN.replace("40840", "1").replace("0 msec", "7 msec")
    assert parse_dig(other) == REPLY


@pytest.mark.parametrize(
    ("printed", "instead", "part"),
    [
        pytest.param("aa rd ra;", "aa rd ra; MBZ: 0x4;", {"mbz": 4}, id="Z in the header"),
        pytest.param(
            "flags:; udp: 1232",
            "flags: do; MBZ: 0x0040, udp: 512",
            {"edns": DigEdns(0, frozenset({"do"}), 0x40, 512, ())},
            id="flags of the OPT",
        ),
        pytest.param(
            "udp: 1232\n",
            "udp: 1232\n; NSID: 75 70 (up)\n; OPT=100: 01\n",
            {"edns": replace(EDNS, options=("; NSID: 75 70 (up)", "; OPT=100: 01"))},
            id="options",
        ),
        pytest.param("status: NOERROR", "status: BADVERS", {"status": "BADVERS"}, id="status"),
        pytest.param("opcode: QUERY", "opcode: RESERVED15", {"opcode": "RESERVED15"}, id="opcode"),
        pytest.param(";; MSG SIZE  rcvd: 60\n", "", {"size": None}, id="no size"),
    ],
)
def test_each_part_is_read(printed: str, instead: str, part: dict[str, object]) -> None:
    assert parse_dig(PLAIN.replace(printed, instead)) == replace(REPLY, **part)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(";; communications error to 127.0.0.1#53: timed out\n;; no servers could be reached\n", id="loss"),
        pytest.param(";; Got bad packet: FORMERR\n12 bytes\n", id="malformed"),
        pytest.param(PLAIN + PLAIN, id="two replies"),
        pytest.param(PLAIN.replace("; EDNS:", "; EDNS?"), id="an OPT in an unknown form"),
        pytest.param(PLAIN.replace(";; flags:", ";; flogs:"), id="flags in an unknown form"),
    ],
)
def test_what_is_no_single_reply_is_an_error(text: str) -> None:
    with pytest.raises(NotRead):
        parse_dig(text)


@pytest.mark.parametrize(
    ("reply", "expected", "words"),
    [
        pytest.param(REPLY, Expected(), [], id="nothing is wrong"),
        pytest.param(replace(REPLY, status="FORMERR"), Expected(), ["status"], id="status"),
        pytest.param(replace(REPLY, flags=REPLY.flags - {"qr"}), Expected(), ["noqr"], id="noqr"),
        pytest.param(REPLY, Expected(aa=False), ["aa"], id="aa"),
        pytest.param(REPLY, Expected(tc=True), ["tc"], id="tc"),
        pytest.param(replace(REPLY, flags=REPLY.flags | {"ad"}), Expected(), ["ad"], id="ad"),
        pytest.param(replace(REPLY, mbz=4), Expected(), ["z"], id="z"),
        pytest.param(REPLY, Expected(most=59), ["toobig"], id="toobig"),
        pytest.param(REPLY, Expected(answers=2), ["answer"], id="answer"),
        pytest.param(REPLY, Expected(soa=True), ["nosoa", "authority"], id="nosoa"),
        pytest.param(
            replace(REPLY, counts=(1, 1, 1, 1), sections=(*REPLY.sections, ("AUTHORITY", SOA))),
            Expected(),
            ["authority"],
            id="an SOA that is not wanted",
        ),
        pytest.param(replace(REPLY, counts=(1, 1, 0, 2)), Expected(), ["additional"], id="additional"),
        pytest.param(replace(REPLY, edns=None, counts=(1, 1, 0, 0)), Expected(), ["noopt"], id="noopt"),
        pytest.param(REPLY, Expected(edns=False), ["opt"], id="opt"),
        pytest.param(replace(REPLY, edns=replace(EDNS, version=1)), Expected(), ["version"], id="version"),
        pytest.param(replace(REPLY, edns=replace(EDNS, mbz=0x40)), Expected(), ["mbz"], id="mbz"),
        pytest.param(REPLY, Expected(do=True), ["nodo"], id="nodo"),
        pytest.param(replace(REPLY, edns=replace(EDNS, flags=frozenset({"do"}))), Expected(), ["do"], id="do"),
        pytest.param(replace(REPLY, edns=replace(EDNS, options=("; OPT=100",))), Expected(), ["echoed"], id="echoed"),
    ],
)
def test_each_fault_has_its_word(reply: DigReply, expected: Expected, words: list[str]) -> None:
    assert find_faults(reply, expected) == words
