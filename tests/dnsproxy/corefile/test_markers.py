"""Our region is found where it is whole, and anything else is refused."""

from __future__ import annotations

import pytest

from dnsproxy.corefile.markers import find_region, is_marked, without_region
from dnsproxy.corefile.model import CorefileError, format_corefile
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.stanza import BEGIN, END

OURS = "forward . 192.0.2.1 192.0.2.53"
THEIRS = "forward . 192.0.2.53"


def stripped(text: str) -> str:
    return format_corefile(without_region(parse_corefile(text)))


WHOLE = [
    pytest.param(f"  {BEGIN}\n  {OURS}\n  {END}\n", "", id="lines of their own"),
    pytest.param(f"\t{BEGIN}\r\n\t{OURS} {{\r\n\t}}\r\n\t{END}\r\n", "", id="CRLF and a nested block"),
    pytest.param(f"  {BEGIN}\n  {OURS}\n  {OURS}\n  {END}\n", "", id="two forwards"),
    pytest.param(f"  {BEGIN}\n  {END}\n", "", id="an empty region"),
    pytest.param(f"  {BEGIN}\n  # mine\n\n  {OURS}\n  {END}\n", "", id="comments between the markers go with them"),
    pytest.param(f"  # a\n  {BEGIN}\n{OURS}\n{END}\n  # b\n", "  # a\n  # b\n", id="comments around the markers stay"),
    pytest.param(
        f"# BEGIN switchback, an older wording\n{OURS}\n#END switchback\t\n", "", id="another version's words"
    ),
]


@pytest.mark.parametrize(("region", "left"), WHOLE)
def test_a_region_goes_with_its_lines(region: str, left: str) -> None:
    assert stripped(f".:53 {{\n  log\n{region}  {THEIRS}\n}}\n") == f".:53 {{\n  log\n{left}  {THEIRS}\n}}\n"


def test_a_region_at_the_end_of_its_block_goes() -> None:
    assert stripped(f". {{\n log\n {BEGIN}\n {OURS}\n {END}\n}}\n") == ". {\n log\n}\n"


def test_a_region_that_begins_on_the_line_of_a_brace_leaves_that_line() -> None:
    assert stripped(f". {{ {BEGIN}\n{OURS}\n{END}\n{THEIRS}\n}}") == f". {{ {THEIRS}\n}}"


NO_MARKERS = [
    pytest.param("# BEGIN switchbacks", id="a longer word"),
    pytest.param("# begin switchback", id="lower case"),
    pytest.param("# see BEGIN switchback", id="in the middle of a comment"),
    pytest.param('"# BEGIN switchback"', id="inside quotes"),
    pytest.param("log# BEGIN", id="glued to a word"),
]


@pytest.mark.parametrize("line", NO_MARKERS)
def test_what_only_looks_like_a_marker_is_none(line: str) -> None:
    assert find_region(parse_corefile(f". {{\n template ANY ANY {{\n {line}\n }}\n}}\n")) is None


B, E = "# BEGIN switchback", "# END switchback"
BROKEN = [
    pytest.param(f". {{\n {B}\n {OURS}\n}}\n", 2, "stands alone", id="BEGIN alone"),
    pytest.param(f". {{\n {OURS}\n {E}\n}}\n", 3, "stands alone", id="END alone"),
    pytest.param(f". {{\n {E}\n {OURS}\n {B}\n}}\n", 2, "wrong order", id="reversed"),
    pytest.param(f". {{\n {B}\n {B}\n {OURS}\n {E}\n}}\n", 2, "3 markers", id="BEGIN twice"),
    pytest.param(f". {{\n {B}\n {OURS}\n {E}\n {E}\n}}\n", 2, "3 markers", id="END twice"),
    pytest.param(f". {{\n {B}\n {OURS}\n {E}\n {B}\n {E}\n}}\n", 2, "4 markers", id="two regions"),
    pytest.param(f". {{\n {B}\n {B}\n}}\n", 2, "2 markers", id="two BEGINs"),
    pytest.param(f". {{\n {B}\n log\n {OURS}\n {E}\n}}\n", 2, "whole forward lines", id="a foreign line inside"),
    pytest.param(f". {{\n {B}\n {OURS}\n import x\n {E}\n}}\n", 2, "whole forward lines", id="an import inside"),
    pytest.param(f". {{\n {B}\n {OURS}\n}}\na {{\n {E}\n}}\n", 2, "whole forward lines", id="over two blocks"),
    pytest.param(f"{B}\n. {{\n {OURS}\n {E}\n}}\n", 1, "whole forward lines", id="begins outside the block"),
    pytest.param(f". {{\n {B}\n {OURS} {{\n {E}\n}}\n}}\n", 2, "whole forward lines", id="ends inside a nested block"),
    pytest.param(f". {{\n {B}\n {OURS}\n}}\n{E}\n", 2, "whole forward lines", id="ends behind the block"),
    pytest.param(f"(s) {{\n {B}\n {OURS}\n {E}\n}}\n. {{\n import s\n}}\n", 2, "whole forward", id="inside a snippet"),
    pytest.param(
        f"(s) {{\n {OURS}\n}}\n. {{\n {B}\n import s\n {E}\n}}\n", 5, "whole forward", id="a forward imported"
    ),
    pytest.param(f"{{\n {B}\n {OURS}\n {E}\n}}\n", 2, "whole forward", id="in a block without keys"),
]


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN)
def test_markers_that_other_hands_moved_are_refused(text: str, line: int, reason: str) -> None:
    with pytest.raises(CorefileError, match=reason) as caught:
        find_region(parse_corefile(text))
    assert caught.value.line == line
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (f"{BEGIN}\nforward . 192.0.2.1\n{END}\n", True),
        ("log\n# END switchback", True),
        (f"example.org {{\n  {BEGIN}\n}}\n", True),
        ("", False),
        ("# begin switchback\n", False),
        ("# BEGIN switchback-test\n", False),
        ('log "# BEGIN switchback"\n', False),
        ("log#BEGIN switchback\n", False),
    ],
)
def test_a_part_of_a_corefile_is_marked_by_either_marker(text: str, marked: bool) -> None:
    assert is_marked(text) is marked
