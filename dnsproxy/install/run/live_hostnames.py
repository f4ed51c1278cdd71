"""Live hostnames and their zones: those of dnsproxy's own table, or else of the cluster's Ingresses.

The law: they are read when they are needed, and never more than once for one plan or report.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dnsproxy.admin.listing import parse_listing
from dnsproxy.cluster_dns.read import read_one
from dnsproxy.cluster_dns.requests import INGRESS, Fault, Request, Unreadable, fault_of
from dnsproxy.cluster_dns.taken_hosts import TakenHosts, TakenLine, find_taken_hosts
from dnsproxy.dns.names import is_within
from dnsproxy.install.change.coverage import Coverage, find_coverage
from dnsproxy.install.change.ingress_hosts import hosts_of
from dnsproxy.install.run.own_zones import OwnZones, ZonesReader
from sidecar.admin.asking import NoAnswer, get
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.structs.network import Ingress
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from sidecar.values.text import message_of

OWN_TABLE: Final = "the table of dnsproxy"
ALL_INGRESSES: Final = Request(INGRESS, "")


@dataclass(frozen=True, slots=True)
class FoundZones:
    """The zones that are wanted, or hostnames in them."""

    wanted: tuple[str, ...]
    source: str
    """For messages."""
    doubt: str = ""
    """Why zones may be missing; empty if another zone is not wanted."""
    note: str = ""
    """What a user should know about the source; empty if there is nothing."""


class HostsDenied(StartError):
    """RBAC does not allow to list the Ingresses, or they are unreadable."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(f"the hosts of the Ingresses could not be read: {fault}", status=ExitStatus.UNKNOWN)
        self.fault = fault


async def read_hostnames(client: ApiClient, admin: Endpoint | None) -> tuple[Iterable[str], str]:
    """The live hostnames, and their source for messages. Raises StartError with status 3."""
    if admin is not None:
        try:
            rows = parse_listing((await get(admin, "/table", program="dnsproxy serve")).body).names
        except NoAnswer as error:
            raise StartError(f"--from {admin}: {error}", status=ExitStatus.UNKNOWN) from None
        except ValueError as error:
            text = f"--from {admin}: the answer is not that of a `dnsproxy serve` of this version ({message_of(error)})"
            raise StartError(text, status=ExitStatus.UNKNOWN) from None
        return [row.hostname for row in rows], f"the table of the dnsproxy at {admin}"
    ingresses: tuple[Ingress, ...] | Fault | None = await read_one(client, ALL_INGRESSES)
    if isinstance(ingresses, Fault):
        raise HostsDenied(ingresses)
    return hosts_of(ingresses or ()), "the hosts of the cluster's Ingresses"


async def read_zones(
    client: ApiClient, admin: Endpoint | None, pods: Sequence[Endpoint], reader: ZonesReader
) -> FoundZones:
    """The wanted zones, of the first source that answers: `admin`, the pods, the Ingresses. Raises StartError."""
    asked = (admin,) if admin is not None else tuple(pods)
    own = await reader.read(asked)
    if own.answered:
        source = f"the table of the dnsproxy at {admin}" if admin is not None else OWN_TABLE
        return FoundZones(own.zones, source, own.doubt)
    hostnames, source = await read_hostnames(client, admin)
    if admin is not None or not pods:
        return FoundZones(tuple(hostnames), source)
    note = f"no dnsproxy gave its zones, so those of Gateways, Services and static names are missing: {own.doubt}"
    return FoundZones(tuple(hostnames), source, own.doubt, f"{note}; --from names an admin port that answers here")


async def read_taken_hosts(
    client: ApiClient, pods: Sequence[Endpoint], lines: Sequence[TakenLine], zones: Collection[str]
) -> TakenHosts:
    """Which names of the table of the first pod that answers, or else of the Ingresses, other lines answer."""
    for pod in pods:
        with suppress(StartError):
            return find_taken_hosts(lines, (await read_hostnames(client, pod))[0], zones)
    try:
        hostnames, _ = await read_hostnames(client, None)
    except StartError as error:
        fault = error.fault if isinstance(error, HostsDenied) else fault_of(ALL_INGRESSES, Unreadable(str(error)))
        return TakenHosts(unread=fault)
    return find_taken_hosts(lines, hostnames, zones)


async def read_coverage(
    client: ApiClient,
    admin: Endpoint | None,
    served: Sequence[str],
    *,
    pods: Sequence[Endpoint] = (),
    within: Sequence[str] = (),
    chosen: bool = False,
) -> Coverage:
    """The live hostnames outside the zones `served`; if they cannot be read, the coverage has the reason."""
    own = await ZonesReader().read(pods) if admin is None else OwnZones()
    # With a narrower zone in the stanza, a zone does not tell which of its names are outside; the hosts do.
    zones = [zone for zone in own.zones if not any(is_within(one.removesuffix("."), zone) for one in served)]
    try:
        hostnames, source = await read_hostnames(client, admin)
    except StartError as error:
        if not own.answered:
            fault = error.fault if isinstance(error, HostsDenied) else fault_of(ALL_INGRESSES, Unreadable(str(error)))
            # What does not answer at an address that the user names is a note.
            return Coverage(unknown=str(error), unread=fault if admin is None else None)
        hostnames, source = (), ""
    if own.answered:
        hostnames, source = [*hostnames, *zones], " and ".join(filter(None, (OWN_TABLE, source)))
    return find_coverage(served, hostnames, source, within=within, chosen=chosen)
