"""The filter by annotations: leaves objects out before they are decoded.

The law: pure; only the annotations that the selector names are decoded, so that an object that is left out costs no
memory, and neither its type nor its other fields matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from sidecar.kubernetes.objects import ObjectMeta
from sidecar.kubernetes.selector import Selector

_PREFIX: Final = "annotation_"
"""Of the fields' names: a key may be no name of a field."""


class AnnotationFilter:
    """Compares objects, as the JSON of the API server, with a selector over annotations."""

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self._fields = {f"{_PREFIX}{number}": key for number, key in enumerate(selector.keys)}
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_type_with(self._fields))

    def left_out(self, raw: msgspec.Raw) -> ObjectMeta | None:
        """The identity of an object that the selector does not match; None if the object counts.

        Raises what decoding raises, for anything but an object.
        """
        metadata = self._decoder.decode(raw).metadata
        values = {key: getattr(metadata.annotations, field, None) for field, key in self._fields.items()}
        found = {key: value for key, value in values.items() if value is not None}
        return None if self._selector.matches(found) else metadata


def _type_with(fields: Mapping[str, str]) -> type[msgspec.Struct]:
    """An object of any kind with these annotations, by field."""
    annotations = msgspec.defstruct(
        "Annotations", [(name, str | None, msgspec.field(default=None, name=key)) for name, key in fields.items()]
    )
    metadata = msgspec.defstruct(
        "Metadata", [("annotations", annotations | None, None)], bases=(ObjectMeta,), frozen=True, rename="camel"
    )
    return msgspec.defstruct("Annotated", [("metadata", metadata)])
