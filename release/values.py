"""Sets the images in the text of a chart's values.yaml; every other line and all comments stay.

The law: only the lines of `repository` and `digest` in the blocks of the images change, and the edited text, read as
YAML, differs from the original in these values alone.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

_BODY: Final = r":[ \t]*(?:#.*)?\n(?P<body>(?:(?:[ \t]+.*|[ \t]*#.*|[ \t]*)\n)*)"


class BadValues(Exception):
    """The values have not the expected shape; the message names the file and what is missing."""


def set_images(text: str, images: Mapping[str, tuple[str, str]]) -> str:
    """The values with these images: repository and digest of each by the name of its block. Raises BadValues."""
    edited = text if text.endswith("\n") else f"{text}\n"
    expected = copy.deepcopy(_read(text))
    for name, (repository, digest) in images.items():
        edited = _set_image(edited, name, repository=repository, digest=digest)
        if not isinstance(expected.get(name), dict):
            raise BadValues(f"values.yaml has no mapping `{name}`")
        expected[name] |= {"repository": repository, "digest": digest}
    if _read(edited) != expected:
        raise BadValues(
            f"values.yaml: repository and digest of {', '.join(images)} must be plain values in a line each"
        )
    return edited


def _set_image(text: str, name: str, *, repository: str, digest: str) -> str:
    block = re.search(rf"^{name}{_BODY}", text, re.MULTILINE)
    if block is None:
        raise BadValues(f"values.yaml has no block `{name}:` with keys in lines of their own")
    body = block["body"]
    for key, value in (("repository", repository), ("digest", digest)):
        body = _set(body, name, key, value)
    return text[: block.start("body")] + body + text[block.end("body") :]


def _set(body: str, name: str, key: str, value: str) -> str:
    """The block with one key's value replaced, a comment behind it kept."""
    line = re.compile(
        rf"^(?P<start>[ \t]+{key}:)[ \t]*(?P<old>\"[^\"\n]*\"|'[^'\n]*'|[^#\n]*?)(?P<end>[ \t]+#.*)?$", re.MULTILINE
    )
    edited, count = line.subn(lambda found: f'{found["start"]} "{value}"{found["end"] or ""}', body, count=1)
    if not count:
        raise BadValues(f"values.yaml has no `{name}.{key}`")
    return edited


def _read(text: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadValues(f"values.yaml is not YAML: {error}") from error
    if not isinstance(found, dict):
        raise BadValues("values.yaml is not a mapping")
    return found
