"""A flag's value through a function that checks it.

The law: the parser knows nothing of click; its ValueError is the message that a person reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sidecar.values.text import one_line

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    # Generic in the annotations of click alone.
    ParamType = click.ParamType


class CheckedType(ParamType):
    """The value that `parse` makes of the text, once; a default may be such a value already."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The checked value; a bad text is click's BadParameter."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(one_line(str(error)), param, ctx)
