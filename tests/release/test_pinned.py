"""Which manifests may be in a release."""

from __future__ import annotations

import pytest

from release.pinned import NotPinned, check_manifests

IMAGE = f"registry.example.org/switchback@sha256:{'a' * 64}"
NAMESPACE = "kind: Namespace\n---\n"


def pod(image: str, key: str = "containers") -> str:
    return f"kind: Deployment\nspec: {{template: {{spec: {{{key}: [{{name: a, image: '{image}'}}]}}}}}}\n"


def test_manifests_with_the_image_alone_are_good() -> None:
    check_manifests(NAMESPACE + pod(IMAGE) + "---\n" + pod(IMAGE, "initContainers"), image=IMAGE, namespace_first=True)
    check_manifests("---\n" + pod(IMAGE), image=IMAGE, namespace_first=False)


BAD = [
    ("a tag", NAMESPACE + pod("registry.example.org/switchback:0.1.0"), "0.1.0 is not"),
    ("another digest", NAMESPACE + pod(IMAGE.replace("a" * 64, "b" * 64)), "is not"),
    ("an init container", NAMESPACE + pod(IMAGE) + "---\n" + pod("busybox", "initContainers"), "busybox"),
    ("no image", NAMESPACE + "kind: Deployment\nspec: {template: {spec: {containers: [{name: a}]}}}\n", "None"),
    ("no pods", NAMESPACE, "no object has an image"),
    ("nothing", "", "no object has an image"),
    ("namespace last", pod(IMAGE) + "---\nkind: Namespace\n", "Namespace first"),
]


@pytest.mark.parametrize(("text", "word"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_others_are_not(text: str, word: str) -> None:
    with pytest.raises(NotPinned, match=word):
        check_manifests(text, image=IMAGE, namespace_first=True)
