"""One name is given, and the names of the second image and of the charts follow."""

from __future__ import annotations

import pytest

from release.image_name import ImageName, parse_image_name

GOOD = [
    ("registry.example.org/switchback", "registry.example.org", "switchback"),
    ("registry.example.org:5000/team/switchback", "registry.example.org:5000", "team/switchback"),
    ("192.0.2.1:5000/a", "192.0.2.1:5000", "a"),
    ("[2001:db8::1]:5000/a", "[2001:db8::1]:5000", "a"),
    ("localhost/switchback", "localhost", "switchback"),
    ("localhost:5000/s", "localhost:5000", "s"),
    ("registry.example.org/a__b/c-d.e", "registry.example.org", "a__b/c-d.e"),
]


@pytest.mark.parametrize(("text", "host", "path"), GOOD, ids=[row[0] for row in GOOD])
def test_a_name_is_read_and_written_back(text: str, host: str, path: str) -> None:
    assert parse_image_name(text) == ImageName(host, path)
    assert str(parse_image_name(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "switchback",
        "team/switchback",
        "registry.example.org",
        "registry.example.org/",
        "registry.example.org/switchback:0.1.0",
        "registry.example.org/switchback@sha256:0",
        "registry.example.org/Switchback",
        "registry.example.org//switchback",
        "registry.example.org/switchback/",
        "registry.example.org/-switchback",
        "https://registry.example.org/switchback",
        "oci://registry.example.org/switchback",
        "registry.example.org/switch back",
        "registry.example.org/switchback\n",
        "registry.example.org:port/switchback",
        "-registry.example.org/switchback",
    ],
)
def test_another_text_is_refused_with_the_shape(text: str) -> None:
    with pytest.raises(ValueError, match=r"registry\.example\.org/"):
        parse_image_name(text)


@pytest.mark.parametrize(
    ("image", "second", "charts"),
    [
        (
            "registry.example.org/switchback",
            "registry.example.org/switchback-nftables",
            "oci://registry.example.org/charts",
        ),
        ("registry.example.org/a/sb", "registry.example.org/a/sb-nftables", "oci://registry.example.org/a/charts"),
    ],
    ids=["at the root", "in a folder"],
)
def test_the_second_image_and_the_charts_are_beside_it(image: str, second: str, charts: str) -> None:
    name = parse_image_name(image)
    assert str(name.beside("switchback-nftables")) == second
    assert name.beside("switchback") == name
    assert name.charts == charts


def test_no_foreign_image_is_beside_it() -> None:
    with pytest.raises(ValueError, match="busybox"):
        parse_image_name("registry.example.org/switchback").beside("busybox")


@pytest.mark.parametrize(
    ("host", "is_example"),
    [
        ("registry.example.org", True),
        ("example.com:5000", True),
        ("REGISTRY.EXAMPLE.ORG", True),
        ("registry.example", False),
        ("myexample.org", False),
        ("192.0.2.1:5000", False),
    ],
)
def test_an_example_is_known_by_its_domain(host: str, is_example: bool) -> None:
    assert ImageName(host, "switchback").is_example is is_example
