"""The flags of `dnsproxy serve` that select objects of the cluster: --namespace and the selectors.

The law: as in command.py; the values become one Selection.
"""

from __future__ import annotations

from typing import Any

import click

from dnsproxy.sources.selection import Selection, parse_namespace
from sidecar.cli.options import CheckedType, Decorated, add_options
from sidecar.kubernetes.selector import EVERYTHING, parse_annotation_selector, parse_selector
from sidecar.values.errors import StartError


def selection_options(command: Decorated) -> Decorated:
    """--namespace, --label-selector and --annotation-filter."""
    return add_options(
        command,
        click.option(
            "--namespace",
            type=CheckedType("namespace", parse_namespace),
            metavar="NAMESPACE",
            multiple=True,
            help="Read only objects of this namespace, with requests that a Role there allows. Repeatable.  "
            "[default: all namespaces]",
        ),
        click.option(
            "--label-selector",
            type=CheckedType("selector", parse_selector),
            metavar="SELECTOR",
            help="Take only objects with these labels, of whatever source, such as 'team=web,tier in (a,b),!internal'.",
        ),
        click.option(
            "--annotation-filter",
            type=CheckedType("selector", parse_annotation_selector),
            metavar="SELECTOR",
            help="The same by annotations, such as 'example.org/public=true'.",
        ),
    )


def make_selection(values: dict[str, Any]) -> Selection:
    """The selection from the values by the flags' names."""
    return Selection(
        tuple(dict.fromkeys(values["namespace"])),
        values["label_selector"] or EVERYTHING,
        values["annotation_filter"] or EVERYTHING,
    )


def refuse_without_source(values: dict[str, Any]) -> None:
    """Raises StartError for a flag that would have no effect."""
    for name in ("namespace", "label_selector", "annotation_filter"):
        if values[name] and not values["source"]:
            raise StartError(f"--{name.replace('_', '-')} is for objects of a cluster, and no --source names any")
