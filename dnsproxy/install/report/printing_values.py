"""A Corefile as values of the coredns Helm chart, which renders its Corefile from them (github.com/coredns/helm).

The law: the Corefile that the chart renders from the values means the same to CoreDNS; what the values cannot express
is refused. Comments are lost, except the markers: a plugin named like a marker is rendered as a line of its own, so
that `dnsproxy status` finds the stanza. YAML and JSON read back as the same values, character by character. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import yaml

from dnsproxy.corefile.forward_directive import written
from dnsproxy.corefile.markers import Region, find_region
from dnsproxy.corefile.model import Corefile, CorefileError, Directive, Import, ServerBlock, shown
from dnsproxy.corefile.stanza import BEGIN, END
from dnsproxy.corefile.zones import DNS_SCHEME
from dnsproxy.install.change.server_block import format_directive

_STEP: Final = "    "


def chart_values(corefile: Corefile) -> dict[str, Any]:
    """The values `servers`, and `extraConfig` if files are imported between the blocks.

    Raises CorefileError if the chart has no value for a part of the Corefile.
    """
    if corefile.snippets:
        raise _unsaid(corefile.snippets[0].line, f"the snippet {shown(corefile.snippets[0].name)}")
    region = find_region(corefile)
    values: dict[str, Any] = {"servers": [_server(block, region) for block in corefile.blocks]}
    if corefile.imports:
        if len(corefile.imports) > 1:
            raise _unsaid(corefile.imports[1].line, "a second import between the server blocks")
        values["extraConfig"] = {"import": {"parameters": corefile.imports[0].pattern}}
    return values


def _server(block: ServerBlock, region: Region | None) -> dict[str, Any]:
    ports = {key.origin.port for key in block.keys}
    schemes = {key.origin.scheme for key in block.keys}
    if None in [key.origin.zone for key in block.keys] or schemes != {DNS_SCHEME} or len(ports) != 1:
        raise _unsaid(block.line, f"a server block such as {shown(block.keys[0].text)}")
    # The chart writes the port after the last zone only; the other zones would be on port 53.
    if len(block.keys) > 1 and ports != {53}:
        raise _unsaid(block.line, "several zones on another port than 53")
    # With the scheme and use_tcp, every version of the chart opens both protocols in the Service.
    zones = [{"zone": key.origin.zone, "scheme": "dns://", "use_tcp": True} for key in block.keys]
    return {"zones": zones, "port": ports.pop(), "plugins": list(_plugins(block, region))}


def _plugins(block: ServerBlock, region: Region | None) -> Iterator[dict[str, str]]:
    inside = range(region.start.index, region.stop.index) if region else range(0)
    marked = [entry.index for entry in block.entries if entry.index in inside]
    for entry in block.entries:
        if marked and entry.index == marked[0]:
            yield {"name": region.begin if region else BEGIN}
        yield _plugin(entry)
        if marked and entry.index == marked[-1]:
            yield {"name": END}


def _plugin(entry: Directive | Import) -> dict[str, str]:
    if isinstance(entry, Import):
        return {"name": "import", "parameters": entry.pattern}
    if entry.unread or '"' in entry.name or any("\n" in word.text for word in entry.words):
        raise _unsaid(entry.line, f"a line of {shown(entry.name)}")
    plugin = {"name": entry.name}
    arguments = list(map(written, entry.arguments))
    if entry.name == "kubernetes":
        # RKE2's chart writes the cluster's domain in front of the parameters, so it stands there twice already.
        arguments = list(dict.fromkeys(arguments))
    if arguments:
        plugin["parameters"] = " ".join(arguments)
    lines = list(format_directive(entry, ""))
    if len(lines) > 1:
        plugin["configBlock"] = "\n".join(line.removeprefix(_STEP) for line in lines[1:-1])
    return plugin


def _unsaid(line: int, what: str) -> CorefileError:
    return CorefileError(line, f"the values of the coredns Helm chart cannot say {what}")


class _Dumper(yaml.SafeDumper):
    """Writes texts with line ends as literal blocks, if YAML allows it."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def format_yaml(value: Any) -> str:
    """YAML in block style, without folded lines."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=2**31, allow_unicode=True)


def format_json(value: Any) -> str:
    """JSON with two spaces a level and a final line end."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
