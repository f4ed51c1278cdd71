"""What of the guide is made from the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dnsproxy.doctor.facts.file import parse_facts
from dnsproxy.doctor.judge.diagnose import judge
from dnsproxy.doctor.judge.findings import MEANINGS
from dnsproxy.doctor.judge.provider import Provider
from dnsproxy.doctor.judge.providers import PROVIDERS
from docs.generated import PROGRAMS, ROOT, below, fill_in
from tests.kit.rows import failing

PAGES = {
    page.stem: fill_in(page.read_text(encoding="utf-8")) for page in sorted((ROOT / "docs" / "pages").glob("*.md"))
}


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, one in below(command, click.Context(command)).items():
        yield from commands(f"{path} {name}", one)


COMMANDS = [
    (path, command)
    for program, whole in PROGRAMS.items()
    for path, command in commands(program, whole)
    if not isinstance(command, click.Group)
]


def test_every_flag_is_on_the_page_of_its_program_with_its_variable() -> None:
    """One page has the flags of a command, and each flag has a row there."""
    assert COMMANDS

    def check(row: tuple[str, click.Command]) -> None:
        path, command = row
        pages = [page for page in PAGES.values() if f"\n### {path}\n" in page]
        assert len(pages) == 1
        section = pages[0].partition(f"\n### {path}\n")[2].partition("\n#")[0]
        rows = [line for line in section.splitlines() if "| `-" in line]
        options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
        assert len(rows) == len(options)
        assert command.params
        for option in options:
            found = [row for row in rows if f"`{option.opts[0]}" in row or f" {option.opts[0]}" in row]
            assert found, option.opts
            if option.name not in {"version", "help"} and option.allow_from_autoenv:
                variable = f"`{option.envvar or f'{path.split(maxsplit=1)[0]}_{option.name}'.upper()}`"
                assert any(variable in row for row in found), option.opts

    assert failing(check, COMMANDS) == []


def test_a_row_has_flag_variable_default_and_words() -> None:
    row = next(
        line for line in fill_in("*(make docs writes here: flags dnsproxy serve)*").splitlines() if "| `--ttl" in line
    )
    assert row.count(" | ") == 3
    assert "`DNSPROXY_TTL` | `5`" in row


def test_every_provider_is_a_row() -> None:
    page = fill_in("*(make docs writes here: providers)*")
    assert len(page.splitlines()) == len(PROVIDERS) + 2
    for provider in PROVIDERS:
        assert f"| {provider.name} |" in page
        for setting in (provider.ip_mode, provider.hostname):
            assert setting is None or setting.key in page
        for switch in provider.switches:
            assert not switch.on or f'`{switch.key}: "{switch.on}"`' in page


def test_a_row_says_whether_the_controller_writes_ip_mode() -> None:
    """One of: by itself, by a setting, not at all, unverified; a remark would hide which."""
    rows = fill_in("*(make docs writes here: providers)*").splitlines()

    def check(provider: Provider) -> None:
        row = next(line for line in rows if line.startswith(f"| {provider.name} |"))
        writes = bool(provider.ip_mode_auto or provider.ip_mode or "sets `ipMode: Proxy`" in provider.unverified)
        assert writes is not provider.writes_no_ip_mode
        assert ("it writes no `ipMode` itself" in row) is provider.writes_no_ip_mode
        assert "ipMode: Proxy` by itself" not in provider.note

    assert failing(check, PROVIDERS) == []


def test_every_provider_has_its_sources_in_the_guide() -> None:
    page = fill_in("*(make docs writes here: provider-sources)*")
    assert len(page.splitlines()) == len(PROVIDERS) + 2
    for provider in PROVIDERS:
        row = next(line for line in page.splitlines() if line.startswith(f"| {provider.name} |"))
        assert all(f"]({source.url}) {source.version}" in row for source in provider.sources)
        assert provider.unverified in row


def test_a_part_of_the_manifests_readme_has_no_link_that_would_lead_nowhere() -> None:
    page = fill_in("*(make docs writes here: deploy Your distribution)*")
    assert "| kubeadm, kind, " in page
    assert "](" not in page.replace("](http", "")


def test_every_finding_of_the_doctor_is_told() -> None:
    page = fill_in("*(make docs writes here: findings)*")
    assert all(f"| `{name}` | " in page for name in MEANINGS)


def test_every_alert_is_told() -> None:
    assert "| DnsproxyTableStale | warning |" in fill_in("*(make docs writes here: alerts)*")


def test_every_metric_that_an_alert_asks_for_is_told() -> None:
    told = set(re.findall(r"^\| `(\w+)", fill_in("*(make docs writes here: metrics)*"), re.MULTILINE))
    alerts = (ROOT / "deploy/components/monitoring/alerts.yaml").read_text()
    asked = set(re.findall(r"\b(?:dnsproxy|proxy|wholeip)_[a-z_]+", alerts))
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in asked} <= told
    assert len(told) > 30


@pytest.mark.parametrize(
    "part",
    ["nothing", "deploy Nothing", "deploy", "flags", "flags nothing", "flags dnsproxy nothing", "own-flags nothing"],
)
def test_a_part_that_is_none_is_told(part: str) -> None:
    with pytest.raises(KeyError):
        fill_in(f"*(make docs writes here: {part})*")


FACTS = sorted((ROOT / "docs" / "facts").glob("*.json"))


@pytest.mark.parametrize("file", FACTS, ids=[file.stem for file in FACTS])
def test_a_diagnosis_of_the_guide_finds_what_its_facts_are_kept_for(file: Path) -> None:
    diagnosis = judge(parse_facts(file.read_bytes()))
    assert file.stem in {finding.id for finding in diagnosis.findings}
    page = fill_in(f"*(make docs writes here: diagnosis {file.stem})*")
    assert f"[{file.stem}]" in page
    assert "\x1b" not in page
    assert f"*(make docs writes here: diagnosis {file.stem})*" in (ROOT / "docs/pages/troubleshooting.md").read_text()
