"""A release that is built: each kind, twice, and what happens without what it needs.

Through the command: build.py, chart.py, manifest.py, repository.py and wheel.py. Here an archive of a few files stands
for the images. The real ones: test_release_of_images.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml

from release.artefacts import CHECKSUMS, REPOSITORIES, image_name, wheel_name
from release.pinned import images_in
from release.repository import write_image_name
from sidecar.values.errors import StartError
from tests.kit.oci_registry import registry
from tests.kit.programs import program
from tests.release.archives import usual, write_archive
from tests.release.clones import IMAGE, VERSION, make_clone, release
from tests.release.sbom.test_bom import is_valid

PARTS = "wheel,zipapp,manifest,chart,notes"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clone(tmp_path_factory.mktemp("clone") / "repository")


@pytest.fixture(scope="module")
def dist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything but images, built once."""
    folder = with_images(tmp_path_factory.mktemp("first") / "dist")
    done = release(clone, folder, "--image", IMAGE, "--only", PARTS)
    assert done.returncode == 0, done.stderr
    return folder


def with_images(folder: Path) -> Path:
    """A folder with archives of small images."""
    work = folder.parent / "images"
    work.mkdir()
    folder.mkdir()
    for repository in REPOSITORIES:
        archive = work / image_name(repository, VERSION)
        # Two images of one digest would hide that one stands for the other.
        write_archive(archive, {one: [*layers, {"name": repository}] for one, layers in usual().items()})
        archive.rename(folder / archive.name)
    return folder


def digest_in(dist: Path, repository: str = "switchback") -> str:
    archive = dist / image_name(repository, VERSION)
    index = json.loads(subprocess.check_output(["tar", "-xOf", archive, "index.json"]))
    return str(index["manifests"][0]["digest"])


peers = pytest.mark.peer("kubectl", "helm")


@peers
@pytest.mark.timeout(600)
def test_a_second_run_gives_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    """In another folder, with another umask, another time zone and another clock: nothing of them is in a file."""
    clone = make_clone(tmp_path / "other" / "place")
    second = with_images(tmp_path / "dist")
    script = 'umask 077; exec "$@"'
    done = release(
        clone,
        second,
        *("--image", IMAGE, "--only", PARTS),
        env={"TZ": "Pacific/Chatham", "LANG": "C", "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1"},
        inside=["bash", "-c", script, "bash"],
    )
    assert done.returncode == 0, done.stderr
    assert (second / CHECKSUMS).read_text() == (dist / CHECKSUMS).read_text()


@peers
def test_the_doctor_of_the_release_knows_its_image(dist: Path) -> None:
    with zipfile.ZipFile(dist / wheel_name(VERSION)) as wheel:
        module = wheel.read("dnsproxy/doctor/judge/installation.py").decode()
    assert f'BUILT_FOR: Final = "{IMAGE}:{VERSION}"' in module.splitlines()


def test_sources_without_a_place_for_the_image_are_an_error(tmp_path: Path) -> None:
    file = tmp_path / "dnsproxy" / "doctor" / "judge" / "installation.py"
    file.parent.mkdir(parents=True)
    file.write_text('BUILT_FOR: Final = "other"\n')
    with pytest.raises(StartError, match=r"judge/installation.py has no line for the image"):
        write_image_name(tmp_path, image=IMAGE, version=VERSION)


@peers
def test_coreutils_checks_all_files(dist: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", CHECKSUMS], cwd=dist, check=True, capture_output=True, text=True
    )
    named = {line.partition(":")[0] for line in done.stdout.splitlines()}
    assert named | {CHECKSUMS} == {one.name for one in dist.iterdir()}


@peers
def test_the_manifest_is_that_of_kustomize_with_the_image_by_digest(clone: Path, dist: Path) -> None:
    built = (dist / f"switchback-{VERSION}.yaml").read_text()
    plain = subprocess.check_output([program("kubectl"), "kustomize", clone / "deploy"], text=True)
    pinned = plain.replace(f"localhost/switchback:{VERSION}", f"{IMAGE}@{digest_in(dist)}")
    assert pinned != plain
    assert list(yaml.safe_load_all(built)) == list(yaml.safe_load_all(pinned))
    assert next(yaml.safe_load_all(built))["kind"] == "Namespace"


@peers
def test_the_chart_has_version_and_digests_and_keeps_its_comments(clone: Path, dist: Path, tmp_path: Path) -> None:
    archive = dist / f"switchback-{VERSION}.tgz"
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    text = (tmp_path / "switchback" / "values.yaml").read_text()
    before = (clone / "deploy" / "chart" / "values.yaml").read_text()
    assert [line for line in text.splitlines() if "#" in line] == [line for line in before.splitlines() if "#" in line]
    values = yaml.safe_load(text)
    names = {"image": ("switchback", IMAGE), "nftablesImage": ("switchback-nftables", f"{IMAGE}-nftables")}
    for block, (repository, name) in names.items():
        assert (values[block]["repository"], values[block]["digest"]) == (name, digest_in(dist, repository))
    page = (tmp_path / "switchback" / "README.md").read_text()
    assert f"helm install switchback oci://registry.example.org/charts/switchback --version {VERSION}\n" in page
    assert "deploy/chart" not in page
    chart = yaml.safe_load((tmp_path / "switchback" / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


@peers
@pytest.mark.parametrize("component", ["operate", "wholeip"])
def test_the_chart_installs_the_images_by_digest(dist: Path, component: str) -> None:
    archive = dist / f"switchback-{VERSION}.tgz"
    words = ["template", "x", str(archive), "--namespace", "switchback", "--set", f"components.{component}=true"]
    objects = subprocess.check_output([program("helm"), *words], text=True)
    names = {name for one in yaml.safe_load_all(objects) for name in images_in(one)}
    digests = {name: digest_in(dist, name) for name in REPOSITORIES}
    expected = {f"{IMAGE}@{digests['switchback']}"}
    if component == "wholeip":
        expected.add(f"{IMAGE}-nftables@{digests['switchback-nftables']}")
    assert names == expected


@peers
def test_the_bill_of_the_wheel_has_its_digest_and_the_locked_versions(dist: Path) -> None:
    text = (dist / f"switchback-{VERSION}-wheel.cdx.json").read_text()
    assert is_valid(text)
    document = json.loads(text)
    wheel = dist / f"switchback_dns-{VERSION}-py3-none-any.whl"
    assert document["metadata"]["component"]["hashes"] == [
        {"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    ]
    assert {"trio", "msgspec"} <= {one["name"] for one in document["components"]}


@peers
def test_the_notes_name_the_digests(dist: Path) -> None:
    assert f"`{IMAGE}:{VERSION}@{digest_in(dist)}`" in (dist / "RELEASE_NOTES.md").read_text()


@peers
def test_nothing_but_complete_files_is_left(dist: Path) -> None:
    assert not [one for one in dist.iterdir() if one.name.startswith(".")]


def test_what_names_an_image_is_not_built_without_it(clone: Path, tmp_path: Path) -> None:
    done = release(clone, tmp_path / "dist", "--image", IMAGE, "--only", "notes")
    assert (done.returncode, done.stdout) == (3, "")
    assert "switchback-0.1.0-image.oci.tar is missing" in done.stderr
    assert list((tmp_path / "dist").iterdir()) == []


def test_a_damaged_archive_is_named(clone: Path, tmp_path: Path) -> None:
    folder = with_images(tmp_path / "dist")
    (folder / image_name("switchback", VERSION)).write_bytes(b"no tar")
    done = release(clone, folder, "--image", IMAGE, "--only", "notes")
    assert (done.returncode, done.stdout) == (3, "")
    assert "switchback-0.1.0-image.oci.tar is not an OCI archive" in done.stderr


def test_a_readme_that_cannot_be_one_of_a_release_is_an_error(tmp_path: Path) -> None:
    clone = make_clone(tmp_path / "repository", more={"README.md": "# Switchback\n"})
    done = release(clone, with_images(tmp_path / "dist"), "--image", IMAGE, "--only", "notes")
    assert (done.returncode, done.stdout) == (3, "")
    assert "README.md has 0 sections `## Install`" in done.stderr


def test_a_run_that_fails_leaves_no_checksums(clone: Path, tmp_path: Path) -> None:
    folder = with_images(tmp_path / "dist")
    assert release(clone, folder, "--image", IMAGE, "--only", "notes").returncode == 0
    assert (folder / CHECKSUMS).exists()
    done = release(clone, folder, "--image", IMAGE, "--only", "notes,images", "--buildah", "/nowhere/buildah")
    assert done.returncode == 3
    assert "/nowhere/buildah" in done.stderr
    assert not (folder / CHECKSUMS).exists()


CHARTS = {
    "no digest in the values": ({"deploy/chart/values.yaml": "image:\n  repository: a\n"}, "`image.digest`"),
    "a fixed image": (
        {"deploy/chart/templates/b.yaml": "kind: Pod\nspec: {containers: [{name: b, image: 'busybox:1'}]}\n"},
        "busybox:1 is not",
    ),
    "another name": (
        {"deploy/chart/Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\nappVersion: 1.0.0\n"},
        "not switchback",
    ),
    "an error in a template": ({"deploy/chart/templates/b.yaml": "{{ nothing }}"}, "nothing"),
}


@peers
@pytest.mark.parametrize(("files", "message"), CHARTS.values(), ids=CHARTS)
def test_a_chart_that_is_not_fit_is_an_error(tmp_path: Path, files: dict[str, str], message: str) -> None:
    clone = make_clone(tmp_path / "repository", more=files)
    done = release(clone, with_images(tmp_path / "dist"), "--image", IMAGE, "--only", "chart")
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr


@peers
def test_a_manifest_with_another_image_is_an_error(tmp_path: Path) -> None:
    more = {
        "deploy/kustomization.yaml": "resources: [base, other.yaml]\n",
        "deploy/other.yaml": """\
apiVersion: v1
kind: Pod
metadata: {name: b}
spec: {containers: [{name: b, image: 'busybox:1'}]}
""",
    }
    clone = make_clone(tmp_path / "repository", more=more)
    done = release(clone, with_images(tmp_path / "dist"), "--image", IMAGE, "--only", "manifest")
    assert (done.returncode, done.stdout) == (3, "")
    assert "busybox:1 is not" in done.stderr


@pytest.mark.peer("helm", "docker-registry")
def test_the_chart_is_installed_from_the_registry_that_it_was_pushed_to(clone: Path, tmp_path: Path) -> None:
    """With the command that the release prints, and the line of its notes."""
    with registry(tmp_path) as port:
        image = f"127.0.0.1:{port}/team/switchback"
        folder = with_images(tmp_path / "dist")
        done = release(clone, folder, "--image", image, "--only", "chart,notes", "--output", "json")
        assert done.returncode == 0, done.stderr
        (push,) = json.loads(done.stdout)["push"]
        helm, *words = push["command"]
        assert (helm, push["where"]) == ("helm", f"oci://127.0.0.1:{port}/team/charts")
        env = {**os.environ, "HELM_CACHE_HOME": str(tmp_path), "HELM_CONFIG_HOME": str(tmp_path)}
        subprocess.run([program("helm"), *words, "--plain-http"], check=True, capture_output=True, env=env)
        lines = (folder / "RELEASE_NOTES.md").read_text().splitlines()
        (line,) = [one for one in lines if one.startswith("helm install ")]
        template = [program("helm"), "template", *line.split()[2:], "--plain-http"]
        objects = subprocess.check_output(template, text=True, env=env)
    names = {name for one in yaml.safe_load_all(objects) for name in images_in(one)}
    assert names == {f"{image}@{digest_in(folder)}"}
