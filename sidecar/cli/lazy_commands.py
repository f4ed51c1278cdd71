"""Commands of a group that are imported when they are called, and not when another one is.

The law: a mapping like any other, so that click's help, completion and "did you mean" work as ever; only looking a
command up imports its module. A server that starts pays for itself alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name; `places` has `MODULE:ATTRIBUTE` for each."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._places[name].partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            self._loaded[name] = command
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._places[name], self._loaded[name] = "", command

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        """Not by looking it up, as Mapping would."""
        return name in self._places
