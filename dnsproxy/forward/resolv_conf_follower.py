"""The upstreams of a resolv.conf: read at the start, and followed from then on.

The law: whatever happens to the file, there are upstreams to ask. A file without nameservers, or that names this
server, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from dnsproxy.forward.settings import ForwardSettings, parse_forwarding, refuse_loop
from sidecar.files.follow import follow_file, read_regular_file
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

LARGEST: Final = 1 << 20
"""Octets; a larger file is not a resolv.conf."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.forward")


def read_forwarding(path: Path, *, plain: ForwardSettings) -> ForwardSettings:
    """The settings from a file at the start, when it may be a pipe. Raises StartError with its path."""
    try:
        return parse_forwarding(path.read_text(encoding="utf-8", errors="replace"), plain=plain)
    except OSError as error:
        raise StartError(f"--resolv-conf {path}: {error.strerror}; name servers with --upstream ADDR") from error
    except ValueError as error:
        raise StartError(f"--resolv-conf {path} {error}; name one with --upstream ADDR") from error


async def follow_resolv_conf(
    path: Path,
    *,
    used: ForwardSettings,
    listening: Sequence[Endpoint],
    apply: Callable[[ForwardSettings], None],
) -> None:
    """Apply changed settings, until cancelled. Settings that are not from the file stay as they are."""

    async def read(path: Path) -> ForwardSettings:
        found = parse_forwarding(read_regular_file(path, largest=LARGEST), plain=used)
        refuse_loop(found.upstreams, listening=listening)
        return found

    async def use(found: ForwardSettings) -> None:
        nonlocal used
        # The file may have been rewritten unchanged, or this may be its first read after the start.
        if found != used:
            used = found
            log.info("resolv.conf changed", path=str(path), upstreams=[str(upstream) for upstream in found.upstreams])
            apply(found)

    await follow_file(path, read=read, on_change=use)
