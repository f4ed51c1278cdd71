"""The annotations that turn the PROXY header on at a load balancer, and the meaning of their values.

The law: a value is read as its provider's controller reads it, for each port of the Service, and a value that the
controller refuses means off. Tested in tests/dnsproxy/doctor/judge/test_header_annotations.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dnsproxy.doctor.facts.model import Port, Service
from dnsproxy.doctor.judge.annotation_values import Reader, Reading, go_true

_WEB: Final = (Port(80, "http"), Port(443, "https"))
_PORT: Final = "{port}"


class Sends(Enum):
    """Whether a load balancer is set to send the PROXY header."""

    YES = "is set to send the PROXY header"
    SOME = "is set to send the PROXY header on some of its ports"
    NO = "is not set to send the PROXY header"
    UNKNOWN = "does not show whether it sends the PROXY header"


_SENDS: Final = {Reading.ON: Sends.YES, Reading.OFF: Sends.NO, Reading.UNKNOWN: Sends.UNKNOWN}


@dataclass(frozen=True, slots=True)
class HeaderSwitch:
    """An annotation that turns the PROXY header on."""

    key: str
    """`{port}` stands for the number of a port: such an annotation is about this port alone."""
    read: Reader = go_true
    on: str = "true"
    """The exact value that turns it on; empty if there is none, or if another switch is better."""
    kinds: tuple[str, ...] = ()
    """The kinds of load balancer that have it; empty: all."""
    needs: str = ""
    """What it needs besides, such as a version or a permission."""
    part: str = ""
    """What to set in its value, if that says more than this."""

    def key_of(self, port: Port) -> str:
        """The annotation that says something about a port."""
        return self.key.replace(_PORT, str(port.port))


def read_switches(switches: Sequence[HeaderSwitch], service: Service) -> Sends | None:
    """What the present annotations say; None if none is present. Of several, the first that speaks of a port counts."""
    ports = service.ports or _WEB
    if not any(switch.key_of(port) in service.annotations for switch in switches for port in ports):
        return None
    states = {_of_port(switches, service.annotations, port) for port in ports}
    if len(states) == 1 and Reading.ELSEWHERE not in states:
        return _SENDS[states.pop()]
    return Sends.SOME if states & {Reading.ON, Reading.ELSEWHERE} else Sends.UNKNOWN


def _of_port(switches: Sequence[HeaderSwitch], annotations: Mapping[str, str], port: Port) -> Reading:
    for switch in switches:
        value = annotations.get(switch.key_of(port))
        reading = switch.read(value, port) if value is not None else Reading.SILENT
        if reading is not Reading.SILENT:
            return reading
    return Reading.OFF
