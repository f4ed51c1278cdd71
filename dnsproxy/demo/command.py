"""The command line of `dnsproxy demo`."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import click

from sidecar.cli.options import Command, run_program
from sidecar.values.exit_status import ExitStatus

EPILOG = """\b
Examples:
  dnsproxy demo
  dnsproxy demo --keep             leave everything running, to try dig and curl
  dnsproxy demo --output json
"""


@click.command(cls=Command, epilog=EPILOG)
@click.option("--keep", is_flag=True, help="Leave it running until Ctrl-C, and show what to try.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="The format of the report.")
def demo(*, keep: bool, output: str) -> None:
    """Show the fault and the cure on this computer: no cluster, no root.

    Exit status: 0 all steps succeeded, 1 a step failed, 2 bad usage, 3 a program could not be started.
    """
    from sidecar.cli.logs import configure_logging  # noqa: PLC0415  # --help must not cost what the story needs

    configure_logging(level="error")
    run_program(_run, keep, output == "json")


async def _run(keep: bool, as_json: bool) -> int:  # run_program passes arguments by position
    from sidecar.cli.signals import run_or_end  # noqa: PLC0415

    return await run_or_end(partial(_play, keep=keep, as_json=as_json))


async def _play(*, keep: bool, as_json: bool) -> int:
    import trio  # noqa: PLC0415

    from dnsproxy.demo.play import play, set_stage  # noqa: PLC0415
    from dnsproxy.demo.story import Step, format_step, format_verdict, steps_as_json, succeeded  # noqa: PLC0415

    async def report(step: Step) -> None:
        if not as_json:
            click.echo(format_step(step))

    async with set_stage() as stage:
        if not as_json:
            click.echo(_introduction(stage))
        steps = await play(stage, report)
        click.echo(json.dumps(steps_as_json(steps), indent=2) if as_json else format_verdict(steps))
        if keep:
            click.echo(_invitation(stage), err=as_json)
            await trio.sleep_forever()
    return ExitStatus.DONE if succeeded(steps) else ExitStatus.NO


def _introduction(stage: Any) -> str:
    cluster_dns = (
        f"a real CoreDNS on {stage.cluster_dns}, with the installed stanza"
        if stage.has_coredns
        else "dnsproxy itself (no coredns on the PATH)"
    )
    return (
        f"An ingress requires the PROXY protocol, and its load balancer does not work for pods.\n"
        f"Pods ask {cluster_dns}.\n"
    )


def _invitation(stage: Any) -> str:
    from dnsproxy.demo.play import ELSEWHERE, HOSTNAME, PUBLIC, RELAY  # noqa: PLC0415

    dns, port = stage.cluster_dns, stage.http_port
    at = f"@{dns.host} -p {dns.port}"
    url = f"http://{HOSTNAME}:{port}/"
    return (
        "\nIt keeps running until Ctrl-C. Try:\n"
        f"  dig {at} {HOSTNAME}\n"
        f"  dig {at} {ELSEWHERE}\n"
        f"  curl --resolve {HOSTNAME}:{port}:{PUBLIC} {url}      # without: refused\n"
        f"  curl --resolve {HOSTNAME}:{port}:{RELAY} {url}      # with: answered\n"
    )
