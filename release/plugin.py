"""The plugin of kubectl: an archive for krew-like indexes, and the manifest that such an index has of it.

The law: pure. The archive holds the zipapp under the name that kubectl looks for, and the licence, which krew demands;
equal input gives equal octets. https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
"""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import Any, Final

import yaml

from release.artefacts import ARCHITECTURES
from release.zipapp import PYTHONS

NAME: Final = "switchback"
EXECUTABLE: Final = f"kubectl-{NAME}"
_API: Final = "krew.googlecontainertools.github.com/v1alpha2"
_SHORT: Final = "Find out why pods cannot reach a public hostname"
_DESCRIPTION: Final = """\
In a cluster whose load balancer speaks the PROXY protocol, pods cannot reach
the cluster's own public hostnames. `kubectl switchback doctor HOST` finds out
why, and prints the remedy; it only reads. The other commands show and change
what Switchback does in the cluster.
"""
_CAVEATS: Final = f"""\
Needs Python {PYTHONS[0]} to {PYTHONS[-1]} as python3, and glibc. The first run
unpacks it into ~/.shiv. kubectl completes its words by a link in the PATH:
  ln -s "$(command -v {EXECUTABLE})" ~/.local/bin/kubectl_complete-{NAME}
"""
"""krew shows them after each installation, and links one program only."""


def pack_plugin(zipapp: bytes, licence: bytes, *, epoch: int) -> bytes:
    """The archive, a .tar.gz; `epoch` is the time of its files in seconds."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content, mode in (("LICENSE", licence, 0o644), (EXECUTABLE, zipapp, 0o755)):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), mode, epoch
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def format_plugin(version: str, *, uri: str, sha256: str) -> str:
    """The manifest of one version, whose archive is at `uri` and has this SHA-256 in hexadecimal digits."""
    document: dict[str, Any] = {
        "apiVersion": _API,
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{version}",
            "homepage": uri.partition("/releases/")[0],
            "shortDescription": _SHORT,
            "description": _DESCRIPTION,
            "caveats": _CAVEATS,
            "platforms": [_platform(one, uri, sha256) for one in ARCHITECTURES],
        },
    }
    return yaml.safe_dump(document, sort_keys=False, default_style=None, width=120)


def _platform(architecture: str, uri: str, sha256: str) -> dict[str, Any]:
    labels = {"os": "linux", "arch": architecture}
    return {"selector": {"matchLabels": labels}, "uri": uri, "sha256": sha256, "bin": EXECUTABLE}
