"""Every command of the guide does what the guide says: run here, or at least parsed where it takes another system."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import pytest
import yaml

from docs.build import HERE
from docs.fences import Fence, Mode, find_fences
from docs.generated import PROGRAMS, fill_in
from tests.kit.ports import free_ports
from tests.kit.processes import end_process, wait_for
from tests.kit.rows import failing

PAGES = {page.stem: page for page in sorted((HERE / "pages").rglob("*.md"))}
FENCES = {name: list(find_fences(page.read_text())) for name, page in PAGES.items()}
RUNNING = (Mode.RUN, Mode.SERVE)
LANGUAGES = {"sh", "text", "yaml", "ini", "powershell"}
PARSED = [
    (name, line)
    for name, fences in FENCES.items()
    for fence in fences
    if fence.language == "sh"
    for line in fence.body.replace("\\\n", " ").splitlines()
]


def ours(line: str) -> list[str] | None:
    """The command of one of our programs in a line, wherever it stands: behind `--`, `|` or `||`."""
    words = shlex.split(line, comments=True)
    for position, word in enumerate(words):
        begins = position == 0 or words[position - 1] in {"--", "|", "||", "&&", "sudo"}
        if word in PROGRAMS and begins:
            rest = words[position:]
            return next((rest[:end] for end, one in enumerate(rest) if one in {"|", "||", "&&", "<", ">"}), rest)
    return None


def test_the_flags_of_our_programs_are_those_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(row: tuple[str, str]) -> None:
        words = ours(row[1])
        if words is not None:
            parse(PROGRAMS[words[0]], words)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("facts.json", "names", "Corefile"):
        (tmp_path / name).touch()
    assert failing(check, PARSED) == []


def parse(command: click.Command, words: list[str]) -> None:
    """As the program itself would, without doing anything. Raises click.UsageError."""
    with ExitStack() as contexts:
        parent: click.Context | None = None
        name, rest = words[0], words[1:]
        while isinstance(command, click.Group):
            parent = contexts.enter_context(command.make_context(name, [], parent=parent, resilient_parsing=True))
            below = command.get_command(parent, rest[0]) if rest else None
            if below is None:
                raise click.UsageError(f"there is no such command: {rest}")
            name, command, rest = rest[0], below, rest[1:]
            parent.resilient_parsing = False
        contexts.enter_context(command.make_context(name, rest, parent=parent))


@pytest.mark.parametrize("words", ["dnsproxy serve --nonsense", "proxy", "dnsproxy nothing", "wholeip run --ttl 5"])
def test_a_flag_that_there_is_not_is_found(words: str) -> None:
    with pytest.raises(click.UsageError):
        parse(PROGRAMS[words.partition(" ")[0]], words.split())


def test_every_block_says_how_it_is_held_to_the_truth() -> None:
    def check(name: str) -> None:
        before: Fence | None = None
        for fence in FENCES[name]:
            assert fence.language in LANGUAGES
            assert (fence.language == "sh") is (fence.mode in {*RUNNING, Mode.CLUSTER, Mode.PARSE})
            if fence.mode is Mode.SEEN:
                assert before is not None
                assert before.mode in {Mode.RUN, Mode.CLUSTER}
            if fence.language == "yaml":
                assert all(yaml.safe_load_all(fence.body))
            if fence.language == "powershell":
                assert not any(program in fence.body for program in PROGRAMS)
            before = fence

    assert failing(check, PAGES) == []


def test_generated_parts_have_no_shell_that_is_not_run() -> None:
    """They are of deploy/README.md, whose commands the tests of deploy/ know."""

    def check(name: str) -> None:
        known = {fence.body for fence in FENCES[name]}
        for fence in find_fences(fill_in(PAGES[name].read_text())):
            if fence.body not in known and fence.language == "sh":
                assert all(ours(line) is None for line in fence.body.splitlines())

    assert failing(check, PAGES) == []


@pytest.mark.peer("dig")
@pytest.mark.parametrize("name", [name for name in PAGES if any(one.mode in RUNNING for one in FENCES[name])])
def test_the_commands_of_a_page_do_what_it_says(name: str, tmp_path: Path) -> None:
    page = Page(tmp_path)
    with ExitStack() as servers:
        for fence in FENCES[name]:
            if fence.mode is Mode.SERVE:
                servers.enter_context(page.serving(fence.body))
            elif fence.mode is Mode.RUN:
                page.run(fence.body)
            elif fence.mode is Mode.SEEN:
                for line in fence.body.splitlines():
                    assert line in page.printed


class Page:
    """One page's shell: a folder of its own, and ports that nobody else has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed = ""
        dns, admin = free_ports(2)
        self._ports = {"1053": str(dns), "8081": str(admin)}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        where = {"LISTEN": f"127.0.0.1:{dns}", "ADMIN": f"127.0.0.1:{admin}", "UPSTREAM": "192.0.2.53"}
        programs = {f"DNSPROXY_{name}": value for name, value in where.items()}
        # The demo chooses its ports itself.
        self._environment = {**os.environ, "PATH": path}
        self._of_pages = programs

    def run(self, script: str) -> None:
        """It has to succeed."""
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._here(script)],
            cwd=self.folder,
            env=self._environment_of(script),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert result.returncode == 0, f"{script}\n{result.stdout}\n{result.stderr}"
        self.printed = result.stdout

    @contextmanager
    def serving(self, script: str) -> Iterator[None]:
        """From its readiness to its end."""
        log = self.folder / "serve.log"
        command = ["bash", "-c", f"exec {self._here(script)}"]
        with log.open("wb") as stderr:
            process = subprocess.Popen(command, cwd=self.folder, env=self._environment_of(script), stderr=stderr)
        try:
            wait_for(lambda: b"serving" in log.read_bytes(), process=process, log=log)
            yield
        finally:
            end_process(process)

    def _here(self, script: str) -> str:
        for documented, free in self._ports.items():
            script = script.replace(documented, free)
        return script

    def _environment_of(self, script: str) -> dict[str, str]:
        return self._environment if "demo" in script else {**self._environment, **self._of_pages}
