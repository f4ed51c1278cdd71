"""RELEASE_NOTES.md and README.md: how to install this version from where it is published, and what it is.

The law: a snapshot's first line says that it is none. The text depends on its arguments alone. The README is that of
the commit with another section Install, and with links to the forge in place of paths, which no reader of `dist` has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from release.artefacts import CHECKSUMS, ZIPAPP, manifest_name
from release.changelog import UNRELEASED, sections
from release.plan import Plan

_SNAPSHOT: Final = """\
> **SNAPSHOT, NOT A RELEASE.** Built with `--snapshot` from the commit {commit}, not from a tag. Do not install it in a
> cluster in production, and do not publish it as {version}.

"""
_INSTALL: Final = """\
## Install

With Helm:

```sh
helm install switchback {charts}/switchback --version {version}
kubectl -n switchback rollout status deployment/operate
helm test switchback
```

With kubectl instead:

```sh
kubectl apply -f {manifest}
```

On a laptop, with Python 3.11 or newer, to find out first whether the cluster needs it:

```sh
python3 {zipapp} doctor app.example.org
```
"""
_NOTES: Final = """\
# Switchback {version}

{snapshot}{install}
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


_SECTION: Final = re.compile(r"^## Install\n.*?(?=^## )", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\((?!https?:|#)(?P<path>[^)\s]+)\)")


def format_notes(plan: Plan, *, changelog: str, digests: Mapping[str, str]) -> str:
    """The notes; `digests` of the images by repository. A snapshot without a section has the changes of Unreleased."""
    found = sections(changelog)
    changes = found[plan.version] if plan.version in found or not plan.snapshot else found[UNRELEASED]
    return _NOTES.format(
        version=plan.version,
        snapshot=_snapshot(plan),
        install=_install(plan),
        images="\n".join(f"- `{plan.image.beside(name)}:{plan.version}@{digest}`" for name, digest in digests.items()),
        checksums=CHECKSUMS,
        changes=changes,
    )


def format_readme(plan: Plan, readme: str) -> str:
    """The commit's README for the readers of this release. Raises ValueError if it has no section Install."""
    section = _snapshot(plan) + _install(plan) + "\n"
    text, count = _SECTION.subn(lambda _: section, readme)
    if count != 1:
        raise ValueError(f"README.md has {count} sections `## Install` before another section, and needs one")
    pages = f"{plan.homepage}/blob/v{plan.version}"
    return _LINK.sub(lambda link: f"]({pages}/{link['path']})", text)


def _snapshot(plan: Plan) -> str:
    return _SNAPSHOT.format(commit=plan.commit, version=plan.version) if plan.snapshot else ""


def _install(plan: Plan) -> str:
    return _INSTALL.format(
        version=plan.version, charts=plan.image.charts, manifest=manifest_name(plan.version), zipapp=ZIPAPP
    )
