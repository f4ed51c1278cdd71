"""Control frames: what is written is read, wherever it is cut, and everything else is a BadFrame or a wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.dnstap.frames import (
    CONTENT_TYPE,
    LONGEST_CONTROL,
    BadFrame,
    Control,
    ControlReader,
    Kind,
    format_control,
    format_data,
)

READY = b"\0\0\0\0" + b"\0\0\0\x22" + b"\0\0\0\x04" + b"\0\0\0\x01" + b"\0\0\0\x16" + b"protobuf:dnstap.Dnstap"
"""As the specification has it, octet by octet."""


def control(body: bytes) -> bytes:
    return b"\0\0\0\0" + len(body).to_bytes(4, "big") + body


def read(octets: bytes) -> Control | None:
    reader = ControlReader()
    reader.feed(octets)
    return reader.next_control()


def test_a_ready_frame_has_the_octets_of_the_specification() -> None:
    assert format_control(Control(Kind.READY, (CONTENT_TYPE,))) == READY


def test_a_data_frame_has_its_length_before_it() -> None:
    assert format_data(b"abc") == b"\0\0\0\x03abc"


@given(
    st.lists(st.builds(Control, st.sampled_from(Kind), st.lists(st.binary(max_size=100), max_size=4).map(tuple))),
    st.data(),
)
def test_what_is_written_is_read_wherever_it_is_cut(controls: list[Control], data: st.DataObject) -> None:
    octets = b"".join(map(format_control, controls))
    reader, found = ControlReader(), []
    while octets:
        size = data.draw(st.integers(1, len(octets)))
        reader.feed(octets[:size])
        octets = octets[size:]
        while (one := reader.next_control()) is not None:
            found.append(one)
    assert found == controls


@given(st.binary(max_size=700))
def test_any_octets_are_a_control_frame_or_a_fault_or_too_few(octets: bytes) -> None:
    try:
        found = read(octets)
    except BadFrame:
        return
    assert found is None or octets.startswith(format_control(found))


@given(st.binary(max_size=520).map(control))
def test_any_body_is_a_control_frame_or_a_fault(octets: bytes) -> None:
    try:
        assert read(octets) is not None
    except BadFrame:
        return


def test_half_a_frame_is_waited_for() -> None:
    assert [size for size in range(len(READY)) if read(READY[:size]) is not None] == []


@pytest.mark.parametrize(
    ("octets", "told"),
    [
        pytest.param(b"H", "no Frame Streams", id="the first octet of HTTP"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "no Frame Streams", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\0\x01", "no Frame Streams", id="TLS"),
        pytest.param(format_data(b"abc"), "a data frame", id="a data frame"),
        pytest.param(b"\0\0\0\0\0\0\0\0", "of 0 octets", id="no body"),
        pytest.param(b"\0\0\0\0\0\0\0\3", "of 3 octets", id="no room for a kind"),
        pytest.param(b"\0\0\0\0" + (LONGEST_CONTROL + 1).to_bytes(4, "big"), "of 513 octets", id="one octet too long"),
        pytest.param(b"\0\0\0\0\xff\xff\xff\xff", "of 4294967295 octets", id="the greatest length"),
        pytest.param(control(b"\0\0\0\0"), "unknown kind 0", id="kind 0"),
        pytest.param(control(b"\0\0\0\6"), "unknown kind 6", id="kind 6"),
        pytest.param(control(b"\0\0\0\1\0"), "cut off", id="a cut type"),
        pytest.param(control(b"\0\0\0\1\0\0\0\1\0\0\0"), "cut off", id="a cut length"),
        pytest.param(control(b"\0\0\0\1\0\0\0\1\0\0\0\4abc"), "cut off", id="a cut value"),
        pytest.param(control(b"\0\0\0\1\0\0\0\1\xff\xff\xff\xff"), "cut off", id="a value of 4 GiB"),
        pytest.param(control(b"\0\0\0\1\0\0\0\2\0\0\0\0"), "not known", id="another field"),
        pytest.param(control(b"\0\0\0\1\0\0\0\1\0\0\1\1" + bytes(257)), "not known", id="a type of 257 octets"),
    ],
)
def test_what_is_no_control_frame_is_told(octets: bytes, told: str) -> None:
    with pytest.raises(BadFrame, match=told):
        read(octets)


@pytest.mark.parametrize(
    ("content_types", "accepted"),
    [
        pytest.param((CONTENT_TYPE,), True, id="ours"),
        pytest.param((b"other", CONTENT_TYPE), True, id="ours among others"),
        pytest.param((), True, id="none, which is any"),
        pytest.param((b"other",), False, id="another"),
        pytest.param((b"",), False, id="an empty one"),
        pytest.param((CONTENT_TYPE.upper(),), False, id="in capitals"),
    ],
)
def test_an_accept_frame_names_our_content_or_none(content_types: tuple[bytes, ...], accepted: bool) -> None:
    assert Control(Kind.ACCEPT, content_types).accepts(CONTENT_TYPE) is accepted
