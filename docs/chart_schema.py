"""`python -m docs.chart_schema`: write the programs' variables into the schema of the chart's values.

The law: `settings` in values.schema.json has exactly the variables of each program, with the words of its --help; all
else in that file is written by people. Helm then refuses a misspelled variable with its path, and no pod ignores it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from docs.generated import find_command
from sidecar.cli.usage import GatheringOption

SCHEMA: Final = Path(__file__).parent.parent / "deploy" / "chart" / "values.schema.json"
COMMANDS: Final[Mapping[str, str]] = {
    "dnsproxy": "dnsproxy serve",
    "relay": "proxy",
    "operate": "dnsproxy operate",
    "external-dns": "dnsproxy publish-external-dns",
    "node-hosts": "dnsproxy publish-hosts",
    "wholeip": "wholeip run",
}
"""The command that reads the ConfigMap `NAME-settings`."""
# A number that YAML would write in another form, such as 0x10, stays text only in quotation marks. null takes back a
# value of another file.
_VALUE: Final = ["string", "number", "boolean", "null"]


def complete(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the variables of each program."""
    properties = dict(schema["properties"])
    programs = {name: _program(path) for name, path in COMMANDS.items()}
    properties["settings"] = properties["settings"] | {"properties": programs}
    return {**schema, "properties": properties}


def format_schema(schema: Mapping[str, Any]) -> str:
    """The text of values.schema.json."""
    return json.dumps(schema, indent=2) + "\n"


def _program(path: str) -> dict[str, Any]:
    return {
        "description": f"Variables of `{path}`; see its --help.",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {"description": text, "type": _VALUE} for name, text in _variables(path).items()},
        **_more_variables(path),
    }


def _more_variables(path: str) -> dict[str, Any]:
    """The variables that add values to that of a flag, whatever follows its name."""
    command, context = find_command(path)
    names = [
        variable
        for option in command.params
        if isinstance(option, GatheringOption)
        for variable in option.get_help_extra(context).get("envvars", ())
    ]
    patterns = {f"^{name}_[A-Z0-9_]+$": {"description": f"Adds values to {name}.", "type": _VALUE} for name in names}
    return {"patternProperties": patterns} if patterns else {}


def _variables(path: str) -> dict[str, str]:
    """Each variable of a command, with what its flag does."""
    command, context = find_command(path)
    options = [one for one in command.params if isinstance(one, click.Option)]
    return {
        variable: " ".join((option.help or "").split())
        for option in sorted(options, key=lambda one: one.name or "")
        for variable in option.get_help_extra(context).get("envvars", ())
    }


if __name__ == "__main__":
    SCHEMA.write_text(format_schema(complete(json.loads(SCHEMA.read_text()))), encoding="utf-8")
