"""The control record of the table zone: what counts for the whole table.

The law: pure; a text is a Control or a ValueError.
"""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Final

import msgspec

from dnsproxy.dns import names
from dnsproxy.hostnames.guards import Guards
from dnsproxy.hostnames.targets import Targets
from dnsproxy.replace.balancers import NO_BALANCERS, Balancers
from sidecar.values.endpoints import is_address
from sidecar.values.text import message_of, quoted

FORMAT: Final = 1
"""The version of the rows and of the control record."""


class SavedGuards(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of Guards: what is denied, and where wildcards end."""

    cluster_domains: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()


class Control(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What counts for the whole table; the record at the apex."""

    format: int
    ttl: Annotated[int, msgspec.Meta(ge=1, le=3600)]
    unready: tuple[str, ...] = ()
    """The Services whose names are forwarded."""
    guards: SavedGuards = SavedGuards()
    target: tuple[str, ...] = ()
    by_class: dict[str, tuple[str, ...]] = {}
    steered: dict[str, str] = {}
    balancers: Balancers | None = None
    """The load balancers that lead here; None: none does."""

    @property
    def targets(self) -> Targets:
        """The targets, for explanations: every row has its own addresses."""
        return Targets(self.target, self.by_class, unready=frozenset(self.unready), steered=self.steered)

    @property
    def named_guards(self) -> Guards:
        """The guards, for explanations and for wildcards."""
        return Guards(**msgspec.structs.asdict(self.guards))


_CONTROL_DECODER: Final = msgspec.json.Decoder(Control)


def format_control(control: Control) -> bytes:
    """The text of the control record."""
    return msgspec.json.encode(control)


def parse_control(text: bytes) -> Control:
    """Raises ValueError."""
    try:
        control = _CONTROL_DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"its control record is not readable: {message_of(error)}") from None
    if control.format != FORMAT:
        raise ValueError(f"its table has format {control.format}, and this program reads format {FORMAT}")
    for name in chain.from_iterable(msgspec.structs.astuple(control.guards)):
        if not _has_wire_form(name):
            raise ValueError(f"{quoted(name)} among its guards is no name")
    balancers = control.balancers or NO_BALANCERS
    for address in chain.from_iterable((*balancers.replaced.values(), *balancers.known.values())):
        if not is_address(address):
            raise ValueError(f"{quoted(address)} among the targets of its load balancers is no address")
    return control


def _has_wire_form(name: str) -> bool:
    labels = name.removeprefix("*.").split(".")
    return (
        name.isascii()
        and len(name) < names.MAXIMUM_NAME - 1
        and all(0 < len(one) <= names.MAXIMUM_LABEL for one in labels)
    )
