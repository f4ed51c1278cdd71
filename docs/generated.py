"""The parts of the guide that are generated from the code and the manifests, so that no copy can become outdated.

The law: pure, except that it reads files of this project. A page includes a part with a line of its own, which
readers of the source see: `*(make docs writes here: providers)*`.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click
import yaml

from dnsproxy.cli import main as dnsproxy
from dnsproxy.doctor.facts.file import parse_facts
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import MEANINGS
from dnsproxy.doctor.judge.header_annotations import HeaderSwitch
from dnsproxy.doctor.judge.provider import Provider, StatusSetting
from dnsproxy.doctor.judge.providers import PROVIDERS
from dnsproxy.doctor.printing import Style, format_diagnosis
from docs.clients import format_clients, format_clients_without_coredns
from docs.metrics import format_metrics
from docs.played import format_absent, format_combinations, format_programs
from docs.sources import format_sources
from docs.speed.tables import PARTS as SPEED
from docs.speed.tables import read_recorded
from proxy.cli import main as proxy
from sidecar.cli.program_commands import ProgramWithCommands
from wholeip.cli import main as wholeip

ROOT: Final = Path(__file__).parent.parent
_WIDTH: Final = 100
"""Width of a program's printed lines, in characters."""
_PART: Final = re.compile(r"^\*\(make docs writes here: (?P<name>[a-z-]+)(?: (?P<argument>.*))?\)\*$", re.MULTILINE)
_LITERAL: Final = re.compile(r"(?P<comment>(?:^ +#.*\n)*)^ +- (?P<value>[A-Z_]+=.*)$", re.MULTILINE)
"""A line of `literals`, with the comment above it."""
_CODE_OR_BAR: Final = re.compile(r"(?P<code>`[^`]*`)|\|")
_LINK: Final = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>(?!https?:|#)[^)]*)\)")
PROGRAMS: Final[Mapping[str, click.Command]] = {"dnsproxy": dnsproxy, "proxy": proxy, "wholeip": wholeip}


def fill_in(page: str) -> str:
    """The page with its generated parts. Raises KeyError for an unknown part."""
    return _PART.sub(lambda found: _PARTS[found["name"]](found["argument"] or ""), page)


def _flags(path: str) -> str:
    """Every flag of a command and of its subcommands. Raises KeyError for an unknown command."""
    command, context = find_command(path)
    return "\n".join(
        [f"### {path}", "", *_format_command(path, command, context), *_format_below(path, command, context)]
    )


def _own_flags(path: str) -> str:
    """The flags of a command without its subcommands, which are on other pages."""
    return "\n".join([f"### {path}", "", *_format_command(path, *find_command(path))])


def find_command(path: str) -> tuple[click.Command, click.Context]:
    """The command at `dnsproxy serve`, and its context. Raises KeyError for an unknown one."""
    name, _, rest = path.partition(" ")
    command = PROGRAMS[name]
    context = _context(name, command)
    for word in rest.split():
        command = below(command, context)[word]
        context = _context(word, command, parent=context)
    return command, context


def _format_command(path: str, command: click.Command, context: click.Context) -> Iterator[str]:
    yield from (_text(command.help or ""), "")
    options = [param for param in command.params if isinstance(param, click.Option)]
    if options:
        yield from ("| flag | variable | default | meaning |", "| --- | --- | --- | --- |")
        yield from (_format_option(path, option, context) for option in options)
        yield ""
    if command.epilog:
        yield from ("```text", _text(command.epilog), "```", "")


def _format_below(path: str, command: click.Command, context: click.Context) -> Iterator[str]:
    for name, one in below(command, context).items():
        yield from (f"### {path} {name}", "")
        one_context = _context(name, one, parent=context)
        yield from _format_command(f"{path} {name}", one, one_context)
        yield from _format_below(f"{path} {name}", one, one_context)


def below(command: click.Command, context: click.Context) -> Mapping[str, click.Command]:
    """The visible subcommands of a group or program by name, lazily loaded ones included."""
    if isinstance(command, ProgramWithCommands):
        return command.commands
    if not isinstance(command, click.Group):
        return {}
    found = {name: command.get_command(context, name) for name in sorted(command.list_commands(context))}
    return {name: one for name, one in found.items() if one is not None and not one.hidden}


def _context(name: str, command: click.Command, *, parent: click.Context | None = None) -> click.Context:
    """The context that the command makes for no arguments, even if it requires some."""
    return command.make_context(name, [], parent=parent, resilient_parsing=True)


def _format_option(path: str, option: click.Option, context: click.Context) -> str:
    record, extra = option.get_help_record(context), option.get_help_extra(context)
    flags = record[0] if record else " ".join(option.opts)
    default = "required" if "required" in extra else str(extra.get("default", ""))
    # Click appends these facts to the help in brackets; here they have their own columns.
    code = [f"`{part}`" if part else "" for part in (flags, " ".join(extra.get("envvars", ())), default)]
    code[0] += f"{{#{path.replace(' ', '-')}{option.opts[0]}}}"
    bounds = f" ({extra['range']})" if "range" in extra else ""
    return "| " + " | ".join(_cell(one) for one in (*code, f"{option.help or ''}{bounds}")) + " |"


def _cell(text: str) -> str:
    # The site's builder takes a bar in code for the bar itself, and would show the escape.
    return " ".join(_CODE_OR_BAR.sub(lambda found: found["code"] or r"\|", text).split())


def _text(text: str) -> str:
    return inspect.cleandoc(text.replace("\b\n", "").replace("\f", ""))


def _providers(_: str) -> str:
    head = ["| provider | enables the header | removes the address from the status |", "| --- | --- | --- |"]
    return "\n".join([*head, *map(_provider, _by_name(PROVIDERS))])


def _by_name(providers: Iterable[Provider]) -> list[Provider]:
    return sorted(providers, key=lambda one: one.name.lower())


def _provider(one: Provider) -> str:
    switches = [_switch(switch) for switch in one.switches if switch.on or switch.part]
    on = " or ".join([*switches, *([one.elsewhere] if one.elsewhere else [])])
    if one.never_sends:
        on = "; ".join(["not possible: it never sends the header", *([f"except {on}"] if on else [])])
    settings = [_status_setting(setting) for setting in (one.ip_mode, one.hostname) if setting is not None]
    none = "it writes no `ipMode` itself" if one.writes_no_ip_mode else ""
    ways = "; ".join(text for text in (one.ip_mode_auto, *settings, one.note, none) if text)
    return f"| {one.name} | {_cell(on) or 'unknown'} | {_cell(ways) or 'unknown'} |"


def _switch(switch: HeaderSwitch) -> str:
    kinds = f"on {' and '.join(switch.kinds)}" if switch.kinds else ""
    needs = f"needs {switch.needs}" if switch.needs else ""
    return _setting(switch.key.replace("{port}", "PORT"), switch.on, kinds, switch.part, needs)


def _status_setting(setting: StatusSetting) -> str:
    return _setting(
        setting.key, setting.value or "NAME", f"{setting.since} or newer" if setting.since else "", setting.note
    )


def _setting(key: str, value: str, *details: str) -> str:
    said = "; ".join(filter(None, details))
    return f"`{key}" + (f': "{value}"`' if value else "`") + (f" ({said})" if said else "")


def _provider_sources(_: str) -> str:
    rows = (f"| {one.name} | {_read_in(one)} | {_cell(one.unverified)} |" for one in _by_name(PROVIDERS))
    return "\n".join(["| provider | read in | not verified |", "| --- | --- | --- |", *rows])


def _read_in(one: Provider) -> str:
    links = [f"[{'/'.join(source.file.split('/')[-2:])}]({source.url}) {source.version}" for source in one.sources]
    return f"{', '.join(links)} ({max(source.read for source in one.sources)})"


def _deploy(heading: str) -> str:
    return _section("README.md", heading)


def _security(heading: str) -> str:
    return _section("SECURITY.md", heading)


def _section(file: str, heading: str) -> str:
    """A section of a page of deploy/, without its heading; a relative link becomes its text and its path."""
    text = (ROOT / "deploy" / file).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    if not found:
        raise KeyError(heading)
    return _LINK.sub(r"\g<text> (`deploy/\g<path>`)", rest.partition("\n## ")[0].strip())


def _settings(component: str) -> str:
    """The variables that a component sets, each with the comment above it."""
    text = (ROOT / "deploy" / "components" / component / "kustomization.yaml").read_text(encoding="utf-8")
    rows = [f"| `{found['value']}` | {_cell(_comment(found['comment']))} |" for found in _LITERAL.finditer(text)]
    return "\n".join(["| setting | why |", "| --- | --- |", *rows])


def _comment(lines: str) -> str:
    return " ".join(line.strip().removeprefix("#").strip() for line in lines.splitlines())


def _alerts(_: str) -> str:
    document = yaml.safe_load((ROOT / "deploy/components/monitoring/alerts.yaml").read_text())
    rules = [rule for group in document["spec"]["groups"] for rule in group["rules"]]
    rows = [
        f"| {rule['alert']} | {rule['labels']['severity']} | "
        f"{_cell(rule['annotations']['summary'])}. {_cell(rule['annotations'].get('description', ''))} |"
        for rule in rules
    ]
    return "\n".join(["| alert | severity | meaning |", "| --- | --- | --- |", *rows])


def _findings(_: str) -> str:
    rows = [f"| `{name}` | {_cell(meaning)} |" for name, meaning in MEANINGS.items()]
    return "\n".join(["| finding | meaning |", "| --- | --- |", *rows])


def _diagnosis(name: str) -> str:
    """The diagnosis of saved facts by the current code; their file has the name of the worst finding."""
    facts = parse_facts((ROOT / "docs" / "facts" / f"{name}.json").read_bytes())
    return f"```text\n{format_diagnosis(judge(facts), facts, Style(_WIDTH)).strip()}\n```"


def _metrics(_: str) -> str:
    return format_metrics()


def _clients(which: str) -> str:
    return {"": format_clients, "without CoreDNS": format_clients_without_coredns}[which]()


def _played(which: str) -> str:
    return {"combinations": format_combinations, "programs": format_programs, "absent": format_absent}[which]()


def _chart_values(_: str) -> str:
    """The values of the chart down to the second level, with the words of its schema."""
    schema = json.loads((ROOT / "deploy" / "chart" / "values.schema.json").read_text(encoding="utf-8"))
    rows = [f"| `{path}` | {_cell(text)} |" for path, text in _described(schema["properties"])]
    return "\n".join(["| value | meaning |", "| --- | --- |", *rows])


def _described(properties: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, one in properties.items():
        yield f"{above}{name}", str(one["description"])
        if not above and name != "settings":
            yield from _described(one.get("properties", {}), f"{name}.")


def _speed(which: str) -> str:
    return SPEED[which](read_recorded())


_PARTS: Final[Mapping[str, Callable[[str], str]]] = {
    "flags": _flags,
    "own-flags": _own_flags,
    "providers": _providers,
    "provider-sources": _provider_sources,
    "deploy": _deploy,
    "security": _security,
    "settings": _settings,
    "alerts": _alerts,
    "metrics": _metrics,
    "clients": _clients,
    "played": _played,
    "speed": _speed,
    "findings": _findings,
    "diagnosis": _diagnosis,
    "chart-values": _chart_values,
    "sources": lambda _: format_sources(),
}
