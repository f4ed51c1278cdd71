"""Modules of the standard library that are imported when they are first used.

The law: an importer sees no difference but the time. A library's `import asyncio` gives a placeholder; the first
attribute that anyone asks it for imports the module. `from asyncio import run` asks at once.
"""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any, Final

UNUSED: Final = ("asyncio", "html")
"""What structlog and http.server (by prometheus_client) import and use only in functions that no program here calls.

They take 2 MB of every process.
"""


def defer_unused_modules() -> None:
    """For a program that has not imported its libraries yet."""
    defer_modules(*UNUSED)
    if sys.version_info >= (3, 12):
        # Otherwise each log record asks asyncio for its task, which imports it.
        logging.logAsyncioTasks = False


def defer_modules(*names: str) -> None:
    """Put a placeholder in the place of each top-level module that is not imported yet."""
    for name in names:
        sys.modules.setdefault(name, _Placeholder(name))


class _Placeholder(ModuleType):
    """Stands for the module of its name, and asks that for every attribute.

    importlib.util.LazyLoader cannot: its module is loaded by the `import` statement itself, which reads `__spec__`.
    """

    _leaving: Lock

    def __init__(self, name: str) -> None:
        super().__init__(name)
        super().__setattr__("_leaving", Lock())

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._load(), attribute)

    def __setattr__(self, attribute: str, value: object) -> None:
        setattr(self._load(), attribute, value)

    def __delattr__(self, attribute: str) -> None:
        delattr(self._load(), attribute)

    def __dir__(self) -> list[str]:
        return dir(self._load())

    def _load(self) -> ModuleType:
        name = self.__name__
        # Another thread may do the same, and must not remove the module that has come instead.
        with self._leaving:
            if sys.modules.get(name) is self:
                del sys.modules[name]
        return import_module(name)
