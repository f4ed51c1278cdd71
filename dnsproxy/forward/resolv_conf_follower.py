"""The upstreams and the search domains of a resolv.conf: read at the start, and followed from then on.

The law: whatever happens to the file, there are upstreams to ask, and the search domains stay protected. A nameserver
that is this server is excluded and logged; a file without any other changes nothing. A server that has upstreams from
elsewhere may start without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from dnsproxy.forward.resolv_conf import parse_nameservers, parse_search, search_domains
from dnsproxy.forward.settings import ForwardSettings, exclude_own, parse_forwarding
from sidecar.files.follow import Reloads, follow_file, read_regular_file, read_settled
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError

LARGEST: Final = 1 << 20
"""Octets; a larger file is not a resolv.conf."""

log: structlog.stdlib.BoundLogger = structlog.get_logger("dnsproxy.forward")


def read_forwarding(path: Path, *, plain: ForwardSettings, may_be_empty: bool = False) -> ForwardSettings:
    """The settings from a file at the start, when it may be a pipe. Raises StartError with its path."""
    try:
        octets, _ = read_settled(path, largest=LARGEST)
        return parse_forwarding(octets.decode("utf-8", "replace"), plain=plain, may_be_empty=may_be_empty)
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
    apply_search: Callable[[tuple[str, ...]], None] = lambda _: None,
    reloads: Reloads | None = None,
) -> None:
    """Apply changed settings, and the search domains of each content, until cancelled; `reloads` as in follow_file.

    Settings that are not from the file stay as they are.
    """
    used, ours = exclude_own(used, listening=listening, may_be_empty=True)

    async def read(path: Path) -> tuple[ForwardSettings, tuple[Endpoint, ...], tuple[str, ...]]:
        content = read_regular_file(path, largest=LARGEST)
        # Lost nameservers stay in use; a node that never had one is no fault.
        none_yet = not used.upstreams
        found = parse_forwarding(content, plain=used, may_be_empty=none_yet)
        return *exclude_own(found, listening=listening, may_be_empty=none_yet), search_domains(parse_search(content))

    async def use(found: tuple[ForwardSettings, tuple[Endpoint, ...], tuple[str, ...]]) -> None:
        nonlocal used, ours
        # The file may have been rewritten unchanged, or this may be its first read after the start.
        if found[1] != ours:
            log_own_nameservers(found[1])
        if found[0] != used:
            upstreams = [str(upstream) for upstream in found[0].upstreams]
            log.info("resolv.conf changed", path=str(path), upstreams=upstreams)
            apply(found[0])
        used, ours, search = found
        apply_search(search)

    await follow_file(path, read=read, on_change=use, reloads=reloads)


async def follow_search(
    path: Path, *, apply_search: Callable[[tuple[str, ...]], None], reloads: Reloads | None = None
) -> None:
    """Apply the search domains of a file whose nameservers are not asked; otherwise as follow_resolv_conf."""

    async def read(path: Path) -> tuple[str, ...]:
        content = read_regular_file(path, largest=LARGEST)
        if not parse_nameservers(content):
            raise ValueError("has no nameserver")
        return search_domains(parse_search(content))

    async def use(found: tuple[str, ...]) -> None:
        apply_search(found)

    await follow_file(path, read=read, on_change=use, reloads=reloads)


def log_own_nameservers(ours: Sequence[Endpoint]) -> None:
    """Report the nameservers of a resolv.conf that are excluded because they are this server."""
    if ours:
        log.warning("resolv.conf names dnsproxy itself; it is excluded", nameservers=[str(one) for one in ours])
