"""A module with a command, to be imported by a test."""

import click

one = click.Command("one")
