"""Our stanza in a Corefile: the region between its marker comments, or without them, by its content.

The law: a file has at most one region. A region holds only whole `forward` directives of one server block, and removing
it restores every character from before its insertion. Any other use of markers was edited by hand and is refused. The
content counts only where no marker is (unmarked.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dnsproxy.corefile.edits import Place, cut
from dnsproxy.corefile.forward_directive import try_forward
from dnsproxy.corefile.lexer import Comment, comments, lex
from dnsproxy.corefile.model import Corefile, CorefileError, ServerBlock, listed
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.corefile.stanza import POLICY, format_begin
from dnsproxy.corefile.unmarked import find_unmarked

# The words after the name may change between versions; the pattern of a marker may not.
_MARKER = re.compile(r"#[ \t]*(BEGIN|END) switchback\b(?!-)")
_COUNT = re.compile(r"#[ \t]*BEGIN switchback \(([0-9]{1,3}) addresses\)")
_NAME = "switchback"
_REMEDY = "remove the marker lines and the forward lines that belong to them, then run this again"


@dataclass(frozen=True, slots=True)
class Region:
    """The place of our stanza, markers included."""

    start: Place
    stop: Place
    line: int
    begin: str
    """The marker that begins it, as the file has it, or as an install would write it now."""


def count_addresses(text: str) -> int:
    """The number of addresses of dnsproxy that a marker, or the first in a text, says."""
    found = _COUNT.search(text)
    return int(found[1]) if found else 1


def is_marked(text: str) -> bool:
    """Whether a Corefile, or a part of one, has a marker of ours between its words, or our stanza without markers."""
    return _has_marker(text) or _is_unmarked(text)


def find_region(corefile: Corefile) -> Region | None:
    """Our region, or None. Raises CorefileError if the markers enclose anything other than a stanza of ours."""
    found = [(index, comment, match[1]) for index, comment in corefile.comments() if (match := _matched(comment))]
    if not found:
        return _find_unmarked_region(corefile)
    begin, comment, _ = found[0]
    _check_kinds([kind for _, _, kind in found], [mark.line for _, mark, _ in found])
    end, last, _ = found[1]
    region = Region(
        Place(begin, _start_of_cut(corefile.gap(begin), comment)), Place(end, last.end), comment.line, comment.text
    )
    if begin != end and not any(_holds_region(block, begin, end) for block in corefile.blocks):
        reason = f"the markers of lines {comment.line} and {last.line} enclose more or less than whole forward lines"
        raise CorefileError(comment.line, reason, "move all other lines out from between them")
    return region


def without_region(corefile: Corefile) -> Corefile:
    """The Corefile without our stanza; unchanged if it has none."""
    region = find_region(corefile)
    return corefile if region is None else cut(corefile, region.start, region.stop)


def zones_with_upstreams(corefile: Corefile) -> frozenset[str]:
    """The zones for which our stanza has upstreams behind dnsproxy's addresses: a forward served them before it."""
    region = find_region(corefile)
    if region is None:
        return frozenset()
    inside = range(region.start.index, region.stop.index)
    ours = [one for block in corefile.blocks for one in block.named("forward") if one.index in inside]
    count = count_addresses(region.begin)
    # A directive within our markers that cannot be read any more is cut out as well.
    found = [parsed for one in ours if (parsed := try_forward(one)) is not None]
    return frozenset(one.zone for one in found if one.zone is not None and len(one.upstreams) > count)


def _has_marker(text: str) -> bool:
    if _NAME not in text:
        return False
    tokens, tail = lex(text)
    gaps = [*(token.before for token in tokens), tail]
    return any(_matched(comment) for gap in gaps for comment in comments(gap, line=1))


def _find_unmarked_region(corefile: Corefile) -> Region | None:
    unmarked = find_unmarked(corefile)
    if unmarked is None:
        return None
    first, after = unmarked.first.index, unmarked.stop
    start = corefile.gap(first).rfind("\n") + 1 or len(corefile.gap(first))
    # What its owner has written above the next forward stays.
    stop = corefile.gap(after).find("\n") + 1 or len(corefile.gap(after))
    begin = format_begin(unmarked.addresses)
    return Region(Place(first, start), Place(after, stop), unmarked.first.line, begin)


def _is_unmarked(text: str) -> bool:
    if POLICY not in text:
        return False
    try:
        return find_unmarked(parse_corefile(text)) is not None
    except CorefileError:
        return False


def _matched(comment: Comment) -> re.Match[str] | None:
    return _MARKER.match(comment.text)


def _check_kinds(kinds: list[str], lines: list[int]) -> None:
    if kinds == ["BEGIN", "END"]:
        return
    if len(kinds) == 1:
        missing = "END" if kinds == ["BEGIN"] else "BEGIN"
        reason = f"a marker stands alone: {kinds[0]} switchback without {missing} switchback"
    elif kinds == ["END", "BEGIN"]:
        reason = f"the markers are in the wrong order: END switchback stands before BEGIN (line {lines[1]})"
    else:
        reason = f"there are {len(kinds)} markers (lines {listed(lines)}), not one pair"
    raise CorefileError(lines[0], reason, _REMEDY)


def _start_of_cut(gap: str, begin: Comment) -> int:
    """The start of the marker's line, or the marker itself on the first line of a gap, which follows a word."""
    line_end = gap.rfind("\n", 0, begin.start)
    return begin.start if line_end < 0 else line_end + 1


def _holds_region(block: ServerBlock, begin: int, end: int) -> bool:
    inside = [directive for directive in block.directives if begin <= directive.index < end]
    starts = {*(entry.index for entry in block.entries), block.closing}
    return (
        not block.imported
        and {begin, end} <= starts
        and all(directive.name == "forward" and not directive.imported for directive in inside)
        and not any(begin <= entry.index < end for entry in block.imports)
    )
