"""`wholeip uninstall`: removes our table from this node's kernel.

The law: it needs no cluster and no state, changes no other table, and a second run changes nothing. Removed means that
no agent has put the table back when the command ends.
"""

from __future__ import annotations

from typing import Final

import click
import trio

from sidecar.values.errors import StartError
from sidecar.values.exit_status import ExitStatus
from wholeip.kernel.nft import Nft, Table
from wholeip.ruleset.in_use import address_count
from wholeip.ruleset.nft_errors import NftFailed
from wholeip.ruleset.ruleset import TABLE

_AGENT_SECONDS: Final = 2.0
"""Seconds before the last look: an agent restores a lost table within one."""


async def run_uninstall(dry_run: bool) -> int:
    """Remove the table, or print what would be removed; the exit status. Raises StartError."""
    return await uninstall(Nft(), dry_run=dry_run)


async def uninstall(table: Table, *, dry_run: bool) -> int:
    """The same for any kernel."""
    try:
        present = await table.read_ruleset()
        if present is None:
            click.echo(f"There is no table inet {TABLE}: nothing to remove.")
            return 0
        addresses = address_count(present)
        if dry_run:
            click.echo(f"Would remove the table inet {TABLE} with {addresses} addresses.")
            return 0
        await table.delete_table()
        await trio.sleep(_AGENT_SECONDS)
        again = await table.read_ruleset()
    except NftFailed as error:
        raise StartError(f"nftables: {error}", status=ExitStatus.UNKNOWN) from error
    if again is not None:
        text = f"the table inet {TABLE} is there again: end `wholeip run` on this node, and run this again"
        raise StartError(text, status=ExitStatus.NO)
    click.echo(f"Removed the table inet {TABLE} with {addresses} addresses.")
    return 0
