"""A bill of materials as CycloneDX 1.6 JSON.

The law: equal arguments give equal octets: the serial number follows from the digest of what is described, and the time
is the commit's. A component is known by its package URL.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/switchback")


@dataclass(frozen=True)
class Package:
    """One component."""

    kind: str
    """The type of the package URL: pypi, deb, generic, oci."""
    name: str
    version: str
    needs: tuple[str, ...] = ()
    """The names of packages of the same kind."""
    licence: str | None = None
    """An SPDX identifier or expression, or the text of the package's own field."""
    namespace: str | None = None
    """Such as debian."""
    qualifiers: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = field(default=(), compare=False)
    """Where it was found in an image."""

    @property
    def purl(self) -> PackageURL:
        """The package URL."""
        return PackageURL(self.kind, self.namespace, self.name, self.version, dict(self.qualifiers) or None)


def format_bom(described: Package, *, digest: str, packages: Iterable[Package], time: int) -> str:
    """The document. `described` without needs consists of all packages.

    Args:
        described: what the document is about.
        digest: its SHA-256, hexadecimal.
        packages: what it consists of, or needs, without `described`; all that another of the same kind needs is there.
        time: in seconds, of the document.
    """
    parts = {str(one.purl): one for one in packages}
    components = {purl: _component(one) for purl, one in sorted(parts.items())}
    root = _component(described, digest=digest)
    bom = Bom(
        components=components.values(),
        serial_number=uuid.uuid5(_NAMESPACE, digest),
        metadata=BomMetaData(component=root, timestamp=datetime.fromtimestamp(time, UTC)),
    )
    named = {(one.kind, one.name): components[purl] for purl, one in parts.items()}
    direct = [named[described.kind, name] for name in described.needs] or list(components.values())
    bom.register_dependency(root, direct)
    for purl, one in parts.items():
        bom.register_dependency(components[purl], [named[one.kind, name] for name in one.needs])
    return f"{JsonV1Dot6(bom).output_as_string(indent=2)}\n"


def _component(one: Package, *, digest: str | None = None) -> Component:
    return Component(
        name=one.name,
        version=one.version,
        type=ComponentType.CONTAINER if one.kind == "oci" else ComponentType.LIBRARY,
        bom_ref=str(one.purl),
        purl=one.purl,
        licenses=[LicenseFactory().make_from_string(one.licence)] if one.licence else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else None,
        properties=[Property(name="switchback:file", value=file) for file in one.files],
    )
