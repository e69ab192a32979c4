"""`koikoi referee`: the rules as a JSON-lines filter (docs/interfaces.md)."""

from __future__ import annotations

import sys

import click

from koikoi_sdk.rules import referee


@click.command("referee")
def command() -> None:
    """Read one JSON request per line on standard input, answer each with one JSON line."""
    referee.main(sys.stdin, sys.stdout)
