"""The server block for named zones, and the directives copied into it."""

from __future__ import annotations

import pytest
from hypothesis import given

from dnsproxy.cluster_dns.refusal import ChangeRefused
from dnsproxy.corefile.model import Directive
from dnsproxy.corefile.parser import parse_corefile
from dnsproxy.install.change.server_block import format_directive
from tests.dnsproxy.corefile.shapes import corefiles
from tests.kit.manifest_cluster import manifests, pick
from tests.kit.manifest_edits import plan, wanted


def block_of(root: str, *zones: str) -> str:
    """Our block beside a block of `.` with this text."""
    objects = manifests("k3s")
    pick(objects, "ConfigMap", "coredns")["data"]["Corefile"] = f"{root}\nimport /etc/coredns/custom/*.server\n"
    (change,) = plan(objects, wanted(*(zones or ("example.org",)))).changes
    return "\n".join((change.data[0].new or "").splitlines()[1:-1])


def test_it_listens_logs_counts_and_caches_as_the_block_of_the_root() -> None:
    root = """.:5353 {
        bind 169.254.20.10   10.0.0.10
        errors { consolidate 5m ".* i/o timeout$" warning }
        log . {
          class denial
        } # not all
        health
        prometheus :9153
        rewrite name a b
        forward . tls://192.0.2.9 {
            tls_servername dns.example.org
        }
        cache 30 {
            success 9984 30
            disable denial cluster.local
        }
        loop
        reload
    }"""
    taken = """example.org:5353 {
    bind 169.254.20.10 10.0.0.10
    errors {
        consolidate 5m ".* i/o timeout$" warning
    }
    log . {
        class denial
    }
    prometheus :9153
    cache 30 {
        success 9984 30
        disable denial cluster.local
    }
    forward . 10.96.0.53 tls://192.0.2.9 {
"""
    assert block_of(root).startswith(taken)
    assert block_of(root).endswith("        tls_servername dns.example.org\n    }\n}")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (".", "example.org {"),
        (".:53", "example.org:53 {"),
        ("dns://.:1053", "example.org:1053 {"),
        ("dns://.", "example.org {"),
    ],
)
def test_its_port_is_written_as_that_of_the_root_is(key: str, expected: str) -> None:
    """Without one, the flag -dns.port decides about both."""
    assert block_of(f"{key} {{\n  forward . 192.0.2.9\n}}").splitlines()[0] == expected


def test_what_a_snippet_brings_is_taken_over_and_what_a_file_has_is_not() -> None:
    root = "(s) {\n  cache 60\n}\n. {\n  import s\n  log . {\n    import other\n  }\n  forward . 192.0.2.9\n}"
    assert "    cache 60" in block_of(root)
    assert "log" not in block_of(root)


def test_placeholders_of_node_cache_are_refused_outside_of_its_template() -> None:
    with pytest.raises(ChangeRefused, match=r"placeholders.*--method stub-domains"):
        block_of(". {\n  bind __PILLAR__LOCAL__DNS__\n  forward . 192.0.2.9\n}")


@given(corefiles())
def test_a_directive_that_is_written_anew_says_the_same(text: str) -> None:
    for block in parse_corefile(text).blocks:
        for directive in block.directives:
            if not directive.unread:
                written = "\n".join(format_directive(directive, "  "))
                (again,) = parse_corefile(f". {{\n{written}\n}}\n").blocks[0].directives
                assert (again.name, texts(again)) == (directive.name, texts(directive))
                assert [word.line - again.line for word in again.options] == lines(again)


def texts(directive: Directive) -> list[str]:
    return [word.text for word in directive.words]


def lines(directive: Directive) -> list[int]:
    """Options stand below their directive."""
    return [word.line - directive.line for word in directive.options if word.line > directive.line]
