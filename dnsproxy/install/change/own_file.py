"""Our own file: what an import of a Corefile brings in from a key that is ours.

The law: it is ours from its first marker to its second, both included; what others put around that stays. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dnsproxy.corefile.markers import BEGIN, END
from dnsproxy.install.change.refusal import Refusal

# A marker begins its line here: we write it so, and no word of ours goes over several lines.
_MARKER: Final = re.compile(r"(?m)^[ \t]*#[ \t]*(BEGIN|END) switchback\b(?!-).*(?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What others have in the file."""

    before: str = ""
    after: str = ""

    @property
    def empty(self) -> bool:
        """Whether the whole file is ours."""
        return not (self.before + self.after).strip()


def find_surroundings(text: str, place: object) -> Surroundings:
    """What of a file is not ours. Raises Refusal for markers that enclose nothing."""
    found = list(_MARKER.finditer(text))
    if [match[1] for match in found] == ["BEGIN", "END"]:
        return Surroundings(text[: found[0].start()], text[found[1].end() :])
    reason = f"its markers are damaged: {' '.join(match[1] for match in found) or 'none'}, not BEGIN END"
    raise Refusal(reason, "take out what is dnsproxy's by hand, then run this again", place=str(place))


def format_own_file(lines: Iterable[str], around: Surroundings | None = None) -> str:
    """The file with these lines of ours in it."""
    around = around or Surroundings()
    return around.before + "".join(f"{line}\n" for line in (BEGIN, *lines, END)) + around.after
