"""What an API server is filled with for a measurement, and what is created while one runs.

The law: values only; a measurement of Ingresses and one of mixed kinds differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.bench.sync import filling, mix
from tests.bench.sync.changing import restore
from tests.bench.sync.mixed_filling import fill_mixed, wait_cached
from tests.bench.sync.new_object import NewObject
from tests.kit.apiserver import ApiServer


@dataclass(frozen=True, slots=True)
class Contents:
    """Objects, numbered from 0."""

    name: str
    sources: tuple[str, ...]
    """The values of `--source` that read them all."""
    object_of: Callable[[int], NewObject]
    fill: Callable[..., Any] = field(repr=False)
    """Takes an ApiServer, how many objects there are to be, and `tell`, which hears how many there are."""
    wait_cached: Callable[[ApiServer], None] = lambda _: None
    """Waits until an API server that started has the objects in its caches, as it has Ingresses once it is ready."""

    def hostname_of(self, number: int) -> str:
        """The host of one object."""
        return self.object_of(number).hostname


def _fill_ingresses(server: ApiServer, count: int, *, tell: Callable[[int], None]) -> None:
    filling.fill(server, count, tell=tell)
    # A run that was ended in the middle of its changes leaves them behind.
    restore(server.etcd_port, count=count)


INGRESSES: Final = Contents("ingresses", ("ingress",), filling.object_of, _fill_ingresses)
MIXED: Final = Contents("mixed", mix.SOURCES, mix.object_of, fill_mixed, wait_cached)
