"""The annotations that turn the PROXY header on at a load balancer, and the meaning of their values.

The law: a value is read as its provider's controller reads it, and a value that the controller rejects means off.
Tested in tests/dnsproxy/doctor/judge/test_providers.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

_TRUE: Final = frozenset(["true", "1", "yes", "on", "enabled"])
_VERSIONS: Final = frozenset(["v1", "v2", "1", "2", *_TRUE])
_UPCLOUD_ON: Final = re.compile(r'"outbound_proxy_protocol"\s*:\s*"?v?[12]')


class Sends(Enum):
    """Whether a load balancer is set to send the PROXY header."""

    YES = "is set to send the PROXY header"
    SOME = "is set to send the PROXY header on some of its ports"
    NO = "is not set to send the PROXY header"
    UNKNOWN = "does not show whether it sends the PROXY header"


class SwitchFormat(Enum):
    """The format of an annotation's value."""

    FLAG = "true or false"
    VERSION = "v1 or v2, or true"
    PORTS = "true, * or ports"
    ATTRIBUTE = "proxy_protocol_v2.enabled=true among others"
    CONFIG = "JSON with outbound_proxy_protocol"
    MODE = "the name of a mode, such as send-proxy"


@dataclass(frozen=True, slots=True)
class HeaderSwitch:
    """An annotation that turns the PROXY header on."""

    key: str
    value: SwitchFormat = SwitchFormat.FLAG
    on: str = "true"
    """The exact value that turns it on; empty if it is a part of a larger value."""


def read_switches(switches: Sequence[HeaderSwitch], annotations: Mapping[str, str]) -> Sends | None:
    """What the present annotations say; None if none is present."""
    states = [_state(switch, annotations[switch.key]) for switch in switches if switch.key in annotations]
    for state in (Sends.YES, Sends.SOME):
        if state in states:
            return state
    return Sends.NO if states else None


def _state(switch: HeaderSwitch, value: str) -> Sends:
    text = value.strip().lower()
    match switch.value:
        case SwitchFormat.FLAG:
            on = text in _TRUE
        case SwitchFormat.VERSION:
            on = text in _VERSIONS
        case SwitchFormat.ATTRIBUTE:
            on = "proxy_protocol_v2.enabled=true" in text.replace(" ", "")
        case SwitchFormat.CONFIG:
            on = _UPCLOUD_ON.search(text) is not None
        case SwitchFormat.MODE:
            on = text not in ("", "false", "none", "off")
        case SwitchFormat.PORTS:
            if text not in ("", "false", "*", *_TRUE):
                return Sends.SOME
            on = text == "*" or text in _TRUE
    return Sends.YES if on else Sends.NO
