"""The command line of `dnsproxy publish-external-dns`: from flags and variables to ExternalDnsSettings."""

from __future__ import annotations

from typing import Any, Final

import click

from dnsproxy.publish.externaldns.manifests import PREFIXES, Kind
from dnsproxy.publish.externaldns.options import (
    MOST,
    parse_annotation,
    parse_annotation_prefix,
    parse_instance,
    parse_label,
    parse_namespace,
    refuse_reserved,
)
from dnsproxy.publish.options import make_common, publisher_options, zone_option
from sidecar.cli.options import BadUsage, CheckedType, Program, run_program

_TTL: Final = (1, 86_400)

EPILOG = """\b
Examples:
  dnsproxy publish-external-dns --instance main --dry-run
  dnsproxy publish-external-dns --instance main --namespace external-dns --from dnsproxy-admin.switchback.svc:8081
  dnsproxy publish-external-dns --instance main --output service --annotation-prefix internal.example.org/
  dnsproxy publish-external-dns --instance main --remove
"""


@click.command("publish-external-dns", cls=Program, epilog=EPILOG)
@click.option(
    "--instance",
    type=CheckedType("name", parse_instance),
    required=True,
    help="The owner of the objects, a name for each publisher: objects of the same name that a publisher of another "
    "source or zone wrote stay.",
)
@click.option(
    "--namespace",
    type=CheckedType("name", parse_namespace),
    help="Where the objects go.  [default: the pod's own, or the kubeconfig's]",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice([kind.value for kind in Kind]),
    default=Kind.DNS_ENDPOINT.value,
    help="DNSEndpoint objects, for --source=crd of external-dns; or headless Services with annotations, for "
    "--source=service.",
)
@click.option("--ttl", type=click.IntRange(*_TTL), metavar="SECONDS", default=60, help="The TTL of the records.")
@click.option(
    "--annotation-prefix",
    type=CheckedType("domain/", parse_annotation_prefix),
    multiple=True,
    default=PREFIXES,
    help="The prefix of the annotations on Services; the same as the --annotation-prefix of external-dns. Repeatable; "
    "the default is that of external-dns from 0.22 on, and that of those before.",
)
@click.option(
    "--label",
    type=CheckedType("key=value", parse_label),
    multiple=True,
    help="An additional label for each object: external-dns can filter by it. Repeatable.",
)
@click.option(
    "--annotation",
    type=CheckedType("key=value", parse_annotation),
    multiple=True,
    help="An additional annotation for each object. Repeatable.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Change and delete such objects too: after a change of --from, --from-file or --zone.",
)
@click.option("--allow-empty", is_flag=True, help="Delete all objects when the table is empty.")
@zone_option
@publisher_options
def publish_external_dns(log_format: str | None, log_level: str, **values: Any) -> None:
    """Keep the names of a running server in objects from which external-dns creates DNS records.

    Exit status: 0 done, 1 a name or the table is refused, 2 bad usage, 3 the table or the cluster is out of reach.
    """
    from dnsproxy.publish.externaldns.program import run_publish_external_dns  # noqa: PLC0415  # --help must not cost it
    from dnsproxy.publish.settings import ExternalDnsSettings  # noqa: PLC0415
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415

    common = make_common(values)
    labels, annotations = dict(values["label"]), dict(values["annotation"])
    faults = refuse_reserved(labels, annotations, prefixes=values["annotation_prefix"])
    faults += [
        f"--{flag}: at most {MOST}"
        for flag, given in (("label", labels), ("annotation", annotations))
        if len(given) > MOST
    ]
    if faults:
        raise BadUsage(faults)
    settings = ExternalDnsSettings(
        common,
        instance=values["instance"],
        kind=Kind(values["output"]),
        namespace=values["namespace"],
        ttl=values["ttl"],
        annotation_prefixes=values["annotation_prefix"],
        labels=labels,
        annotations=annotations,
        allow_empty=values["allow_empty"],
        take_over=values["take_over"],
    )
    program = "dnsproxy publish-external-dns" if common.stays else None
    configure_logging(format=log_format, level=log_level, program=program)
    run_program(run_publish_external_dns, settings)
