"""The command line of `dnsproxy doctor`: collects facts or reads them from a file, judges them, prints the diagnosis.

The law: the cluster is only read; stdout is the diagnosis, and the exit status never depends on its form.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Final

import click

from dnsproxy.cluster_dns.options import (
    DNS_PORT,
    OBJECT_REF,
    cluster_options,
    make_service_ref,
    output_option,
    service_option,
)
from dnsproxy.dns.names import parse_hostname
from sidecar.checked_type import CheckedType
from sidecar.options import BadUsage, Command, Decorated, Endpoint, EndpointType, StartError, add_options, run_program
from sidecar.text import one_line

if TYPE_CHECKING:
    from dnsproxy.cluster_dns.own_service import ObjectRef
    from dnsproxy.doctor.collect.collecting import Places
    from dnsproxy.doctor.facts.model import Facts
    from dnsproxy.doctor.judge.findings import Diagnosis

_STDIN: Final = "-"
_IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"
_CLEAR: Final = "\r\x1b[K"
EPILOG = """\b
Examples:
  dnsproxy doctor app.example.org
  dnsproxy doctor --context production --output json | jq -r .verdict
  dnsproxy doctor --save facts.json            a bug report in one file
  dnsproxy doctor --from facts.json            judged elsewhere
\b
From outside of the cluster nothing is dialled. A pod without any rights can do that part:
  dnsproxy doctor app.example.org --save facts.json
  kubectl run switchback-doctor --rm -i --restart=Never --image=localhost/switchback:0.1.0 -- \\
    dnsproxy doctor --from - --probe < facts.json

\b
Needed of RBAC, all over the cluster: list services, endpointslices, nodes, namespaces, deployments, daemonsets,
ingresses, ingressclasses and the kinds of the Gateway API; get services and configmaps, and felixconfigurations of
Calico; in dnsproxy's namespace get pods/proxy, for the age of the table. deploy/components/doctor is that, and a pod to
it. What is missing is named, and the rest is judged without it. The file has names, addresses, annotations of load
balancers and settings about the PROXY protocol; no token, no Secret, no certificate.
"""


def _file_options(command: Decorated) -> Decorated:
    return add_options(
        command,
        click.option(
            "--probe/--no-probe",
            default=None,
            help="Dial ports and ask the cluster's DNS from here.  [default: in a pod of the cluster only]",
        ),
        click.option("--save", type=click.Path(dir_okay=False), help="Write what was seen into this file."),
        click.option(
            "--from",
            "from_file",
            envvar="DNSPROXY_FROM",
            type=click.Path(dir_okay=False, allow_dash=True),
            help="Judge what --save wrote, and ask no API server; with --probe, dial from here anew.",
        ),
    )


def _place_options(command: Decorated) -> Decorated:
    return add_options(
        command,
        click.option(
            "--relay", type=OBJECT_REF, help="The relay's Service.  [default: dnsproxy's target, or `relay` beside it]"
        ),
        click.option(
            "--public-dns",
            type=EndpointType(default_port=DNS_PORT),
            help="Whom to ask for public records.  [default: a nameserver of this machine, if it is not the cluster's]",
        ),
        click.option(
            "--admin", type=EndpointType(), help="Ask dnsproxy's admin port here, not through the API server."
        ),
        click.option(
            "--relay-admin", type=EndpointType(), help="Ask the relay's admin port here, not through the API server."
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
    probe: bool | None,
    save: str | None,
    from_file: str | None,
    output: str,
) -> None:
    """Say why HOST (or any host of the cluster) fails inside the cluster, and the line that mends it.

    It says too where this software is not needed. Nothing is ever written to the cluster.

    Exit status: 0 healthy, 1 something is wrong, 2 bad usage, 3 could not look.
    """
    from dnsproxy.doctor.collect.collecting import Places  # noqa: PLC0415  # --help must not cost what this needs

    if from_file is not None and (kubeconfig or context):
        raise BadUsage(["--from asks no API server, so --kubeconfig and --context mean nothing beside it"])
    places = Places(make_service_ref(dns_service), service, relay, dns, public_dns, admin, relay_admin)
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

    progress = _Progress()
    try:
        facts = _load(from_file, host) if from_file else await _read(kubeconfig, context, host, places, progress)
        if probe if probe is not None else (_IN_A_POD in os.environ and not from_file):
            facts = await _look(facts, places, progress)
        elif not from_file:
            facts = await _look_outside(facts, places, progress)
    finally:
        progress.end()
    if save:
        _save(facts, save)
    diagnosis = judge(facts)
    _print(diagnosis, facts, output)
    return diagnosis.status


async def _read(kubeconfig: str | None, context: str | None, host: str, places: Places, progress: _Progress) -> Facts:
    from dnsproxy.cluster_dns.read import load_client  # noqa: PLC0415
    from dnsproxy.doctor.collect.collecting import read_cluster  # noqa: PLC0415  # as above

    async with await load_client(kubeconfig=kubeconfig, context=context) as client:
        return await read_cluster(client, host, places, progress)


async def _look(facts: Facts, places: Places, progress: _Progress) -> Facts:
    from dnsproxy.doctor.collect.collecting import look  # noqa: PLC0415  # as above

    return await look(facts, places, progress)


async def _look_outside(facts: Facts, places: Places, progress: _Progress) -> Facts:
    from dnsproxy.doctor.collect.collecting import look_outside  # noqa: PLC0415  # as above

    return await look_outside(facts, places, progress)


def _load(name: str, host: str) -> Facts:
    """What a file holds, for the host that is asked about. Raises StartError."""
    from msgspec.structs import replace  # noqa: PLC0415  # as above

    from dnsproxy.doctor.facts.file import LARGEST, BadFacts, parse_facts  # noqa: PLC0415

    try:
        with click.open_file(name, "rb") as file:
            facts = parse_facts(file.read(LARGEST + 1))
    except OSError as error:
        raise StartError(f"--from {name}: {error.strerror or error}") from None
    except BadFacts as error:
        raise StartError(f"--from {name}: {error}") from None
    return replace(facts, hostname=host) if host else facts


def _save(facts: Facts, name: str) -> None:
    from dnsproxy.doctor.facts.file import format_facts  # noqa: PLC0415  # as above

    try:
        with click.open_file(name, "wb") as file:
            file.write(format_facts(facts))
    except OSError as error:
        raise StartError(f"--save {name}: {error.strerror or error}") from None
    if name != _STDIN:
        click.echo(
            one_line(f"Saved what was seen to {name}: names, addresses and settings; no token, no Secret."), err=True
        )


def _print(diagnosis: Diagnosis, facts: Facts, output: str) -> None:
    if output == "json":
        from dnsproxy.doctor.judge.findings import format_document  # noqa: PLC0415  # as above
        from sidecar.text import escaped_json  # noqa: PLC0415

        click.echo(escaped_json(format_document(diagnosis), indent=2))
    else:
        from dnsproxy.doctor.printing import make_console, print_diagnosis  # noqa: PLC0415

        print_diagnosis(diagnosis, facts, make_console(sys.stdout, os.environ))


class _Progress:
    """One line on a terminal's stderr that says what is being done; nothing elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = False

    def __call__(self, text: str) -> None:
        if self._terminal:
            width = shutil.get_terminal_size().columns
            click.echo(f"{_CLEAR}{one_line(text)[: width - 1]}", nl=False, err=True, color=True)
            self._shown = True

    def end(self) -> None:
        """Leave the line empty."""
        if self._shown:
            click.echo(_CLEAR, nl=False, err=True, color=True)
