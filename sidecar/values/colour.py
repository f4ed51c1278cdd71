"""Whether to colour what is written: a decision from the environment alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def colour_choice(environment: Mapping[str, str]) -> bool | None:
    """False for never, True for always, None for "on a terminal only".

    A non-empty NO_COLOR (no-color.org) or TERM=dumb means never; a non-empty FORCE_COLOR means always.
    """
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return True if environment.get("FORCE_COLOR") else None
