"""RELEASE_NOTES.md: how to install this version, its images, and its section of the changelog.

The law: a snapshot's first line says that it is none. The text depends on its arguments alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from release.artefacts import CHECKSUMS, ZIPAPP, manifest_name
from release.changelog import UNRELEASED, sections
from release.plan import Plan

_SNAPSHOT: Final = """\
> **SNAPSHOT, NOT A RELEASE.** Built with `--snapshot` from the commit {commit}, not from a tag. Do not install it in a
> cluster in production, and do not publish it as {version}.

"""
_TEXT: Final = """\
# Switchback {version}

{snapshot}## Install

With Helm:

```sh
helm install switchback {charts}/switchback --version {version}
```

With kubectl:

```sh
kubectl apply -f {manifest}
```

On a laptop, with Python 3.11 or newer, to find out first whether the cluster needs it:

```sh
python3 {zipapp} doctor app.example.org
```

## Images

For amd64 and arm64. The manifest and the chart name them by digest.

{images}

## Check the files

```sh
sha256sum -c {checksums}
```

## Changes

{changes}
"""


def format_notes(plan: Plan, *, changelog: str, digests: Mapping[str, str]) -> str:
    """The notes; `digests` of the images by repository. A snapshot without a section has the changes of Unreleased."""
    found = sections(changelog)
    changes = found[plan.version] if plan.version in found or not plan.snapshot else found[UNRELEASED]
    return _TEXT.format(
        version=plan.version,
        snapshot=_SNAPSHOT.format(commit=plan.commit, version=plan.version) if plan.snapshot else "",
        charts=plan.image.charts,
        manifest=manifest_name(plan.version),
        zipapp=ZIPAPP,
        images="\n".join(f"- `{plan.image.beside(name)}:{plan.version}@{digest}`" for name, digest in digests.items()),
        checksums=CHECKSUMS,
        changes=changes,
    )
