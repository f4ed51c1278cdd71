"""The command line of `dnsproxy doctor`: collect facts or read them from a file, judge them, print the diagnosis.

The law: the cluster is only read; stdout is the diagnosis, and the exit status does not depend on the output format.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from dnsproxy.cluster_dns.options import OBJECT_REF, cluster_options, make_service_ref, output_option, service_option
from dnsproxy.dns.names import parse_hostname
from dnsproxy.dns.wire import DNS_PORT
from dnsproxy.secondary.source import PREFIX
from dnsproxy.sources.names import parse_source_name
from sidecar.cli.options import (
    BadUsage,
    CheckedType,
    Command,
    Decorated,
    Endpoint,
    EndpointType,
    StartError,
    add_options,
    run_program,
)
from sidecar.cli.progress_line import ProgressLine
from sidecar.cli.usage import GatheringOption
from sidecar.values.text import one_line

if TYPE_CHECKING:
    from dnsproxy.cluster_dns.object_ref import ObjectRef
    from dnsproxy.doctor.collect.places import Places
    from dnsproxy.doctor.collect.reader import Progress
    from dnsproxy.doctor.facts.model import Facts
    from dnsproxy.doctor.judge.findings import Diagnosis
    from dnsproxy.doctor.judge.paths import Paths

_STDIN: Final = "-"
_IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"
EPILOG = """\b
Examples:
  dnsproxy doctor app.example.org
  dnsproxy doctor --context production --output json | jq -r .verdict
  dnsproxy doctor --save facts.json            a bug report in one file
  dnsproxy doctor --from facts.json            judge it on another machine
\b
Outside the cluster nothing is dialled. A pod without any rights can do that part:
  dnsproxy doctor app.example.org --save facts.json
  kubectl run switchback-doctor --rm -i --restart=Never --image=IMAGE -- dnsproxy doctor --from - --probe < facts.json
The doctor prints these lines with the IMAGE of the installation, if it finds one.

\b
RBAC rights, for the whole cluster: list services, endpointslices, nodes, namespaces, deployments, daemonsets,
ingresses, ingressclasses, the kinds of the Gateway API and of dnsproxy's other sources, and clienttrafficpolicies of
Envoy Gateway; get services and configmaps, felixconfigurations of Calico, mutatingadmissionpolicies and
mutatingadmissionpolicybindings switchback-ip-mode; in dnsproxy's namespace get pods/proxy, for the age of the table.
deploy/components/doctor has these rights and a pod that uses them, without those for --source crd. The doctor names
each missing right, and takes nothing for absent that it could not read. The file has names,
addresses, networks of pods, annotations of load balancers and settings about the PROXY protocol; no token, no Secret,
no key.
"""


def _parse_source(text: str) -> str:
    """As `serve` takes it, whose variable may be set here: another dnsproxy's table has no objects to read."""
    return text if text.startswith(PREFIX) else parse_source_name(text)


def _file_options(command: Decorated) -> Decorated:
    return add_options(
        command,
        click.option(
            "--probe/--no-probe",
            default=None,
            help="Dial ports and ask the cluster's DNS from this machine.  [default: only in a pod of the cluster]",
        ),
        click.option("--save", type=click.Path(dir_okay=False), help="Write the facts to this file."),
        click.option(
            "--from",
            "from_file",
            envvar="DNSPROXY_FROM",
            type=click.Path(dir_okay=False, allow_dash=True),
            help="Judge a file from --save and ask no API server; with --probe, dial from this machine.",
        ),
    )


def _place_options(command: Decorated) -> Decorated:
    return add_options(
        command,
        click.option(
            "--relay",
            type=OBJECT_REF,
            help="The relay's Service.  [default: dnsproxy's target, or `relay` in its namespace]",
        ),
        click.option(
            "--public-dns",
            type=EndpointType(default_port=DNS_PORT),
            help="DNS server for public records.  [default: a nameserver of this machine that is not the cluster's]",
        ),
        click.option(
            "--admin",
            type=EndpointType(),
            help="dnsproxy's admin port, to ask it directly and not through the API server.",
        ),
        click.option(
            "--relay-admin",
            type=EndpointType(),
            help="The relay's admin port, to ask it directly and not through the API server.",
        ),
        click.option(
            "--source",
            type=CheckedType("source", _parse_source),
            cls=GatheringOption,
            metavar="NAME|crd:PLURAL.GROUP:PATH[,PATH]",
            multiple=True,
            help="Also read the hosts of this source, as `dnsproxy serve --source` does. Ingresses, Gateways and the "
            "sources in dnsproxy's own settings are read without it.",
        ),
    )


@click.command(cls=Command, epilog=EPILOG)
@click.argument("host", required=False, type=CheckedType("host", parse_hostname))
@cluster_options
@service_option
@_place_options
@_file_options
@output_option
def doctor(
    *,
    host: str | None,
    kubeconfig: str | None,
    context: str | None,
    dns_service: ObjectRef | None,
    dns: Endpoint | None,
    service: ObjectRef,
    relay: ObjectRef | None,
    public_dns: Endpoint | None,
    admin: Endpoint | None,
    relay_admin: Endpoint | None,
    source: tuple[str, ...],
    probe: bool | None,
    save: str | None,
    from_file: str | None,
    output: str,
) -> None:
    """Find out why HOST (or any host of the cluster) fails inside the cluster, and show the line that fixes it.

    The doctor also reports if Switchback is not needed. It never writes to the cluster.

    Exit status: 0 healthy, 1 something is wrong, 2 bad usage, 3 could not look.
    """
    from dnsproxy.doctor.collect.places import Places  # noqa: PLC0415  # --help must not import this

    if from_file is not None and (kubeconfig or context):
        raise BadUsage(["--from asks no API server, so --kubeconfig and --context have no effect with it"])
    places = Places(make_service_ref(dns_service), service, relay, dns, public_dns, admin, relay_admin, source)
    run_program(_run, host or "", kubeconfig, context, places, probe, save, from_file, output)


async def _run(
    host: str,
    kubeconfig: str | None,
    context: str | None,
    places: Places,
    probe: bool | None,
    save: str | None,
    from_file: str | None,
    output: str,
) -> int:
    from dnsproxy.doctor.judge.diagnose import judge  # noqa: PLC0415  # as above

    line = ProgressLine()
    try:
        facts, paths = (
            _load(from_file, host) if from_file else await _read(kubeconfig, context, host, places, line.show)
        )
        inside = probe if probe is not None else (_IN_A_POD in os.environ and not from_file)
        if inside or not from_file:
            facts = await _look(facts, paths, places, line.show, inside=inside)
    finally:
        line.clear()
    if save:
        _save(facts, save)
    diagnosis = judge(facts, paths)
    _print(diagnosis, facts, output)
    return diagnosis.status


async def _read(
    kubeconfig: str | None, context: str | None, host: str, places: Places, progress: Progress
) -> tuple[Facts, Paths]:
    from dnsproxy.cluster_dns.read import load_client  # noqa: PLC0415
    from dnsproxy.doctor.collect.collecting import read_cluster  # noqa: PLC0415  # as above

    async with await load_client(kubeconfig=kubeconfig, context=context) as client:
        return await read_cluster(client, host, places, progress)


async def _look(facts: Facts, paths: Paths, places: Places, progress: Progress, *, inside: bool) -> Facts:
    from dnsproxy.doctor.collect.looking import look, look_outside  # noqa: PLC0415  # as above

    return await (look if inside else look_outside)(facts, paths, places, progress)


def _load(name: str, host: str) -> tuple[Facts, Paths]:
    """The facts in a file, for HOST if there is one, and their paths. Raises StartError."""
    from msgspec.structs import replace  # noqa: PLC0415  # as above

    from dnsproxy.doctor.facts.file import LARGEST, BadFacts, parse_facts  # noqa: PLC0415
    from dnsproxy.doctor.judge.paths import find_paths  # noqa: PLC0415

    try:
        with click.open_file(name, "rb") as file:
            facts = parse_facts(file.read(LARGEST + 1))
    except OSError as error:
        raise StartError(f"--from {name}: {error.strerror or error}") from None
    except BadFacts as error:
        raise StartError(f"--from {name}: {error}") from None
    facts = replace(facts, hostname=host) if host else facts
    return facts, find_paths(facts)


def _save(facts: Facts, name: str) -> None:
    from dnsproxy.doctor.facts.file import format_facts  # noqa: PLC0415  # as above

    try:
        with click.open_file(name, "wb") as file:
            file.write(format_facts(facts))
    except OSError as error:
        raise StartError(f"--save {name}: {error.strerror or error}") from None
    if name != _STDIN:
        click.echo(
            one_line(f"Saved the facts to {name}: names, addresses and settings; no token, no Secret."), err=True
        )


def _print(diagnosis: Diagnosis, facts: Facts, output: str) -> None:
    if output == "json":
        from dnsproxy.doctor.judge.findings import format_document  # noqa: PLC0415  # as above
        from sidecar.values.text import escaped_json  # noqa: PLC0415

        click.echo(escaped_json(format_document(diagnosis), indent=2))
    else:
        from dnsproxy.doctor.printing import format_diagnosis, style_of  # noqa: PLC0415

        text = format_diagnosis(diagnosis, facts, style_of(sys.stdout, os.environ))
        # Whether to colour is decided already.
        click.echo(text, color=True)
