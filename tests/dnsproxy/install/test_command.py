"""The command lines of `dnsproxy install` and `uninstall`, and both on files.

file_command.py and watch_options.py are tested here too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dnsproxy.install.command import install, uninstall
from sidecar.cli.usage import Group
from tests.dnsproxy.corefile.shapes import stock

group = Group("dnsproxy", context_settings={"auto_envvar_prefix": "DNSPROXY"})
group.add_command(install)
group.add_command(uninstall)

ADDRESS = ["--address", "10.96.0.53"]


def run(*arguments: str, stdin: bytes | str | None = None, env: Mapping[str, str] | None = None) -> Result:
    return CliRunner().invoke(group, arguments, input=stdin, env=env)


@pytest.fixture
def corefile(tmp_path: Path) -> Path:
    path = tmp_path / "Corefile"
    path.write_bytes(stock("crlf").encode())
    return path


def test_the_result_goes_to_stdout_and_the_file_stays(corefile: Path) -> None:
    before = corefile.read_bytes()
    result = run("install", "--file", str(corefile), *ADDRESS)
    assert result.exit_code == 0
    assert b"\tforward . 10.96.0.53 /etc/resolv.conf 192.0.2.53 {\r\n" in result.stdout_bytes
    assert "Note: " in result.stderr
    assert corefile.read_bytes() == before


def test_a_round_trip_through_pipes_gives_the_same_octets(corefile: Path) -> None:
    octets = b"# \xff\xfe\r\n" + corefile.read_bytes()
    there = run("install", "--file", "-", *ADDRESS, stdin=octets)
    back = run("uninstall", "--file", "-", stdin=there.stdout_bytes)
    assert there.stdout_bytes != octets
    assert (back.exit_code, back.stdout_bytes) == (0, octets)


def test_in_place_writes_the_file_and_prints_nothing(corefile: Path) -> None:
    before = corefile.read_bytes()
    result = run("install", "--file", str(corefile), "--in-place", *ADDRESS)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"Wrote {corefile}" in result.stderr
    assert b"switchback" in corefile.read_bytes()
    assert run("uninstall", "--file", str(corefile), "--in-place").exit_code == 0
    assert corefile.read_bytes() == before


def test_doing_nothing_says_unchanged_and_writes_nothing(corefile: Path) -> None:
    before = corefile.stat()
    result = run("uninstall", "--file", str(corefile), "--in-place")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{corefile} unchanged\n"
    assert corefile.stat().st_ino == before.st_ino
    assert run("uninstall", "--file", str(corefile)).stdout_bytes == corefile.read_bytes()


def test_a_dry_run_prints_a_diff_that_patch_takes(corefile: Path) -> None:
    wanted = run("install", "--file", str(corefile), *ADDRESS).stdout_bytes
    result = run("install", "--file", str(corefile), "--dry-run", "--in-place", *ADDRESS)
    assert result.exit_code == 0
    assert b"switchback" not in corefile.read_bytes()
    assert result.stdout_bytes.count(b"\n+") == wanted.count(b"\n") - corefile.read_bytes().count(b"\n") + 1
    if git := shutil.which("git"):
        command = [git, "apply", "-p", str(len(corefile.parts) - 1), "-"]
        subprocess.run(command, input=result.stdout_bytes, cwd=corefile.parent, check=True)
        assert corefile.read_bytes() == wanted


def test_every_flag_has_its_variable(corefile: Path) -> None:
    env = {
        "DNSPROXY_FILE": str(corefile),
        "DNSPROXY_ADDRESS": "192.0.2.1 [2001:db8::1]:1053",
        "DNSPROXY_ZONE": "example.org Example.NET.",
        "DNSPROXY_COREDNS_VERSION": "v1.14.7",
    }
    result = run("install", env=env)
    assert result.exit_code == 0
    assert "forward example.org 192.0.2.1 [2001:db8::1]:1053 /etc/resolv.conf" in result.stdout
    assert "forward example.net 192.0.2.1" in result.stdout
    assert "failover SERVFAIL REFUSED" in result.stdout
    assert run("install", env={**env, "DNSPROXY_ZONE": ""}).stdout.count("forward . 192.0.2.1") == 1


TOGETHER = [
    pytest.param(["--in-place"], "--in-place: is for --file only", id="in-place without a file"),
    pytest.param(["--coredns-version", "1.12.0"], "--coredns-version: is for --file only", id="a version without one"),
    pytest.param(
        ["--file", "-", *ADDRESS, "--method", "import"], "--method: is for clusters", id="a method for a file"
    ),
    pytest.param(["--file", "-", *ADDRESS, "--dns", "192.0.2.1"], "--dns: is for clusters", id="a server for a file"),
    pytest.param(["--file", "-", *ADDRESS, "--output", "json"], "--output: is for clusters", id="JSON for a file"),
    pytest.param(["--file", "-", *ADDRESS, "--watch"], "--watch: is for clusters", id="watching a file"),
    pytest.param(
        ["--file", "-", *ADDRESS, "--admin", "off"], "--admin: is for clusters", id="an admin port for a file"
    ),
    pytest.param(["--admin", "127.0.0.1:0"], "--admin: is for --watch only", id="an admin port for one run"),
    pytest.param(["--log-level", "debug"], "--log-level: is for --watch only", id="a log of one run"),
    pytest.param(["--watch", "--dry-run"], "--dry-run and --watch: ", id="a dry run that goes on"),
    pytest.param(["--watch", "--method", "print"], "--method print and --watch: ", id="print and watch"),
    pytest.param(["--watch", "--output", "json"], "--output and --watch: ", id="a document without an end"),
]


@pytest.mark.parametrize(("arguments", "message"), TOGETHER)
def test_what_makes_no_sense_together_is_bad_usage(arguments: list[str], message: str) -> None:
    result = run("install", *arguments, stdin=stock("kubeadm"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {message}")


def test_all_bad_values_are_reported_together(tmp_path: Path) -> None:
    bad = ["--address", "dns.example.org", "--address", "::", "--zone", "*.org", "--zone", "a..b"]
    result = run("install", "--file", str(tmp_path / "missing"), *bad, "--coredns-version", "latest", "--nope")
    assert (result.exit_code, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert [line.split(":")[1].strip() for line in lines if line.startswith("Error: --")] == [
        "--file",
        "--address",
        "--address",
        "--zone",
        "--zone",
        "--coredns-version",
    ]
    assert any("--nope" in line for line in lines)


BAD_VALUES = [
    pytest.param(["--address", "0.0.0.0"], "no address that CoreDNS can ask", id="the unspecified address"),
    pytest.param(["--address", "ff02::fb"], "no address that CoreDNS can ask", id="a group"),
    pytest.param(["--address", "fe80::1%eth0"], "no address that CoreDNS can ask", id="an address with a scope"),
    pytest.param(["--address", "192.0.2.1:0"], "is not a port", id="port 0"),
    pytest.param(["--address", "tls://192.0.2.1"], "", id="a scheme"),
    pytest.param(["--address", ""], "is required", id="an empty address"),
    pytest.param([], "--address: is required", id="no address"),
    pytest.param([*ADDRESS, "--zone", "192.0.2.1"], "not a hostname", id="an address for a zone"),
    pytest.param([*ADDRESS, "--zone", "a b"], "not a host label", id="a blank in a zone"),
    pytest.param([*ADDRESS, "--coredns-version", "1.14"], "not a version such as", id="half a version"),
]


def test_a_stanza_is_kept_only_beside_an_operate_that_ends() -> None:
    result = run("uninstall", "--keep-stanza")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--keep-stanza: there is nothing else to remove without --operate" in result.stderr


@pytest.mark.parametrize(("flag", "value"), [("--operate", "operate"), ("--operate", "a/b/c"), ("--operate", "A/b")])
def test_an_operate_has_a_namespace_and_a_name(flag: str, value: str) -> None:
    result = run("uninstall", flag, value)
    assert result.exit_code == 2
    assert "is not NAMESPACE/NAME" in result.stderr


def test_an_operate_is_for_clusters() -> None:
    result = run("uninstall", "--file", "-", "--operate", "switchback/operate", stdin=". {\n log\n}\n")
    assert result.exit_code == 2
    assert "--operate: is for clusters" in result.stderr


@pytest.mark.parametrize(("arguments", "message"), BAD_VALUES)
def test_a_bad_value_is_one_line_that_names_it(arguments: list[str], message: str, corefile: Path) -> None:
    arguments = [argument for argument in arguments if argument]
    result = run("install", "--file", str(corefile), *([] if arguments == ["--address"] else arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


def test_a_file_that_is_no_corefile_is_bad_usage_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "Corefile"
    path.write_text(". {\n log\n \x1b[2Jlog\n}\n")
    result = run("install", "--file", str(path), *ADDRESS)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{path}:3: " in result.stderr
    assert "\x1b" not in result.stderr


def test_a_corefile_that_must_not_be_changed_is_a_no_with_its_line() -> None:
    result = run("install", "--file", "-", *ADDRESS, stdin=". {\n grpc . 192.0.2.1\n}\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: <stdin>:1: the server block of . has no forward")
    assert run("uninstall", "--file", "-", stdin=". {\n # END switchback\n}\n").exit_code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            ".:{$DNS_PORT} {\n forward . 192.0.2.1\n}\n",
            "<stdin>:1: the key '.:{$DNS_PORT}' depends on $DNS_PORT of CoreDNS's environment",
        ),
        (
            ". {\n proxy . 192.0.2.1 192.0.2.2\n}\n",
            "<stdin>:2: the server block of . forwards with `proxy`, which CoreDNS 1.5.0 removed; replace that line by "
            "`forward . 192.0.2.1 192.0.2.2`",
        ),
    ],
    ids=["a port from the environment", "the plugin before forward"],
)
def test_a_corefile_without_a_place_is_refused_with_what_stands_in_the_way(text: str, words: str) -> None:
    result = run("install", "--file", "-", *ADDRESS, stdin=text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr


def test_a_folder_and_stdin_cannot_be_written_in_place(tmp_path: Path) -> None:
    assert "Is a directory" in run("install", "--file", str(tmp_path), *ADDRESS).stderr
    result = run("install", "--file", "-", "--in-place", *ADDRESS, stdin=stock("kubeadm"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "stdin cannot be written" in result.stderr


def test_an_address_for_rewrite_lines_is_bad_usage_because_they_ask_no_dnsproxy() -> None:
    result = run("install", "--method", "override-rewrites", *ADDRESS)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--address and --method override-rewrites: rewrite lines ask no dnsproxy" in result.stderr


def test_help_leads_with_examples() -> None:
    for command in ("install", "uninstall"):
        assert f"dnsproxy {command} --file Corefile" in run(command, "--help").stdout


def test_importing_the_commands_loads_no_cluster_client_and_no_list_of_suffixes() -> None:
    heavy = ["kubernetes", "httpx2", "publicsuffixlist", "hypothesis"]
    code = f"import sys, dnsproxy.install.command; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
