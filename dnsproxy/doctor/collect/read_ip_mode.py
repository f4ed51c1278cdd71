"""Reads our admission policy: whether the API server can have it, and whether it is there.

The law: every account may ask which versions are served, and few may read the policy, so that a refusal to read it is
no failure of the diagnosis: it stays unknown. Tested in tests/dnsproxy/doctor/collect/test_read_ip_mode.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from dnsproxy.doctor.collect.reader import Reader
from dnsproxy.doctor.facts.model import IpModePolicy
from dnsproxy.doctor.judge.ip_mode_policy import CLASSES_VARIABLE, NAME
from dnsproxy.doctor.judge.mutating_admission import (
    BINDINGS,
    PLURAL,
    VERSIONS,
    ApiResources,
    resources_path,
    served_version,
)
from sidecar.kubernetes.errors import ApiError, NotFound
from sidecar.kubernetes.nesting import decode_nested

T = TypeVar("T")

_FAULTS: Final = (msgspec.DecodeError, RecursionError)


class _Variable(msgspec.Struct, frozen=True):
    name: str
    expression: str = ""


class _Spec(msgspec.Struct, frozen=True):
    variables: tuple[_Variable, ...] | None = None


class _Policy(msgspec.Struct, frozen=True):
    spec: _Spec | None = None


async def read_ip_mode(reader: Reader) -> IpModePolicy | None:
    """The policy; None if the API server did not say which versions it serves."""
    served = {}
    for version in VERSIONS:
        try:
            body = await reader.text(resources_path(version), f"the resources of {version} of admission policies")
            served[version] = _decode(body, ApiResources).names
        except NotFound:
            continue
        except (ApiError, *_FAULTS):
            return None
    version = served_version(served)
    return await _read_policy(reader, version) if version else IpModePolicy(found=False)


async def _read_policy(reader: Reader, version: str) -> IpModePolicy:
    path = f"{resources_path(version)}/{PLURAL}/{NAME}"
    try:
        policy = _decode(await reader.text(path, f"get {PLURAL} {NAME}"), _Policy)
    except NotFound:
        return IpModePolicy(version, found=False)
    except (ApiError, *_FAULTS):
        return IpModePolicy(version)
    variables = (policy.spec.variables or ()) if policy.spec else ()
    bound = await _is_bound(reader, version)
    return IpModePolicy(version, found=True, classes=tuple(_classes(variables)), bound=bound)


def _decode(text: str, kind: type[T]) -> T:
    """Raises DecodeError, or RecursionError for a text that is no object of the API server."""
    return decode_nested(msgspec.json.Decoder(kind), text.encode())


async def _is_bound(reader: Reader, version: str) -> bool | None:
    try:
        await reader.text(f"{resources_path(version)}/{BINDINGS}/{NAME}", f"get {BINDINGS} {NAME}")
    except NotFound:
        return False
    except ApiError:
        return None
    return True


def _classes(variables: Iterable[_Variable]) -> Iterable[str]:
    """A list of CEL strings, written as JSON."""
    for one in variables:
        if one.name == CLASSES_VARIABLE:
            try:
                yield from msgspec.json.decode(one.expression, type=tuple[str, ...])
            except _FAULTS:
                return
