"""A bill of materials, judged by the schema of CycloneDX 1.6."""

from __future__ import annotations

import json

import pytest

from release.sbom.bom import Package, format_bom

PARTS = (
    Package("pypi", "a", "1", needs=("b",), licence="MIT"),
    Package("pypi", "b", "2", licence="MIT OR Apache-2.0"),
    Package("pypi", "c", "3", licence="BSD like", files=("app/c.dist-info/METADATA",)),
    Package("deb", "a", "1+b1", namespace="debian", qualifiers=(("arch", "amd64"), ("distro", "debian-13"))),
)
WHEEL = Package("pypi", "switchback-dns", "0.1.0", needs=("a", "c"), licence="Apache-2.0")
IMAGE = Package("oci", "switchback", f"sha256:{'a' * 64}", qualifiers=(("arch", "amd64"),))


def document(described: Package, *, digest: str = "a" * 64, parts: tuple[Package, ...] = PARTS) -> str:
    return format_bom(described, digest=digest, packages=parts, time=1_700_000_000)


def dependencies(described: Package) -> dict[str, list[str]]:
    listed = json.loads(document(described))["dependencies"]
    return {one["ref"]: one.get("dependsOn", []) for one in listed}


def is_valid(text: str) -> bool:
    """Whether the schema accepts a document."""
    # Imported by the test that needs it: it builds grammars for seconds, and each worker imports each test.
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    return JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


@pytest.mark.parametrize("described", [WHEEL, IMAGE], ids=["wheel", "image"])
def test_the_schema_accepts_it(described: Package) -> None:
    assert is_valid(document(described))


def test_the_schema_is_asked() -> None:
    """The judge itself."""
    assert not is_valid(document(WHEEL).replace('"type": "library"', '"type": "libary"'))


def test_equal_arguments_give_equal_octets_in_any_order() -> None:
    assert document(WHEEL) == document(WHEEL, parts=PARTS[::-1]) == document(WHEEL, parts=(*PARTS, *PARTS))


def test_the_serial_number_follows_from_the_digest() -> None:
    first, other = (json.loads(document(WHEEL, digest=digit * 64))["serialNumber"] for digit in "ab")
    assert first.startswith("urn:uuid:")
    assert first != other


def test_the_time_is_the_commits() -> None:
    assert json.loads(document(WHEEL))["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"


def test_a_wheel_needs_what_it_names_and_these_need_theirs() -> None:
    found = dependencies(WHEEL)
    assert found["pkg:pypi/switchback-dns@0.1.0"] == ["pkg:pypi/a@1", "pkg:pypi/c@3"]
    assert found["pkg:pypi/a@1"] == ["pkg:pypi/b@2"]
    assert found["pkg:pypi/b@2"] == []


def test_an_image_consists_of_all() -> None:
    (root,) = [needs for ref, needs in dependencies(IMAGE).items() if ref.startswith("pkg:oci/")]
    assert len(root) == len(PARTS)
