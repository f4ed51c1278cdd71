"""The block in a hosts file: what stays unchanged, what is refused, and how the block is removed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dnsproxy.publish.hosts.block import (
    BEGIN,
    END,
    HostsFileError,
    find_block,
    first_difference,
    plan_block,
)

LINES = ("192.0.2.10 app.example.org", "2001:db8::10 app.example.org")

line_ends = st.sampled_from((b"\n", b"\r\n", b"\r"))
foreign_lines = st.lists(
    st.one_of(
        st.sampled_from(
            (b"127.0.0.1 localhost", b"", b"# END of story", b"192.0.2.1 a # BEGIN switchback", b"\xff\x00", b"# BEGIN")
        ),
        st.binary(max_size=12),
    )
    .map(lambda line: line.replace(b"\n", b"").replace(b"switchback", b""))
    .flatmap(lambda line: line_ends.map(lambda end: line + end)),
    max_size=5,
)
last_lines = st.binary(max_size=8).filter(lambda line: b"switchback" not in line and b"\n" not in line)
files = st.builds(lambda lines, last: b"".join(lines) + last, foreign_lines, last_lines)
tables = st.lists(st.sampled_from((*LINES, "192.0.2.11 b.example.org")), max_size=3, unique=True)


def applied(text: bytes, lines: list[str] | tuple[str, ...]) -> bytes:
    return plan_block(text, lines).new


@given(files, tables)
@example(b"", list(LINES))
@example(b"127.0.0.1 localhost", list(LINES))
@example(b"127.0.0.1 localhost\r\n::1 localhost", list(LINES))
@example(b"a\r\nb\r", list(LINES))
def test_a_block_that_is_taken_out_leaves_the_octets_from_before(text: bytes, lines: list[str]) -> None:
    assert applied(applied(text, lines), ()) == text


@given(files, tables)
def test_twice_is_once(text: bytes, lines: list[str]) -> None:
    once = plan_block(text, lines)
    again = plan_block(once.new, lines)
    assert not again.changed
    assert once.changed == bool(lines)


@given(files, st.lists(tables, max_size=4), files)
def test_foreign_octets_survive_any_sequence_of_tables_wherever_they_stand(
    text: bytes, sequence: list[list[str]], below: bytes
) -> None:
    now = applied(text, LINES) + below
    # A line end that came with the block stays where it parts lines of others.
    parted = [text + below, *(text + end + below for end in (b"\n", b"\r\n") if below and not text.endswith(b"\n"))]
    for lines in sequence:
        now = applied(now, lines)
        assert applied(now, ()) in parted


@given(files, tables)
def test_the_lines_of_the_block_are_those_given(text: bytes, lines: list[str]) -> None:
    block = find_block(applied(text, lines))
    assert (list(block.lines) if block else []) == [line.encode() for line in lines]


def test_a_block_comes_at_the_end_and_ends_its_lines_as_the_file_does() -> None:
    assert applied(b"a\r\n", LINES[:1]) == b"a\r\n" + BEGIN + b"\r\n192.0.2.10 app.example.org\r\n" + END + b"\r\n"
    assert applied(b"a\n", LINES[:1]) == b"a\n" + BEGIN + b"\n192.0.2.10 app.example.org\n" + END + b"\n"


def test_a_block_keeps_its_place_when_others_write_below_it() -> None:
    text = applied(b"a\n", LINES[:1]) + b"b\n"
    assert applied(text, LINES[1:]) == applied(b"a\n", LINES[1:]) + b"b\n"


def test_lines_of_others_are_not_joined_when_the_block_between_them_goes() -> None:
    assert applied(applied(b"a", LINES) + b"b\n", ()) == b"a\nb\n"


def test_an_end_marker_without_a_line_end_is_one_all_the_same() -> None:
    text = applied(b"a\n", LINES).removesuffix(b"\n")
    assert applied(text, ()) == b"a\n"
    assert applied(text, LINES) == applied(b"a\n", LINES)


def test_a_byte_order_mark_in_front_of_the_block_stays_and_hides_no_marker() -> None:
    text = b"\xef\xbb\xbf" + applied(b"", LINES[:1])
    assert applied(text, LINES) == b"\xef\xbb\xbf" + applied(b"", LINES)
    assert applied(text, ()) == b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(b"# BEGIN switchback", id="bare"),
        pytest.param(b"#BEGIN switchback: of another version", id="other words, no blank"),
        pytest.param(b" \t#\tBEGIN switchback", id="indented"),
    ],
)
def test_a_marker_of_another_version_is_known(begin: bytes) -> None:
    assert applied(b"a\n" + begin + b"\nold\n#END switchback\n", LINES) == applied(b"a\n", LINES)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        pytest.param(b"a\n# BEGIN switchback\n", 2, "a marker stands alone: BEGIN without END", id="lone begin"),
        pytest.param(b"# END switchback", 1, "a marker stands alone: END without BEGIN", id="lone end"),
        pytest.param(
            b"# END switchback\n# BEGIN switchback\n", 1, "END switchback stands before BEGIN switchback", id="reversed"
        ),
        pytest.param(
            b"# BEGIN switchback\n# BEGIN switchback\n# END switchback\n", 1, "there are 3 markers", id="two begins"
        ),
        pytest.param(
            b"# BEGIN switchback\n# END switchback\n" * 2, 1, r"4 markers \(lines 1, 2, 3, 4\)", id="two blocks"
        ),
        pytest.param(b"# BEGIN switchback\n" * 2, 1, "2 markers", id="two begins and no end"),
        pytest.param(b"# END switchback\n" * 2, 1, "2 markers", id="two ends"),
        pytest.param(b"a\r\n\r\n # END switchback\r\n", 3, "stands alone", id="indented, CRLF"),
    ],
)
@pytest.mark.parametrize("lines", [LINES, ()], ids=["add", "remove"])
def test_markers_that_enclose_no_one_block_are_refused(
    text: bytes, line: int, reason: str, lines: tuple[str, ...]
) -> None:
    with pytest.raises(HostsFileError, match=reason) as caught:
        plan_block(text, lines)
    assert caught.value.line == line
    assert "remove the marker lines" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"192.0.2.1 a # BEGIN switchback\n", id="behind an address"),
        pytest.param(b"# BEGIN switchback-other\n", id="another program"),
        pytest.param(b"# BEGIN switchbacks\n", id="another word"),
        pytest.param(b"# begin switchback\n", id="other case"),
        pytest.param(b"## BEGIN switchback\n", id="two hashes"),
        pytest.param(b"a\n\xef\xbb\xbf# BEGIN switchback\n", id="a byte order mark below the first line"),
        pytest.param(b"x\r# BEGIN switchback\n", id="a carriage return is no line end"),
    ],
)
def test_what_only_looks_like_a_marker_is_foreign(text: bytes) -> None:
    assert find_block(text) is None
    assert applied(applied(text, LINES), ()) == text


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_the_first_difference_is_where_the_texts_part(common: bytes, one: bytes, other: bytes) -> None:
    old, new = common + one, common + other
    at = first_difference(old, new)
    assert old[:at] == new[:at]
    assert at in (len(old), len(new)) or old[at] != new[at]
