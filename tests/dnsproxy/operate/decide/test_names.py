"""Names of relay Services."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dnsproxy.operate.decide.facts import Subject
from dnsproxy.operate.decide.names import LONGEST, service_name

PART = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,80}[a-z0-9])?", fullmatch=True)
SUBJECTS = st.builds(Subject, PART, st.just("") | PART)


def test_a_class_that_is_a_label_has_a_readable_name() -> None:
    assert service_name(Subject("nginx")) == "relay-nginx"


def test_a_long_a_dotted_and_a_gateways_name_carry_a_hash() -> None:
    for subject in (Subject("a" * 60), Subject("a.b"), Subject("web", "infra")):
        assert re.search(r"-[0-9a-f]{10}$", service_name(subject))


@given(SUBJECTS)
def test_every_name_is_a_label(subject: Subject) -> None:
    name = service_name(subject)
    assert len(name) <= LONGEST
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)


@given(SUBJECTS, SUBJECTS)
def test_two_subjects_have_two_names(one: Subject, other: Subject) -> None:
    assert (service_name(one) == service_name(other)) is (one == other)
