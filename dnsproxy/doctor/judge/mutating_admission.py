"""The version of MutatingAdmissionPolicy that an API server serves, from its own lists of resources.

The law: what the server lists counts, not its version: a distribution can serve a beta, or leave it out. KEP-3962: v1
and on from 1.36; v1beta1 in 1.34 and 1.35, off by default; alpha versions change without notice and are never used.
Tested in tests/dnsproxy/doctor/judge/test_mutating_admission.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from dnsproxy.doctor.judge.short_circuit import parse_version

GROUP: Final = "admissionregistration.k8s.io"
VERSIONS: Final = ("v1", "v1beta1")
"""The best first."""
PLURAL: Final = "mutatingadmissionpolicies"
BINDINGS: Final = "mutatingadmissionpolicybindings"
_BETA_SINCE: Final = (1, 34, 0)
ON_SINCE: Final = (1, 36, 0)
"""The first Kubernetes that has it on by default."""
_GATES: Final = (
    "--feature-gates=MutatingAdmissionPolicy=true and --runtime-config=admissionregistration.k8s.io/v1beta1=true"
)


class _Resource(msgspec.Struct, frozen=True):
    name: str


class ApiResources(msgspec.Struct, frozen=True):
    """An APIResourceList: what an API server serves in one version of a group."""

    resources: tuple[_Resource, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The resources' plural names."""
        return tuple(one.name for one in self.resources)


def resources_path(version: str) -> str:
    """Where an API server lists the resources of one version; 404 if it does not serve it."""
    return f"/apis/{GROUP}/{version}"


def served_version(resources: Mapping[str, Sequence[str]]) -> str:
    """The version to use, from the resources' names by version; empty if there is none."""
    return next((version for version in VERSIONS if PLURAL in resources.get(version, ())), "")


def why_none(server_version: str) -> str:
    """The reason why there is none, and what to do instead."""
    version = parse_version(server_version)
    instead = "until then, `dnsproxy ip-mode --watch` writes the status after the provider"
    name = f"Kubernetes {server_version}" if server_version else "Kubernetes of an unknown version"
    if version is not None and version >= ON_SINCE:
        return f"{name} has MutatingAdmissionPolicy turned off, by a flag of its API server: turn it on; {instead}"
    if version is not None and version >= _BETA_SINCE:
        return (
            f"{name} has MutatingAdmissionPolicy off: start its API server with {_GATES}, or upgrade to 1.36; {instead}"
        )
    return f"{name} has no MutatingAdmissionPolicy: upgrade to 1.36 or newer; {instead}"
