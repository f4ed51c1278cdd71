"""Label selectors against a real kube-apiserver: what it accepts, and which objects it returns."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import pytest

from sidecar.kubernetes.selector import BadSelector, format_selector, parse_selector
from tests.kit.apiserver import ApiServer, send

pytestmark = pytest.mark.peer("etcd", "kube-apiserver")

OBJECTS: Final[Mapping[str, Mapping[str, str]]] = {
    "none": {},
    "web": {"team": "web"},
    "api": {"team": "api", "tier": "1"},
    "empty": {"team": "", "tier": "2"},
    "in": {"in": "notin", "notin": "in"},
    "prefixed": {"example.org/team": "web", "tier": "a.B_c-9"},
    "long": {"x" * 63: "9" * 63},
    "all": {"team": "web", "tier": "1", "in": "web", "example.org/team": ""},
}

ACCEPTED: Final = (
    "",
    " \t\r\n",
    "team",
    "!team",
    "! team ",
    "team=web",
    "team==web",
    "team = web",
    "team!=web",
    "team=",
    "team=,tier",
    "team!=",
    "team in (web)",
    "team in(web,api)",
    "team in ( web , api )",
    "team in (,web)",
    "team in (web,)",
    "team in (,)",
    "team in (web,,api)",
    "team notin (web,api)",
    "team notin (,)",
    "team in ()",
    "team notin ()",
    "team,tier",
    "team,!tier",
    "team in (web,api),tier=1",
    "team=web,team=api",
    "in",
    "!in",
    "in in (web)",
    "in=notin",
    "notin notin (in)",
    "notin=in",
    "example.org/team",
    "example.org/team=",
    "tier=a.B_c-9",
    f"{'x' * 63}={'9' * 63}",
)

REFUSED: Final = (
    "=",
    "=a",
    "!",
    "!!a",
    "!a=b",
    "a!b",
    ",",
    "a,",
    ",a",
    "a,,b",
    "a b",
    "a=b c",
    "a=b=c",
    "a===b",
    "a=!b",
    "a=(b)",
    "a in",
    "a in b",
    "a in (",
    "a in (b",
    "a in (b c)",
    "a in (b))",
    "a in (b) c",
    "a IN (b)",
    "(a)",
    "-a",
    "a.",
    "/a",
    "a/",
    "a/b/c",
    "a..b/c",
    "a_b/c",
    "x" * 64,
    f"{'a' * 254}/b",
    "ä",
    "a=ä",
    "a=-b",
    "a=b.",
    "a=b/c",
    f"a={'9' * 64}",
    "A.example.org/b",
)

PIECES: Final = (*"ab,=!()", "==", "!=", "in", "notin", " ", "team", "tier", "web", "1", ",", "(", ")", "=")


@dataclass(frozen=True)
class Judge:
    """The ConfigMaps of one namespace, and what the API server makes of a selector."""

    connection: http.client.HTTPSConnection
    token: str
    path: str

    def select(self, text: str) -> set[str] | None:
        """The names that the API server returns; None if it refuses the selector."""
        headers = {"authorization": f"Bearer {self.token}"}
        self.connection.request("GET", f"{self.path}?{urlencode({'labelSelector': text})}", headers=headers)
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status == http.client.BAD_REQUEST:
            return None
        assert response.status == http.client.OK, answer
        return {one["metadata"]["name"] for one in answer["items"]} & set(OBJECTS)


@pytest.fixture(scope="module")
def judge(apiserver: ApiServer) -> Iterator[Judge]:
    apiserver.create_namespace("selectors")
    path = "/api/v1/namespaces/selectors/configmaps"
    with apiserver.connection() as connection:
        for name, labels in OBJECTS.items():
            send(connection, "POST", path, {"metadata": {"name": name, "labels": labels}})
        yield Judge(connection, apiserver.token, path)


def selected(text: str) -> set[str]:
    """The names that we select."""
    selector = parse_selector(text)
    return {name for name, labels in OBJECTS.items() if selector.matches(labels)}


@pytest.mark.parametrize("text", ACCEPTED)
def test_the_api_server_returns_the_objects_that_match(judge: Judge, text: str) -> None:
    assert judge.select(text) == selected(text)
    assert judge.select(format_selector(parse_selector(text))) == selected(text)


@pytest.mark.parametrize("text", REFUSED)
def test_the_api_server_refuses_what_is_refused_at_the_start(judge: Judge, text: str) -> None:
    assert judge.select(text) is None
    with pytest.raises(BadSelector):
        parse_selector(text)


def test_random_selectors_are_judged_alike(judge: Judge) -> None:
    """But that the API server refuses a second empty value at the end of a set; the normal form has only one."""
    drawn = random.Random(26)  # noqa: S311  # the same selectors in each run
    accepted = 0
    for _ in range(1_500):
        text = "".join(drawn.choice(PIECES) for _ in range(drawn.randint(1, 9)))
        theirs = judge.select(text)
        with suppress(BadSelector):
            ours = selected(text)
            accepted += 1
            assert judge.select(format_selector(parse_selector(text))) == ours, text
            assert theirs == ours or ",," in text.replace(" ", ""), text
            continue
        assert theirs is None, text
    assert accepted > 50
