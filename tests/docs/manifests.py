"""The manifests that a page of the guide shows."""

from __future__ import annotations

from typing import Any

import yaml

from docs.build import HERE
from docs.fences import find_fences


def manifests_of(page: str) -> list[dict[str, Any]]:
    """All of them, in their order."""
    text = (HERE / "pages" / f"{page}.md").read_text(encoding="utf-8")
    return [yaml.safe_load(fence.body) for fence in find_fences(text) if fence.language == "yaml"]
