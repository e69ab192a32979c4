"""Lets `python -m koikoi_sdk.cli` stand for the `koikoi` command."""

from koikoi_sdk.cli import main

main()
