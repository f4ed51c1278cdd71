"""The image in a chart's values."""

from __future__ import annotations

import pytest
import yaml

from release.values import BadValues, set_images

DIGEST = f"sha256:{'a' * 64}"
TEXT = """\
# Values of the chart.
replicas: 2
image:  # where the pods' image is
  # REGISTRY/NAME
  repository: localhost/switchback   # yours

  tag: ""
    # The digest wins over the tag.
  digest: ""
  pullPolicy: IfNotPresent
nftablesImage:
  repository: localhost/switchback-nftables
  digest: ""
# The relay.
relay:
  repository: stays
  digest: stays
"""


def set_image(text: str, *, repository: str, digest: str) -> str:
    return set_images(text, {"image": (repository, digest)})


def test_each_image_has_its_block() -> None:
    images = {"image": ("r.example.org/s", DIGEST), "nftablesImage": ("r.example.org/n", DIGEST.replace("a", "b"))}
    values = yaml.safe_load(set_images(TEXT, images))
    for name, (repository, digest) in images.items():
        assert {key: values[name][key] for key in ("repository", "digest")} == {
            "repository": repository,
            "digest": digest,
        }
    with pytest.raises(BadValues, match="no block `missing:`"):
        set_images(TEXT, {**images, "missing": ("a", "b")})


def test_two_values_change_and_every_comment_stays() -> None:
    edited = set_image(TEXT, repository="registry.example.org/switchback", digest=DIGEST)
    expected = TEXT.replace("localhost/switchback ", '"registry.example.org/switchback" ')
    expected = expected.replace('digest: ""', f'digest: "{DIGEST}"', 1)
    assert edited == expected


def test_setting_the_same_again_changes_nothing() -> None:
    once = set_image(TEXT, repository="registry.example.org/switchback", digest=DIGEST)
    assert set_image(once, repository="registry.example.org/switchback", digest=DIGEST) == once


@pytest.mark.parametrize(
    "image",
    [
        "image:\n  repository:\n  digest:\n",
        "image:\n  repository: ''\n  digest: ''",
        "image:\n    digest: old\n    repository: 'a b' # c\n",
        "a: 1\nimage:\n  repository: x\n  digest: y\nb: 2\n",
    ],
    ids=["no value", "no newline at the end", "other order", "in the middle"],
)
def test_other_ways_of_writing_are_understood(image: str) -> None:
    edited = set_image(image, repository="r.example.org/s", digest=DIGEST)
    assert yaml.safe_load(edited)["image"] == {"repository": "r.example.org/s", "digest": DIGEST}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "replicas: 2\n",
        "image: localhost/switchback\n",
        "image: {repository: a, digest: b}\n",
        "image:\n  repository: a\n",
        "image:\n  digest: a\n",
        "# image:\n#  repository: a\n#  digest: b\n",
        "other:\n  image:\n    repository: a\n    digest: b\n",
        "image:\n  nested:\n    repository: a\n    digest: b\n",
        "image:\n  repository: >-\n    a\n  digest: b\n",
        "image:\n  repository: &a x\n  digest: y\nother: *a\n",
        "image:\n  repository: a\n  digest: b\n bad\n",
        "image:\n  repository: a\n  digest: b\n---\nimage: c\n",
    ],
)
def test_values_of_another_shape_are_refused(text: str) -> None:
    with pytest.raises(BadValues, match=r"values\.yaml"):
        set_image(text, repository="r.example.org/s", digest=DIGEST)
