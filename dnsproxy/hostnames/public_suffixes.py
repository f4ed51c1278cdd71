"""Public suffixes: the domains under which names of many owners are, such as `co.uk` and `github.io`.

The law: pure; the list is that of publicsuffix.org in the package publicsuffixlist, nothing is fetched. It is read
once, when it is first needed: 35 ms and 2 MiB, so a server reads it before its first query (load_public_suffixes).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


def load_public_suffixes() -> None:
    """Read the list now."""
    _suffixes()


def is_public_suffix(name: str) -> bool:
    """Whether a name in normal form, without `*.`, is a public suffix; an unknown top-level domain is one."""
    return bool(_suffixes().is_public(name))


def registrable_domain(name: str) -> str | None:
    """One label below the public suffix of a name in normal form, without `*.`; None for a suffix itself."""
    found: str | None = _suffixes().privatesuffix(name)
    return found


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415  # commands that never ask must not load it

    return PublicSuffixList()
