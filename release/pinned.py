"""Checks that manifests name the project's image by its digest and nothing else.

The law: it judges the text that is shipped, so that no way of building it can forget an image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml


class NotPinned(Exception):
    """A text of manifests is not fit for a release; the message says what is wrong in it."""


def check_manifests(text: str, *, image: str, namespace_first: bool) -> None:
    """Raises NotPinned unless every image in these documents is `image`, with its digest, and at least one is there."""
    documents = [one for one in yaml.safe_load_all(text) if one is not None]
    images = [name for one in documents for name in images_in(one)]
    if not images:
        raise NotPinned("no object has an image")
    others = sorted({name for name in images if name != image})
    if others:
        raise NotPinned(f"the image {others[0]} is not {image}")
    if namespace_first and documents[0].get("kind") != "Namespace":
        raise NotPinned(f"the first object is a {documents[0].get('kind')}, and kubectl needs the Namespace first")


def images_in(document: Any) -> Iterator[str]:
    """The image of each container in an object, wherever its pods are."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in ("containers", "initContainers") and isinstance(value, list):
                yield from (str(one.get("image")) for one in value)
            else:
                yield from images_in(value)
    elif isinstance(document, list):
        for one in document:
            yield from images_in(one)
