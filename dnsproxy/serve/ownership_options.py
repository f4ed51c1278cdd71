"""The flags of `dnsproxy serve` about whose a name is: --ownership, --trust and --replace.

The law: as in command.py; the values become one OwnershipSettings.
"""

from __future__ import annotations

from typing import Any

import click

from dnsproxy.hostnames.ownership import Mode, OwnershipSettings, Replace, parse_trust
from dnsproxy.hostnames.targets import AUTO, Targets
from dnsproxy.replace.balancers import parse_replacement
from sidecar.cli.options import CheckedType, Decorated, add_options
from sidecar.values.errors import StartError

Replacement = tuple[str, tuple[str, ...]]


def parse_replace(text: str) -> Replace | Replacement:
    """`auto`, `off` or `ADDRESS=TARGET[,TARGET]`. Raises ValueError."""
    words = {one.value: one for one in Replace}
    return words.get(text.strip()) or parse_replacement(text)


def ownership_options(command: Decorated) -> Decorated:
    """--ownership, --trust and --replace."""
    return add_options(
        command,
        click.option(
            "--ownership",
            type=click.Choice([mode.value for mode in Mode]),
            help="What public DNS has to say about names that objects claim. verify: the name is asked upstream, and "
            "answered here where its record leads to the load balancer of its controller, or where there is none; the "
            "reply passes as it is where it leads elsewhere. enforce: the same, and a name without a record is passed "
            "on too. warn: it is answered, and logged where its record leads elsewhere. off: nobody is asked.  "
            f"[default: verify with the target {AUTO}, otherwise warn]",
        ),
        click.option(
            "--trust",
            type=CheckedType("zone|network", parse_trust),
            metavar="ZONE|NETWORK",
            multiple=True,
            help="For --ownership: names at or below this zone are answered without asking; addresses within this "
            "network lead here, such as that of a router in front of the load balancer.",
        ),
        click.option(
            "--replace",
            type=CheckedType("auto|off|address=target", parse_replace),
            metavar="auto|off|ADDRESS=TARGET[,TARGET]",
            multiple=True,
            help="Replace this address of a load balancer in every reply that is forwarded, whatever the name, by that "
            f"target. auto: the load balancers of what the target {AUTO} steers, each by its Service; off: none.  "
            f"[default: auto with the target {AUTO}]",
        ),
    )


def make_ownership_settings(values: dict[str, Any]) -> OwnershipSettings:
    """The settings from the values by the flags' names. Raises StartError."""
    targets = Targets(values["target"] or (), dict(values["target_for"]))
    is_automatic = bool(values["source"]) and AUTO in targets.named()
    mode = Mode(values["ownership"] or (Mode.VERIFY if is_automatic else Mode.WARN))
    words = [one for one in values["replace"] if isinstance(one, Replace)]
    replaced = [one for one in values["replace"] if not isinstance(one, Replace)]
    if Replace.OFF in words and len(values["replace"]) > 1:
        raise StartError("--replace off replaces nothing: leave out the other --replace")
    if Replace.AUTO in words and not is_automatic:
        raise StartError(f"--replace auto is for --target {AUTO}, which says what a load balancer is replaced by")
    twice = {address for address, _ in replaced if [one for one, _ in replaced].count(address) > 1}
    if twice:
        raise StartError(f"--replace {min(twice)}=...: give all its targets in one value, with commas between them")
    chained = [address for _, targets_of in replaced for address in targets_of if address in dict(replaced)]
    if chained:
        raise StartError(f"--replace: {chained[0]} is replaced, and replaces another address")
    trusted = values["trust"]
    return OwnershipSettings(
        mode,
        zones=tuple(one for one in trusted if isinstance(one, str)),
        networks=tuple(one for one in trusted if not isinstance(one, str)),
        replace=is_automatic and Replace.OFF not in words,
        replaced=tuple(replaced),
    )
