"""Commands of a group, each imported only when it is called.

The law: an ordinary mapping, so that click's help, completion and "did you mean" keep working; only the lookup of a
command imports its module. A server does not load the code of other commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name; `places` maps each name to `MODULE:ATTRIBUTE`."""

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
        """Without the lookup that Mapping would do, because that imports."""
        return name in self._places
