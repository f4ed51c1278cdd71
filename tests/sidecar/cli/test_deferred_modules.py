"""Tests sidecar/cli/deferred_modules.py, each in an interpreter of its own: this one has imported what they defer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sidecar.cli.deferred_modules import UNUSED

SERVERS = {
    "dnsproxy serve": "dnsproxy.cli, dnsproxy.serve.command, dnsproxy.serve.program",
    "proxy": "proxy.cli, proxy.serve.program, proxy.serve.supervisor",
    "worker of proxy": "proxy.serve.worker_start, proxy.serve.worker",
    "wholeip run": "wholeip.cli, wholeip.agent.program",
}
DEFERRED = "import sys\nfrom sidecar.cli.deferred_modules import defer_modules\ndefer_modules('asyncio', 'html')\n"
USES = {
    "import asyncio": "import asyncio; print(asyncio.run(asyncio.sleep(0, 7)))",
    "from asyncio import": "from asyncio import run, sleep; print(run(sleep(0, 7)))",
    "import asyncio.events": "import asyncio.events; print(7 if asyncio.events.get_event_loop_policy() else 0)",
    "import html.parser": "import html.parser; print(7 if html.parser.HTMLParser and html.escape else 0)",
    "from html import parser": "from html import parser; print(7 if parser.HTMLParser else 0)",
    "two importers, one module": (
        "import asyncio as first; first.run; import asyncio as second; print(7 if first.run is second.run else 0)"
    ),
    "a changed attribute": "import html; html.escape = 7; from html import escape; print(escape)",
    "a removed attribute": "import html; del html.escape; import html as again; print(7 - hasattr(again, 'escape'))",
    "dir": "import html; print(7 if 'escape' in dir(html) else 0)",
    "no such attribute": "import html; print(getattr(html, 'unescaped', 7))",
    "inspect": "import html, inspect; print(7 if 'def escape' in inspect.getsource(html) else 0)",
    "pickle": "import html, pickle; print(7 if pickle.loads(pickle.dumps(html.escape)) is html.escape else 0)",
    "eight threads at once": (
        "import html\nfrom threading import Thread\nseen = []\n"
        "all = [Thread(target=lambda: seen.append(html.escape('<'))) for _ in range(8)]\n"
        "for one in all: one.start()\nfor one in all: one.join()\nprint(7 if seen == ['&lt;'] * 8 else 0)"
    ),
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("modules", SERVERS.values(), ids=SERVERS)
def test_a_server_imports_its_libraries_without_what_they_do_not_use(modules: str) -> None:
    code = f"import sys, {modules}; print({{'structlog', 'asyncio.events', 'html.entities'}} & set(sys.modules))"
    assert run(code) == "{'structlog'}"


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_deferred_module_is_as_any_other(use: str) -> None:
    assert run(DEFERRED + use) == "7"


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_uses_are_right_without_deferral(use: str) -> None:
    assert run(use) == "7"


def test_a_module_that_is_imported_already_stays() -> None:
    assert run(f"import html; first = html; {DEFERRED.replace(chr(10), ';')} print(sys.modules['html'] is first)") == (
        "True"
    )


def test_a_module_that_does_not_exist_fails_as_always() -> None:
    code = (
        "from sidecar.cli.deferred_modules import defer_modules\ndefer_modules('no_such_module')\n"
        "import no_such_module\ntry: no_such_module.x\nexcept ModuleNotFoundError as error: print(error)"
    )
    assert run(code) == "No module named 'no_such_module'"


def test_only_modules_of_the_standard_library_are_deferred() -> None:
    assert set(UNUSED) <= sys.stdlib_module_names
