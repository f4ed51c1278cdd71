"""Builds switchback-VERSION.yaml: all objects of `deploy/` in one file, with the image by digest.

The law: the objects are those of `kubectl kustomize deploy`; only the image is another.
"""

from __future__ import annotations

from pathlib import Path

from release.commands import failed, peer_program, run
from release.image_name import ImageName
from release.pinned import NotPinned, check_manifests

_OVERLAY = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../deploy]
images:
  - name: localhost/switchback
    newName: {image}
    digest: {digest}
"""


def build_manifest(source: Path, target: Path, *, version: str, image: ImageName, digest: str) -> None:
    """Write the file. Raises StartError."""
    overlay = source / "release-overlay"
    overlay.mkdir()
    text = _OVERLAY.format(image=image, digest=digest)
    (overlay / "kustomization.yaml").write_text(text, encoding="utf-8")
    objects = run(peer_program("kubectl"), "kustomize", str(overlay))
    try:
        check_manifests(objects, image=f"{image}@{digest}", namespace_first=True)
    except NotPinned as error:
        raise failed(f"{target.name}: {error}") from error
    head = f"# Switchback {version}: kubectl apply -f {target.name}\n"
    target.write_text(head + objects, encoding="utf-8")
