"""Commands: all errors of a command line at once, by name, with status 2."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from sidecar.cli.options import BadUsage, Command, EndpointType, Group, Seconds, admin_option, log_options
from sidecar.cli.usage import GatheringOption
from sidecar.values.errors import StartError

PREFIX = {"auto_envvar_prefix": "DNSPROXY"}


def program(act: Callable[..., None] = lambda **_: None) -> click.Command:
    """A program of the shape that all have: a group with the prefix, and commands of many flags."""

    @click.group(cls=Group, context_settings=PREFIX)
    def main() -> None:
        """A program."""

    @main.command()
    @click.option("--ttl", type=click.IntRange(0, 3600), default=5, help="How long.")
    @click.option("--listen", type=EndpointType(), multiple=True, default=["127.0.0.1:1053"])
    @click.option("--upstream", type=EndpointType(53), multiple=True)
    @click.option("--wait", type=Seconds(0.5), default=1.0)
    @click.option("--tls-only", is_flag=True)
    @click.option("--zone", type=click.Choice(["a", "b", "c"]), multiple=True, cls=GatheringOption)
    @click.option("--zone-class", multiple=True)
    @admin_option("127.0.0.1:8081")
    @log_options
    def serve(**values: Any) -> None:
        act(**values)

    @main.command()
    @click.argument("name", type=click.IntRange(0))
    @click.option("--route", required=True)
    def explain(**values: Any) -> None:
        act(**values)

    return main


def run(
    *arguments: str, act: Callable[..., None] = lambda **_: None, environment: Mapping[str, str] | None = None
) -> Result:
    return CliRunner().invoke(program(act), arguments, env=environment or {}, prog_name="dnsproxy")


@pytest.mark.parametrize(
    ("arguments", "environment", "lines"),
    [
        pytest.param(["serve", "--ttl", "x"], {}, ["--ttl: 'x' is not a valid integer range."], id="flag"),
        pytest.param(
            ["serve"],
            {"DNSPROXY_TTL": "x"},
            ["--ttl (from DNSPROXY_TTL): 'x' is not a valid integer range."],
            id="variable",
        ),
        pytest.param(
            ["serve", "--ttl", "-1", "--listen", "a", "--listen", "b", "--wait", "0.1"],
            {"DNSPROXY_UPSTREAM": "192.0.2.1 c 192.0.2.2:0", "DNSPROXY_ADMIN": "d", "DNSPROXY_LOG_FORMAT": "xml"},
            [
                "--ttl: -1 is not in the range 0<=x<=3600.",
                "--listen: 'a' is not ADDR:PORT",
                "--listen: 'b' is not ADDR:PORT",
                "--wait: 0.1 is not in the range 0.5<=x<=86400.",
                "--upstream (from DNSPROXY_UPSTREAM): 'c' is not an IP address",
                "--upstream (from DNSPROXY_UPSTREAM): '0' is not a port (1 to 65535)",
                "--admin (from DNSPROXY_ADMIN): 'd' is not ADDR:PORT",
                "--log-format (from DNSPROXY_LOG_FORMAT): 'xml' is not one of 'json', 'console'.",
            ],
            id="many",
        ),
        pytest.param(
            ["explain"],
            {},
            [f"{name}: is required; see dnsproxy explain --help" for name in ("NAME", "--route")],
            id="missing",
        ),
        pytest.param(
            ["explain", "x"],
            {"DNSPROXY_ROUTE": ""},
            ["NAME: 'x' is not a valid integer range.", "--route: is required; see dnsproxy explain --help"],
            id="argument, and a required value that is empty",
        ),
        pytest.param(
            ["serve", "--lisen", "x", "--ttl", "y"],
            {},
            ["No such option '--lisen'. Did you mean '--listen'?", "--ttl: 'y' is not a valid integer range."],
            id="mistyped flag beside a bad value",
        ),
        pytest.param(
            ["serve", "--tttl=3", "--lisen=x"],
            {},
            ["No such option '--tttl'. Did you mean '--ttl'?", "No such option '--lisen'. Did you mean '--listen'?"],
            id="two mistyped flags",
        ),
        pytest.param(["serve", "-x"], {}, ["No such option '-x'; see dnsproxy serve --help"], id="letter"),
        pytest.param(["serve", "-hx"], {}, ["No such option '-x'; see dnsproxy serve --help"], id="letters"),
        pytest.param(["serve", "more"], {}, ["Got unexpected extra argument (more)"], id="extra argument"),
        pytest.param(["serve", "--ttl"], {}, ["Option '--ttl' requires an argument."], id="flag without its value"),
        pytest.param(["serv"], {}, ["No such command 'serv'. Did you mean 'serve'?"], id="mistyped command"),
        pytest.param(["--bad", "serve"], {}, ["No such option '--bad'; see dnsproxy --help"], id="flag of the group"),
        pytest.param(["other"], {}, ["No such command 'other'; see dnsproxy --help"], id="a command unlike all"),
        pytest.param(
            ["serve", "--listen", "a\nb\x1b[2J"],
            {},
            ["--listen: 'a\\nb\\x1b[2J' is not ADDR:PORT"],
            id="control characters",
        ),
        pytest.param(["serve", "--wait", "nan"], {}, ["--wait: 'nan' is not a number of seconds."], id="not a number"),
        pytest.param(["serve", "--wait", "inf"], {}, ["--wait: inf is not in the range 0.5<=x<=86400."], id="for ever"),
    ],
)
def test_every_fault_is_a_line_that_names_it(
    arguments: list[str], environment: dict[str, str], lines: list[str]
) -> None:
    result = run(*arguments, environment=environment)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sorted(result.stderr.splitlines()) == sorted(f"Error: {line}" for line in lines)


def test_good_values_arrive_as_values() -> None:
    seen: dict[str, Any] = {}
    environment = {"DNSPROXY_UPSTREAM": "192.0.2.1 [2001:db8::1]:5353", "DNSPROXY_TTL": "7"}
    result = run("serve", "--listen", "[::1]:53", act=seen.update, environment=environment)
    assert result.exit_code == 0, result.stderr
    assert [str(endpoint) for endpoint in seen["listen"]] == ["[::1]:53"]
    assert [str(endpoint) for endpoint in seen["upstream"]] == ["192.0.2.1:53", "[2001:db8::1]:5353"]
    assert (seen["ttl"], seen["wait"], seen["tls_only"]) == (7, 1.0, False)
    assert (str(seen["admin"]), seen["log_format"], seen["log_level"]) == ("127.0.0.1:8081", None, "info")


def test_a_flag_beats_its_variable() -> None:
    seen: dict[str, Any] = {}
    run("serve", "--ttl", "9", act=seen.update, environment={"DNSPROXY_TTL": "x"})
    assert seen["ttl"] == 9


def test_an_empty_variable_is_unset() -> None:
    seen: dict[str, Any] = {}
    names = ("DNSPROXY_TTL", "DNSPROXY_LISTEN", "DNSPROXY_ADMIN", "DNSPROXY_TLS_ONLY")
    assert run("serve", act=seen.update, environment=dict.fromkeys(names, "")).exit_code == 0
    assert (seen["ttl"], str(seen["listen"][0]), str(seen["admin"])) == (5, "127.0.0.1:1053", "127.0.0.1:8081")


@pytest.mark.parametrize(
    ("arguments", "environment", "values"),
    [
        pytest.param([], {}, (), id="none"),
        pytest.param([], {"ZONE": "a"}, ("a",), id="the plain one"),
        pytest.param([], {"ZONE_MORE": "a b"}, ("a", "b"), id="another alone"),
        pytest.param([], {"ZONE_MORE": "a", "ZONE": "b c"}, ("b", "c", "a"), id="the plain one first"),
        pytest.param([], {"ZONE_Z": "a", "ZONE_B": "b", "ZONE_B2": "c"}, ("b", "c", "a"), id="others by their names"),
        pytest.param([], {"ZONE": "a", "ZONE_MORE": "a"}, ("a", "a"), id="one value twice"),
        pytest.param([], {"ZONE": "", "ZONE_B": "b", "ZONE_C": "  "}, ("b",), id="empty ones are unset"),
        pytest.param([], {"ZONE": "", "ZONE_B": ""}, (), id="all are empty"),
        pytest.param([], {"ZONE": "a", "ZONE_CLASS": "x"}, ("a",), id="the variable of another flag"),
        pytest.param([], {"ZONES": "b", "ZON": "b", "OTHER_ZONE_B": "c"}, (), id="names like it"),
        pytest.param(["--zone", "c"], {"ZONE": "a", "ZONE_B": "b"}, ("c",), id="the flag overrides all"),
        pytest.param(["--zone=c", "--zone=a"], {"ZONE_B": "x"}, ("c", "a"), id="the flag overrides a bad value"),
    ],
)
def test_variables_with_a_common_beginning_add_up(
    arguments: list[str], environment: dict[str, str], values: tuple[str, ...]
) -> None:
    seen: dict[str, Any] = {}
    named = {f"DNSPROXY_{name}": text for name, text in environment.items()}
    result = run("serve", *arguments, act=seen.update, environment=named)
    assert result.exit_code == 0, result.stderr
    assert seen["zone"] == values


def test_a_fault_names_every_variable_that_adds_values() -> None:
    environment = {"DNSPROXY_ZONE": "a", "DNSPROXY_ZONE_B": "b x", "DNSPROXY_ZONE_C": "", "DNSPROXY_ZONE_CLASS": "y"}
    result = run("serve", environment=environment)
    assert result.exit_code == 2
    expected = "--zone (from DNSPROXY_ZONE, DNSPROXY_ZONE_B): 'x' is not one of 'a', 'b', 'c'."
    assert result.stderr == f"Error: {expected}\n"


@pytest.mark.parametrize("way", ["flag", "variable"])
def test_admin_off_is_nowhere(way: str) -> None:
    seen: dict[str, Any] = {}
    if way == "flag":
        run("serve", "--admin", "off", act=seen.update)
    else:
        run("serve", act=seen.update, environment={"DNSPROXY_ADMIN": "off"})
    assert seen["admin"] is None


def test_help_tells_variable_and_default_without_the_commands_name() -> None:
    text = " ".join(run("serve", "--help").stdout.split())
    assert "[env var: DNSPROXY_TTL; default: 5; 0<=x<=3600]" in text
    assert "[env var: DNSPROXY_LISTEN; default: 127.0.0.1:1053]" in text
    assert "DNSPROXY_SERVE" not in text
    assert run("serve", "-h").stdout == run("serve", "--help").stdout


def test_a_program_without_arguments_shows_its_help() -> None:
    result = run()
    assert result.exit_code == 2
    assert "serve" in result.output
    assert "Error" not in result.output


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        pytest.param(StartError("--file x: no such file"), 2, "--file x: no such file", id="start error"),
        pytest.param(StartError("no API server", status=3), 3, "no API server", id="start error with a status"),
        pytest.param(StartError("a\nb"), 2, "a b", id="two lines"),
        pytest.param(click.UsageError("these two exclude each other"), 2, "these two exclude each other", id="usage"),
        pytest.param(BadUsage(["--a: x", "--b: y"]), 2, "--a: x\nError: --b: y", id="two faults"),
    ],
)
def test_what_a_command_raises_is_told_as_plainly(error: Exception, status: int, line: str) -> None:
    def act(**_: object) -> None:
        raise error

    result = run("serve", act=act)
    assert result.exit_code == status
    assert result.stderr == f"Error: {line}\n"


def test_a_bug_keeps_its_traceback() -> None:
    def act(**_: object) -> None:
        raise ZeroDivisionError

    assert isinstance(run("serve", act=act).exception, ZeroDivisionError)


def test_a_callbacks_refusal_is_collected_with_the_others() -> None:
    def refuse(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
        raise click.BadParameter(f"{value} is not wanted")

    @click.command(cls=Command, context_settings={"auto_envvar_prefix": "PROXY"})
    @click.option("--one", callback=refuse, default="1")
    @click.option("--two", type=int, default=2)
    def main(**_: object) -> None:
        raise AssertionError

    result = CliRunner().invoke(main, ["--two", "x"], env={"PROXY_ONE": "5"})
    assert sorted(result.stderr.splitlines()) == [
        "Error: --one (from PROXY_ONE): 5 is not wanted",
        "Error: --two: 'x' is not a valid integer.",
    ]


def test_completion_does_not_complain() -> None:
    result = CliRunner().invoke(
        program(),
        env={"_DNSPROXY_COMPLETE": "bash_complete", "COMP_WORDS": "dnsproxy serve --ttl x --lis", "COMP_CWORD": "4"},
        prog_name="dnsproxy",
    )
    assert "--listen" in result.output
