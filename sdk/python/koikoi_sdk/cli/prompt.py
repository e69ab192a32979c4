"""A person at the terminal: shows the table and asks for a number."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable

import click

from koikoi_sdk.client.errors import LocalProtocolError
from koikoi_sdk.client.players import Resign
from koikoi_sdk.rules import Card, Play, card_name
from koikoi_sdk.table import Choice, View

_DECISIONS = {"shobu": "勝負 stop and win", "koikoi": "こいこい go on"}


class Prompt:
    """Asks on standard input; reading it does not hold up the connection."""

    def __init__(self) -> None:
        self._input = _Input()

    async def choose(self, view: View) -> Choice | Resign:
        """Show the table and ask until the answer is one of the options, or r to resign."""
        for line in describe_table(view):
            click.echo(line)
        for number, option in enumerate(view.options, 1):
            click.echo(f"  {number:2}  {describe_option(view, option)}")
        while True:
            click.echo("number, or r to resign> ", nl=False)
            answer = (await self._input.read_line()).strip()
            if answer == "r":
                return Resign()
            if answer.isdecimal() and 1 <= int(answer) <= len(view.options):
                return view.options[int(answer) - 1]
            click.echo(f"a number from 1 to {len(view.options)}")


class _Input:
    """Lines of standard input, without a thread: one that reads could not be stopped when the match ends meanwhile."""

    def __init__(self) -> None:
        self._unread = b""

    async def read_line(self) -> str:
        """Give the next line, without its end.

        Raises:
            LocalProtocolError: There is no more.
        """
        while b"\n" not in self._unread:
            data = await self._read()
            if not data:
                click.echo()
                raise LocalProtocolError("standard input has ended; `koikoi resume` goes on with the match")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace")

    @staticmethod
    async def _read() -> bytes:
        if sys.stdin is None:
            return b""
        source, loop = sys.stdin.fileno(), asyncio.get_running_loop()
        is_ready = asyncio.Event()
        try:
            loop.add_reader(source, is_ready.set)
        except PermissionError:  # a file is always ready
            return os.read(source, 4096)
        try:
            await is_ready.wait()
        finally:
            loop.remove_reader(source)
        return os.read(source, 4096)


def describe_table(view: View) -> list[str]:
    """Give the lines that show what this seat may see."""
    table = view.round
    if table is None:
        return []
    other = 1 - view.seat
    return [
        "",
        f"第{table.number}局 round {table.number}, turn {table.turn}; "
        f"points: you {view.points[view.seat]}, opponent {view.points[other]}",
        f"opponent: {table.hand_counts[other]} cards in hand; took {_cards(table.captures[other])}",
        f"場 field: {_cards(table.field)}",
        f"you took {_cards(table.captures[view.seat])}",
        f"手札 hand: {_cards(table.hand)}",
    ]


def describe_option(view: View, option: Choice) -> str:
    """Give one line for a legal choice."""
    taking = f", take {card_name(option.target)}" if option.target is not None else ""
    if isinstance(option, Play):
        return f"play {card_name(option.card)}{taking}"
    turned = view.round.turned if view.round else None
    shown = f"turned {card_name(turned)}{taking}" if turned is not None else "turned card" + taking
    return shown + (f", {_DECISIONS[option.decision]}" if option.decision else "")


def _cards(cards: Iterable[Card]) -> str:
    return " ".join(card_name(card) for card in sorted(cards)) or "-"
