"""Live hostnames: those of the cluster's Ingresses, or of the table of a running dnsproxy.

The law: they are read when they are needed, and never more than once for one plan or report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dnsproxy.admin.listing import parse_listing
from dnsproxy.cluster_dns.read import gather
from dnsproxy.cluster_dns.requests import INGRESS, Denied, Request
from dnsproxy.install.change.coverage import Coverage, find_coverage
from dnsproxy.install.change.ingress_hosts import hosts_of
from sidecar.admin.asking import NoAnswer, get
from sidecar.kubernetes.http import ApiClient
from sidecar.kubernetes.structs.network import Ingress
from sidecar.values.endpoints import Endpoint
from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus

ALL_INGRESSES: Final = Request(INGRESS, "")


class HostsDenied(StartError):
    """RBAC does not allow to list the Ingresses."""


async def read_hostnames(client: ApiClient, admin: Endpoint | None) -> tuple[Iterable[str], str]:
    """The live hostnames, and their source for messages. Raises StartError with status 3."""
    if admin is not None:
        try:
            rows = parse_listing((await get(admin, "/table", program="dnsproxy serve")).body).names
        except NoAnswer as error:
            raise StartError(f"--from {admin}: {error}", status=ExitStatus.UNKNOWN) from None
        except ValueError as error:
            text = f"--from {admin}: the answer is not that of a `dnsproxy serve` of this version ({error})"
            raise StartError(text, status=ExitStatus.UNKNOWN) from None
        return [row.hostname for row in rows], f"the table of the dnsproxy at {admin}"
    answers = await gather(client, lambda answers: () if ALL_INGRESSES in answers else (ALL_INGRESSES,))
    listed = answers[ALL_INGRESSES]
    if isinstance(listed, Denied):
        text = f"it is not allowed to {ALL_INGRESSES} for their hosts: {listed.message}"
        raise HostsDenied(text, status=ExitStatus.UNKNOWN)
    ingresses: tuple[Ingress, ...] = listed if isinstance(listed, tuple) else ()
    return hosts_of(ingresses), "the hosts of the cluster's Ingresses"


async def read_coverage(
    client: ApiClient,
    admin: Endpoint | None,
    served: Sequence[str],
    *,
    within: Sequence[str] = (),
    chosen: bool = False,
) -> Coverage:
    """The live hostnames outside the zones `served`; if they cannot be read, the coverage has the reason."""
    try:
        hostnames, source = await read_hostnames(client, admin)
    except StartError as error:
        return Coverage(unknown=str(error))
    return find_coverage(served, hostnames, source, within=within, chosen=chosen)
