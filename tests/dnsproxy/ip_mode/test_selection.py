"""Which Services the policy and the watcher are for."""

from __future__ import annotations

import pytest

from dnsproxy.ip_mode.selection import ANNOTATION, Selection, parse_load_balancer_class

CASES = [
    pytest.param({}, "", (), False, id="nothing selects it"),
    pytest.param({ANNOTATION: "Proxy"}, "", (), True, id="the annotation"),
    pytest.param({ANNOTATION: "proxy"}, "", (), False, id="another spelling"),
    pytest.param(
        {ANNOTATION: ""}, "example.org/lb", ("example.org/lb",), False, id="an empty annotation leaves it out"
    ),
    pytest.param({ANNOTATION: "VIP"}, "example.org/lb", ("example.org/lb",), False, id="VIP leaves it out"),
    pytest.param({}, "example.org/lb", ("example.org/lb",), True, id="its class"),
    pytest.param({}, "example.org/lb2", ("example.org/lb",), False, id="a class that begins alike"),
    pytest.param({}, "", ("example.org/lb",), False, id="no class, while one is named"),
    pytest.param({}, "", ("",), False, id="an empty class is none"),
]


@pytest.mark.parametrize(("annotations", "load_balancer_class", "classes", "selected"), CASES)
def test_the_annotation_decides_and_then_the_class(
    annotations: dict[str, str], load_balancer_class: str, classes: tuple[str, ...], selected: bool
) -> None:
    assert Selection(classes).selects(annotations, load_balancer_class) is selected


@pytest.mark.parametrize(
    "text",
    [
        "example.org/lb",
        "service.k8s.aws/nlb",
        "io.cilium/l2-announcer",
        "internal",
        "A_b.c-9",
        "a" * 63,
        f"{'a.' * 126}a/b",
    ],
    ids=lambda text: text[:30],
)
def test_a_class_is_a_qualified_name(text: str) -> None:
    assert parse_load_balancer_class(text) == text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(" example.org/lb", id="a space before it"),
        pytest.param("example.org/lb\n", id="a line break after it"),
        pytest.param("example.org/", id="no name"),
        pytest.param("/lb", id="no domain before the slash"),
        pytest.param("example.org/a/b", id="two slashes"),
        pytest.param("Example.org/lb", id="capitals in the domain"),
        pytest.param("example..org/lb", id="an empty label"),
        pytest.param("-example.org/lb", id="a domain that begins with a hyphen"),
        pytest.param("example.org/-lb", id="a name that begins with a hyphen"),
        pytest.param("example.org/lb.", id="a name that ends with a dot"),
        pytest.param("a" * 64, id="a name that is too long"),
        pytest.param(f"{'a' * 254}/b", id="a domain that is too long"),
        pytest.param("a b", id="a blank inside"),
        pytest.param("a,b", id="two with a comma"),
        pytest.param('a"] + ["b', id="an expression"),
        pytest.param("a\\u0022", id="an escape"),
        pytest.param("a'b", id="a quotation mark"),
        pytest.param("lb\u00e9", id="a letter with an accent"),
        pytest.param("\uff21b", id="a full-width letter"),
        pytest.param("lb\U0001f600", id="beyond the basic plane"),
        pytest.param("lb\ud83d", id="a lone surrogate"),
        pytest.param("\u0661", id="a digit of another script"),
        pytest.param("\0", id="a null"),
    ],
)
def test_another_text_is_refused_before_it_reaches_an_expression(text: str) -> None:
    with pytest.raises(ValueError, match="is not a loadBalancerClass") as refusal:
        parse_load_balancer_class(text)
    assert str(refusal.value).isascii()
