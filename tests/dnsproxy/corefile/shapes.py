"""Corefiles to test with: the stock ones of distributions, and generated ones."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import strategies as st

from dnsproxy.corefile.plan import Change, plan_install
from dnsproxy.corefile.stanza import Version
from sidecar.values.endpoints import Endpoint, parse_endpoint

FOLDER = Path(__file__).parent / "corefiles"
SHAPES = sorted(path.stem for path in (FOLDER / "stock").glob("*.Corefile"))
DNSPROXY = "10.96.0.53"
NEWEST: Version = (1, 14, 7)


def read(path: Path) -> str:
    """The exact text, including CR."""
    return path.read_bytes().decode()


def stock(shape: str) -> str:
    return read(FOLDER / "stock" / f"{shape}.Corefile")


def golden_path(shape: str) -> Path:
    return FOLDER / "installed" / f"{shape}.Corefile"


def is_updating() -> bool:
    """`UPDATE_GOLDENS=1 make test` rewrites the goldens; review the diff."""
    return os.environ.get("UPDATE_GOLDENS") == "1"


def address(text: str = DNSPROXY) -> Endpoint:
    return parse_endpoint(text, default_port=53)


def installed(text: str, *addresses: str, zones: tuple[str, ...] = (".",), version: Version | None = None) -> Change:
    endpoints = [address(one) for one in addresses or (DNSPROXY,)]
    return plan_install(text, addresses=endpoints, zones=zones, coredns_version=version)


# Generated Corefiles. Each line lacks its indentation and its line end.
_COMMENTS = ["# a note", "#", "# { not a brace", "", '# "', "   ", "# BEGIN of something else"]
_PLUGINS = [
    ["errors"],
    ["cache 30"],
    ["log#and why it is"],
    ["health {", "\tlameduck 5s", "}"],
    ["kubernetes cluster.local in-addr.arpa {", "    fallthrough", "# }", "}"],
    ["template ANY ANY example.net {", '  match "a {2} b"', "}"],
    ["import /etc/coredns/custom/*.override"],
    ["import common"],
    ["reload"],
    ['"loop"'],
]
_FORWARDS = [
    ["forward . /etc/resolv.conf"],
    ["forward . /etc/resolv.conf { max_concurrent 1000 }"],
    ["forward   .   192.0.2.53 [2001:db8::53]:5353 {", "      policy random", "   force_tcp", "}"],
    ['forward "." tls://192.0.2.53 {', "  tls_servername dns.example.org # its name", "  except corp.example.org", "}"],
    ["forward . {$UPSTREAM} {", "}"],
]
_OTHER_BLOCKS = [
    ["corp.example.org {", "  forward . 198.51.100.53", "}"],
    ["a.example.org,", "b.example.org:53 {", "", "}"],
    ["import /etc/coredns/custom/*.server"],
    ["tls://.:853 {", "    errors", "}"],
]
_KEYS = [".:53 {", ".:53 example.org:53 {", "dns://. {", "{$NAME} .:53 {", ".:53", "example.org,"]


@st.composite
def corefiles(draw: st.DrawFn) -> str:
    """A text that an install accepts: one root block with one forward, the rest at random."""
    lines = ["(common) {", "  log", "}"]
    for block in draw(st.lists(st.sampled_from(_OTHER_BLOCKS), max_size=2, unique_by=id)):
        lines += [*block, *draw(_comments)]
    key = draw(st.sampled_from(_KEYS))
    lines += [*draw(_comments), key]
    lines += {".:53": ["{"], "example.org,": [".:53", "{"]}.get(key, [])
    indent = draw(st.sampled_from(["    ", "\t", "", "  "]))
    entries = [*draw(_entries), draw(st.sampled_from(_FORWARDS)), *draw(_entries)]
    lines += [indent + line for entry in entries for line in entry]
    lines.append("}")
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    start = draw(st.sampled_from(["", "\ufeff", "\n"]))
    return start + line_end.join(lines) + draw(st.sampled_from(["", line_end, line_end + "# the end"]))


_comments = st.lists(st.sampled_from(_COMMENTS), max_size=2)
_entries = st.lists(st.sampled_from([*_PLUGINS, *([comment] for comment in _COMMENTS)]), max_size=4)

_ATOMS = [
    *[".", ".:53", "example.org", "a,", ",", "(s)", "(t)", "import", "import s", "import t", "import *.x", "log"],
    *["forward . 192.0.2.1", "forward", "errors", "{", "}", "{\n", "}\n", "\n", "\n", "\r\n", "\r", " ", "\t", "\v"],
    *['"', '"{"', '"a b"', '""', "\\", '\\"', "#", "# x", "\ufeff", "\u2003", "\x1c", "\x85", "é", "\ud800", "\0"],
    *["# BEGIN switchback\n", "# END switchback\n", "{$X}", "{%X%}", ":", "next NOERROR", "policy", "max_fails 0"],
]
garbage = st.one_of(
    st.text(),
    st.lists(st.sampled_from(_ATOMS), max_size=30).map("".join),
    st.lists(st.sampled_from(_ATOMS), max_size=30).map(" ".join),
    st.lists(st.sampled_from(_ATOMS), max_size=20).map(lambda atoms: ".:53 {\n" + " ".join(atoms) + "\n}\n"),
)
"""Random texts of the words of Corefiles."""
