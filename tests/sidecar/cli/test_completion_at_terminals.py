"""Completion as a person sees it: an interactive shell, set up by the guide's line, and the Tab key."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.programs import program
from tests.sidecar.cli.test_completion import SCRIPTS

PROMPT = "prompt:"
LINES = {
    "bash": (".bashrc", f"PS1='{PROMPT}'\nsource <(dnsproxy completion bash)\n"),
    "zsh": (".zshrc", f"PS1='{PROMPT}'\nautoload -U compinit && compinit -u\nsource <(dnsproxy completion zsh)\n"),
    "fish": (".config/fish/config.fish", f"function fish_prompt; echo -n '{PROMPT}'; end\n"),
}
"""What a person writes where. fish loads the file in its folder of completions by itself."""
_CONTROLS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()=>].?|\x1b\][^\x07]*\x07")
_SECONDS = 60.0
_ATTRIBUTES, _ATTRIBUTES_OF_VT100 = b"\x1b[c", b"\x1b[?1;2c"


class Terminal:
    """The keyboard and the screen of a shell."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def press(self, keys: str, *, shown: str) -> None:
        """Type, and wait until the shell has shown this; what it showed before is gone."""
        os.write(self._descriptor, keys.encode())
        seen, deadline = b"", time.monotonic() + _SECONDS
        while shown.encode() not in _CONTROLS.sub(b"", seen):
            ready, _, _ = select.select([self._descriptor], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{shown!r} was not shown, but {seen!r}"
            part = os.read(self._descriptor, 65_536)
            seen += part
            if _ATTRIBUTES in part:  # newer shells ask the terminal what it is, and wait for the answer
                os.write(self._descriptor, _ATTRIBUTES_OF_VT100)


@contextmanager
def open_terminal(shell: str, home: Path) -> Iterator[Terminal]:
    file, text = LINES[shell]
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_text(text, encoding="utf-8")
    environment = {"HOME": str(home), "PATH": f"{SCRIPTS}:{os.defpath}", "TERM": "vt100", "LANG": "C.UTF-8"}
    command = program(shell)
    process, descriptor = pty.fork()
    if process == 0:
        os.chdir(home)
        os.execve(command, [shell, "-i"], environment)  # noqa: S606  # the child of a fork, on its terminal
    try:
        yield Terminal(descriptor)
    finally:
        os.close(descriptor)  # the shell gets SIGHUP
        os.waitpid(process, 0)


@pytest.mark.parametrize("shell", [pytest.param(one, marks=pytest.mark.peer(one)) for one in LINES])
def test_tab_completes_commands_values_and_files(shell: str, tmp_path: Path) -> None:
    (tmp_path / "facts.json").touch()
    with open_terminal(shell, tmp_path) as terminal:
        terminal.press("", shown=PROMPT)
        if shell == "fish":
            line = "dnsproxy completion fish > ~/.config/fish/completions/dnsproxy.fish"
            terminal.press(f"{line}; and echo do''ne\r", shown="done")
        terminal.press("dnsproxy doct\t", shown="doctor")
        terminal.press("--output j\t", shown="json")
        terminal.press("--from fac\t", shown="facts.json")
