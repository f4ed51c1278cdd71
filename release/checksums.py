"""SHA256SUMS, the file that `sha256sum -c` reads.

The law: sorted by name, two spaces between digest and name, a newline at each end. A name has no newline, backslash or
slash: coreutils would escape the first two, and the file is about one folder.
"""

from __future__ import annotations

from collections.abc import Mapping


def format_checksums(digests: Mapping[str, str]) -> str:
    """The file for hexadecimal SHA-256 digests by file name."""
    for name in digests:
        if not name or any(mark in name for mark in "\n\\/"):
            raise ValueError(f"{name!r} is no plain file name")
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
