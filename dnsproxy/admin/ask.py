"""Asking the admin port of a running `dnsproxy serve`."""

from __future__ import annotations

from functools import partial
from typing import Final

from sidecar.asking import CONNECT_SECONDS, NoAnswer, Reply
from sidecar.asking import ask as ask_program
from sidecar.asking import get as get_of_program

__all__ = ["CONNECT_SECONDS", "NoAnswer", "Reply", "ask", "get"]

_PROGRAM: Final = "dnsproxy serve"

ask = partial(ask_program, program=_PROGRAM)
get = partial(get_of_program, program=_PROGRAM)
