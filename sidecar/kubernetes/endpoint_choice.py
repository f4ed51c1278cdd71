"""Which endpoints of a Service get new connections, for every program that chooses pods itself.

The law: pure. As in kube-proxy (KEP-1669): the ready endpoints, and without any those that terminate and still serve,
because a Service with one replica has no others during a rollout.
"""

from __future__ import annotations

from typing import Final, TypeVar

from sidecar.kubernetes.endpoint_slices import Condition

Group = TypeVar("Group")

USABLE: Final = (Condition.READY, Condition.LEAVING)
"""The conditions of endpoints that may get new connections, best first."""


def preferred(*, ready: Group, leaving: Group) -> Group:
    """The group that gets new connections, of the groups with the conditions in USABLE; empty if both are."""
    return ready or leaving
