"""The numbered lines of a hosts file, from any octets.

The law: pure; an invalid octet or a line of any length never costs another line, and each step takes bounded time.
Tested in test_hosts_file.py.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from typing import Final

LONGEST: Final = 1 << 16
"""Characters; a longer line is rejected. hosts(5) has no limit, the C library stops at fewer."""

# Octets that are not UTF-8 become surrogates, so that they spoil only the word that they stand in.
_ERRORS: Final = "surrogateescape"
_NO_TEXT: Final = re.compile("[\udc80-\udcff]")


def numbered_lines(octets: bytes) -> Iterator[tuple[int, str]]:
    """Each line with its number, from 1. A line ends with LF, CR LF or CR; a byte order mark is no part of the first.

    Of a line of more than LONGEST characters only the beginning comes, longer than LONGEST, then empty texts with its
    number, so that other tasks may run in between.
    """
    # For Windows' editors; the codec utf-8-sig would decode in Python.
    start = len(BOM_UTF8) if octets.startswith(BOM_UTF8) else 0
    file, number = BytesIO(octets), 0
    file.seek(start)
    with TextIOWrapper(file, encoding="utf-8", errors=_ERRORS) as text:
        while line := text.readline(LONGEST + 1):
            number += 1
            yield number, line
            while not line.endswith("\n") and (line := text.readline(LONGEST)):
                yield number, ""


def is_text(word: str) -> bool:
    """Whether a part of such a line was UTF-8."""
    return _NO_TEXT.search(word) is None
