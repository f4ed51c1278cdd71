"""YAML and JSON for people to hand on: keys in the order given, texts of several lines as they read.

The law: what is read back is what was meant, character by character. Pure.
"""

from __future__ import annotations

import json
from typing import Any

import yaml


class _Dumper(yaml.SafeDumper):
    """Texts with line ends become literal blocks, where YAML can hold them so."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def format_yaml(value: Any) -> str:
    """Block style, no line folded."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=2**31, allow_unicode=True)


def format_json(value: Any) -> str:
    """Two blanks a level, and a line end."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
