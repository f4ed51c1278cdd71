"""How controllers read the value of an annotation about the PROXY header.

The law: one reader for each way of reading; it takes the value and a port of the Service and never raises. A value that
the controller refuses is off. Sources: the rows in provider_rows. Tested in
tests/dnsproxy/doctor/judge/test_annotation_values.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, TypeAlias

from dnsproxy.doctor.facts.model import Port


class Reading(Enum):
    """What one annotation says about one port."""

    ON = auto()
    OFF = auto()
    SILENT = auto()
    """Nothing: another annotation may."""
    ELSEWHERE = auto()
    """On for ports whose numbers the facts do not have, such as node ports."""
    UNKNOWN = auto()


Reader: TypeAlias = Callable[[str, Port], Reading]

_PARSE_BOOL: Final = {
    **dict.fromkeys(["1", "t", "T", "TRUE", "true", "True"], True),
    **dict.fromkeys(["0", "f", "F", "FALSE", "false", "False"], False),
}
"""https://pkg.go.dev/strconv#ParseBool"""
_ATTRIBUTE: Final = "proxy_protocol_v2.enabled"
_IN_TREE_ATTRIBUTES: Final = frozenset([_ATTRIBUTE, "preserve_client_ip.enabled"])
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,4}")
_HIGHEST_PORT: Final = 65535


def go_true(value: str, _: Port) -> Reading:
    """strconv.ParseBool, without trimming."""
    return _on(_PARSE_BOOL.get(value, False))


def exactly(*values: str) -> Reader:
    """On for exactly these values."""
    return lambda value, _: _on(value in values)


def in_any_case(*values: str) -> Reader:
    """On for these values in upper or lower case."""
    return lambda value, _: _on(value.lower() in values)


def trimmed_in_any_case(*values: str) -> Reader:
    """On for these values in upper or lower case, with or without spaces around."""
    return lambda value, _: _on(value.strip().lower() in values)


def one_or_two(value: str, _: Port) -> Reading:
    """strconv.Atoi; the version 1 or 2."""
    return _on(_INTEGER.fullmatch(value) is not None and int(value) in (1, 2))


def a_mode(*known: str) -> Reader:
    """A value that the controller hands on as it is; what its API makes of others is unknown."""
    return lambda value, _: (Reading.ON if value in known else Reading.UNKNOWN) if value else Reading.OFF


def scaleway_ports(value: str, port: Port) -> Reading:
    """strconv.ParseBool except 0 and 1, `*`, or ports; all other ports are left to the other annotations."""
    if value in _PARSE_BOOL and value not in ("0", "1"):
        return Reading.ON if _PARSE_BOOL[value] else Reading.SILENT
    return Reading.ON if value == "*" else _listed(value, port, Reading.SILENT) if value else Reading.SILENT


def flag_or_ports(value: str, port: Port) -> Reading:
    """strconv.ParseBool, or ports."""
    return _on(_PARSE_BOOL[value]) if value in _PARSE_BOOL else _listed(value, port, Reading.OFF)


def only_ports(value: str, port: Port) -> Reading:
    """Ports, and off for all others; empty parts do not count."""
    return _listed(",".join(part for part in value.split(",") if part.strip()), port, Reading.OFF)


def port_filter(value: str, port: Port) -> Reading:
    """Off for ports that are not listed; about the others another annotation decides."""
    return Reading.SILENT if _listed(value, port, Reading.OFF) is Reading.ON else Reading.OFF


def node_ports(value: str, _: Port) -> Reading:
    """`*` or node ports, separated by commas alone."""
    parts = value.split(",")
    if "*" in parts:
        return Reading.ON
    return Reading.ELSEWHERE if any(part.isascii() and part.isdecimal() for part in parts) else Reading.OFF


def in_tree_attributes(value: str, _: Port) -> Reading:
    """Attributes of a target group as cloud-provider-aws reads them: it refuses all but two."""
    attributes = dict(_pair(part.strip()) for part in value.strip().split(",") if part.strip())
    good = attributes.keys() <= _IN_TREE_ATTRIBUTES and set(attributes.values()) <= {"true", "false"}
    return _on(good and attributes.get(_ATTRIBUTE) == "true")


def attributes(value: str, _: Port) -> Reading:
    """Attributes of a target group as the AWS Load Balancer Controller reads them."""
    parts = [part.partition("=") for part in value.split(",") if part.strip()]
    if not all(equals and key.strip() for key, equals, _ in parts):
        return Reading.OFF
    found = {key.strip(): text.strip() for key, _, text in parts}
    return _on(found[_ATTRIBUTE] == "true") if found.get(_ATTRIBUTE) else Reading.SILENT


def linode_port(value: str, _: Port) -> Reading:
    """JSON about one port; without its own `proxy-protocol` the default of all ports decides."""
    config = _json(value)
    if not isinstance(config, Mapping):
        return Reading.OFF
    version = config.get("proxy-protocol") or ""
    return (_on(isinstance(version, str) and version.lower() in ("v1", "v2"))) if version else Reading.SILENT


def upcloud_config(value: str, port: Port) -> Reading:
    """JSON about the whole load balancer: its backends have the names of the Service's ports."""
    config = _json(value)
    backends = config.get("backends") if isinstance(config, Mapping) else None
    if not isinstance(backends, list) or not all(isinstance(backend, Mapping) for backend in backends):
        return Reading.OFF
    if len(backends) == 1 and not backends[0].get("name"):
        return _upcloud_backend(backends[0])
    named = [one for one in backends if one.get("name") == (port.name or f"config_{port.port}")]
    return _upcloud_backend(named[0]) if named else Reading.OFF


def _upcloud_backend(backend: Mapping[str, object]) -> Reading:
    properties = backend.get("properties")
    return _on(isinstance(properties, Mapping) and properties.get("outbound_proxy_protocol") in ("v1", "v2"))


def _listed(value: str, port: Port, other: Reading) -> Reading:
    parts = [part.strip() for part in value.split(",")]
    if not all(_NUMBER.fullmatch(part) and int(part) <= _HIGHEST_PORT for part in parts):
        return Reading.OFF
    return Reading.ON if port.port in map(int, parts) else other


def _on(on: bool) -> Reading:
    return Reading.ON if on else Reading.OFF


def _pair(text: str) -> tuple[str, str]:
    key, _, rest = text.partition("=")
    return key, rest.partition("=")[0]


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
