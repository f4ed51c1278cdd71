"""Reads: what a program that only looks needs of a client. Tested in tests/sidecar/kubernetes/test_shared_reads.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sidecar.kubernetes.cluster import Cluster


class Reads(Protocol):
    """An ApiClient, or SharedReads over one."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as last read."""
        ...

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, *, seconds: float, largest: int | None = None
    ) -> bytes:
        """A whole body, within `seconds`. Raises ApiError: Oversized if it has more than `largest` octets."""
        ...
