"""Completion by the real shells and by the real kubectl, with the programs as they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dnsproxy.cli import main as dnsproxy
from proxy.cli import main as proxy
from sidecar.cli.completion import SHELLS, complete_for_kubectl, format_script
from tests.kit.programs import program
from wholeip.cli import main as wholeip

SCRIPTS = Path(sys.executable).parent
"""Where the entry points are."""
PROGRAMS = {
    "dnsproxy": "dnsproxy completion {}",
    "wholeip": "wholeip completion {}",
    "proxy": "proxy --completion {}",
}
# What was typed, and what the shell may add.
WORDS = [
    ("dnsproxy doc", ["doctor"]),
    ("dnsproxy publish-", ["publish-external-dns", "publish-hosts"]),
    ("dnsproxy doctor --output j", ["json"]),
    ("dnsproxy completion z", ["zsh"]),
    ("wholeip uninstall --every", ["--every-node"]),
    ("proxy --routes-f", ["--routes-from"]),
    ("dnsproxy doctor -o t", ["text"]),
    ("dnsproxy nothing-like-this", []),
]


def in_shell(folder: Path, *command: str) -> list[str]:
    """The lines that a shell prints, in an empty home and with only our programs and the system's on its PATH."""
    environment = {"PATH": f"{SCRIPTS}:{os.defpath}", "HOME": str(folder), "TERM": "dumb", "LANG": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.peer("bash")
@pytest.mark.parametrize(("typed", "offered"), WORDS, ids=[typed for typed, _ in WORDS])
def test_bash_completes(typed: str, offered: Sequence[str], tmp_path: Path) -> None:
    name, *rest = typed.split(" ")
    script = f"""
source <({PROGRAMS[name].format("bash")})
COMP_WORDS=({name} {" ".join(rest)}) COMP_CWORD={len(rest)}
_{name}_completion {name}
printf '%s\\n' "${{COMPREPLY[@]}}"
complete -p {name} >/dev/null || echo "not registered"
"""
    assert [one for one in in_shell(tmp_path, program("bash"), "-c", script) if one] == list(offered)


@pytest.mark.peer("fish")
@pytest.mark.parametrize(("typed", "offered"), WORDS, ids=[typed for typed, _ in WORDS])
def test_fish_completes(typed: str, offered: Sequence[str], tmp_path: Path) -> None:
    name = typed.partition(" ")[0]
    script = f"{PROGRAMS[name].format('fish')} | source; complete --do-complete '{typed}'"
    said = in_shell(tmp_path, program("fish"), "--no-config", "-c", script)
    assert [one.partition("\t")[0] for one in said] == list(offered)


@pytest.mark.peer("zsh")
@pytest.mark.parametrize(("typed", "offered"), WORDS, ids=[typed for typed, _ in WORDS])
def test_zsh_completes(typed: str, offered: Sequence[str], tmp_path: Path) -> None:
    # compadd and _describe are what a completion function offers its words with.
    name, *rest = typed.split(" ")
    script = f"""
autoload -U compinit && compinit -u
source <({PROGRAMS[name].format("zsh")})
print -r -- "registered: $_comps[{name}]"
_describe() {{ eval 'print -rl -- "${{'$3'[@]}}"' }}
compadd() {{ eval 'print -rl -- "${{'$@[-1]'[@]}}"' }}
words=({name} {" ".join(rest)}) CURRENT={len(rest) + 1}
_{name}_completion
"""
    said = in_shell(tmp_path, program("zsh"), "--no-rcs", "-c", script)
    assert said[0] == f"registered: _{name}_completion"
    assert [one.partition(":")[0] for one in said[1:] if one] == list(offered)


@pytest.mark.peer("kubectl")
def test_kubectl_finds_the_plugin_and_completes_its_words(tmp_path: Path) -> None:
    listed = in_shell(tmp_path, program("kubectl"), "plugin", "list")
    assert str(SCRIPTS / "kubectl-switchback") in listed
    assert not [one for one in listed if "warning" in one.lower()]
    completed = subprocess.run(
        [program("kubectl"), "__complete", "switchback", "doc"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{SCRIPTS}:{os.defpath}", "HOME": str(tmp_path)},
    )
    words = [one.partition("\t")[0] for one in completed.stdout.splitlines()]
    assert words == ["doctor", ":4"], completed.stderr


@pytest.mark.peer("kubectl")
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--help"], 0),
        (["doctor", "--help"], 0),
        (["--version"], 0),
        (["nothing"], 2),
        (["doctor", "--kubeconfig=/nowhere"], 3),
    ],
    ids=["help", "help of a command", "version", "no such command", "no cluster"],
)
def test_the_plugin_is_dnsproxy_under_the_name_that_was_typed(
    words: Sequence[str], status: int, tmp_path: Path
) -> None:
    environment = {"PATH": f"{SCRIPTS}:{os.defpath}", "HOME": str(tmp_path)}
    command = [program("kubectl"), "switchback", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == status, done.stderr
    if words == ["nothing"]:
        assert done.stderr == "Error: No such command 'nothing'; see kubectl switchback --help\n"
    if "--version" in words:
        assert done.stdout.startswith("kubectl switchback, version ")
    if "--help" in words:
        assert f"Usage: kubectl switchback{' doctor' if 'doctor' in words else ''} [OPTIONS]" in done.stdout
        assert "\n    kubectl switchback doctor app.example.org" in done.stdout
        assert "\n    dnsproxy" not in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ":4"),
        (["doctor", "--kubeconfig", "/etc/"], ":0"),
        (["doctor", "--save", ""], ":0"),
        (["install", "--file", "Core"], ":0"),
        (["install", "--file=Core"], ":0"),
        (["doctor", "--output", "x"], ":4"),
        (["no-such-command", ""], ":4"),
        (["doctor", "--no-such-flag", ""], ":4"),
        (["--", "--", "\x1b[2J"], ":4"),
    ],
    ids=repr,
)
def test_kubectl_is_told_whether_files_may_follow(words: Sequence[str], said: str) -> None:
    assert complete_for_kubectl(dnsproxy, words).splitlines()[-1] == said


def test_a_candidate_has_its_first_line_of_help() -> None:
    assert complete_for_kubectl(dnsproxy, ["doctor", "--outp"]).startswith("--output\tLines for people, or JSON")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_is_for_the_program_by_its_name(name: str, shell: str) -> None:
    command: click.Command = {"dnsproxy": dnsproxy, "proxy": proxy, "wholeip": wholeip}[name]
    words = PROGRAMS[name].format(shell).split()[1:]
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0
    assert result.stdout.rstrip("\n") == format_script(command, name, shell).rstrip("\n")
    assert f"_{name.upper()}_COMPLETE={shell}_complete" in result.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_says_its_version(name: str) -> None:
    done = subprocess.run([SCRIPTS / name, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{name}, version ")


@pytest.mark.parametrize("typed", ["dnsproxy ", "dnsproxy --v", "dnsproxy serve --"], ids=repr)
def test_tab_waits_for_no_event_loop_and_no_cluster(typed: str) -> None:
    # Each import that is slow is felt at each press of Tab: trio alone takes as long as Python and click together.
    script = "import sys; from dnsproxy.cli import main\ntry: main(prog_name='dnsproxy')\nfinally: print(*sys.modules)"
    environment = {"_DNSPROXY_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    environment |= os.environ
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    loaded = set(done.stdout.split())
    assert "click.shell_completion" in loaded
    assert loaded & {"trio", "asyncio.events", "ssl", "httpx2", "kubernetes", "structlog"} == set()


def test_an_unknown_shell_is_bad_usage() -> None:
    for command, words in ((dnsproxy, ["completion", "csh"]), (proxy, ["--completion", "csh"])):
        result = CliRunner().invoke(command, words)
        assert result.exit_code == 2
        assert "'csh' is not one of 'bash', 'zsh', 'fish'" in result.stderr
    with pytest.raises(ValueError, match="csh"):
        format_script(dnsproxy, "dnsproxy", "csh")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_help_in_a_pager_is_plain_text_of_the_terminals_width(width: int) -> None:
    environment = {**os.environ, "COLUMNS": str(width), "FORCE_COLOR": ""}
    commands = ("dnsproxy --help", "dnsproxy serve --help", "proxy --help", "wholeip run -h")
    for words in map(str.split, commands):
        done = subprocess.run(
            [str(SCRIPTS / words[0]), *words[1:]], capture_output=True, text=True, check=True, env=environment
        )
        assert "\x1b" not in done.stdout
        prose = [line for line in done.stdout.partition("Examples:")[0].splitlines() if len(line.split()) > 3]
        assert max(map(len, prose)) <= max(min(width, 110), 70)
