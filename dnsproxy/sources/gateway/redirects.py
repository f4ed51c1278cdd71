"""Redirects: whether an HTTPRoute does nothing but redirect, as the one that leads every name from http to https.

The law: pure; any JSON. Rules of another shape than the specification's are no redirects, so that they cost no name.
https://gateway-api.sigs.k8s.io/reference/spec/#httproutefilter
"""

from __future__ import annotations

from typing import Final

import msgspec

_REDIRECT: Final = "RequestRedirect"
_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Filter(msgspec.Struct, frozen=True, gc=False):
    type: str | None = None


class _Rule(msgspec.Struct, frozen=True, gc=False):
    filters: tuple[_Filter | None, ...] | None = None


_DECODER: Final = msgspec.json.Decoder(tuple[_Rule | None, ...] | None)


def only_redirects(rules: msgspec.Raw) -> bool:
    """Whether every rule of `spec.rules` redirects, and there is one. A filter of a backend does not count."""
    try:
        found = _DECODER.decode(rules)
    except _FAULTS:
        return False
    return bool(found) and all(map(_redirects, found))


def _redirects(rule: _Rule | None) -> bool:
    filters = (rule.filters if rule is not None else None) or ()
    return any(one is not None and one.type == _REDIRECT for one in filters)
