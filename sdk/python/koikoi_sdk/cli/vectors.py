"""`koikoi vectors`: the protocol as test vectors (docs/interfaces.md)."""

from __future__ import annotations

import sys

import click


@click.command("vectors")
@click.argument("files", nargs=-1, required=True)
def command(files: tuple[str, ...]) -> None:
    """Check vector FILES; exit status 1 when any vector fails."""
    from koikoi_sdk.poker.vectors import main
    from koikoi_sdk.table.vectors import check_match

    sys.exit(main(files, {"messages": check_match}))
