"""`--source crd:PLURAL.GROUP:PATH`."""

from __future__ import annotations

import msgspec
import pytest

from dnsproxy.sources.described.custom import parse_custom
from tests.dnsproxy.sources.described.objects import Fed


def test_a_custom_kind_is_found_by_its_group_in_the_version_that_the_server_prefers() -> None:
    kind = parse_custom("crd:sites.web.example.org:spec.hosts[*]")
    assert (kind.name, kind.watched.group, kind.watched.resource) == (
        "sites.web.example.org",
        "web.example.org",
        "sites",
    )
    assert kind.watched.versions == ()


@pytest.mark.parametrize(
    "text",
    ["crd:", "crd:sites", "crd:sites.example.org", "crd:sites.example.org:", "crd:sites:spec.host",
     "crd:sites.org:spec",
     "crd:Sites.example.org:spec.host", "crd:sites.example..org:spec.host", "crd:sites.example.org:spec[0]",
     "crd:sites.example.org:metadata.name", "crd:sites/v1.example.org:spec.host", "crd:sites.example.org:kind",
     f"crd:{'s' * 64}.example.org:spec.host", "crd:sites.example.org:spec.host\n", "crd:sites.example.org:spec.host,",
     "crd:sites.example.org:,spec.host",
     "crd:sites.example.org:spec.host,metadata.name"],
)  # fmt: skip
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"sites|crd|path"):
        parse_custom(text)


@pytest.mark.parametrize("field", ["data", "class", "host-names", "hosts"])
def test_hosts_may_be_at_the_root_of_an_object(field: str) -> None:
    name = f"crd:sites.example.org:{field}[*]"
    fed = Fed(name)
    kind = parse_custom(name)

    body = msgspec.json.encode({"metadata": {"name": "x", "namespace": "web"}, field: ["a.example.org"], "spec": {}})
    fed.source.change(kind.name, {"web/x": msgspec.json.decode(body, type=kind.watched.type)})
    assert list(fed.names()) == ["a.example.org"]


def test_several_paths_add_up() -> None:
    kind = parse_custom("crd:sites.example.org:spec.host,status.hosts[*],class.host")
    fed = Fed("crd:sites.example.org:spec.host,status.hosts[*],class.host")
    whole = {
        "metadata": {"name": "x", "namespace": "web"},
        "spec": {"host": "a.example.org"},
        "status": {"hosts": ["b.example.org"]},
        "class": {"host": "c.example.org"},
    }
    fed.source.change(kind.name, {"web/x": msgspec.json.decode(msgspec.json.encode(whole), type=kind.watched.type)})
    assert list(fed.names()) == ["a.example.org", "b.example.org", "c.example.org"]
