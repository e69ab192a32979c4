"""The `koikoi` command: one module per subcommand, imported only when it is used."""

from __future__ import annotations

import importlib
import resource
import sys

import click

from koikoi_sdk.cli.options import USAGE_EXIT_CODE

INTERRUPTED_EXIT_CODE = 130
"""What shells expect of a program that SIGINT ended: 128 + 2."""
COMMANDS = {
    "blocks": "List the accounts you do not want to meet, add one, take one back.",
    "bot": "Play one match by itself: host a room or join one.",
    "conduct": "Show how you behaved in your last matches.",
    "history": "List recorded matches, your own or another player's.",
    "devices": "List the devices of your account, name one, sign one out.",
    "host": "Open a room, wait for an opponent and play.",
    "join": "Take the second seat of a room and play.",
    "leaderboard": "Show the best rated players, or those around you.",
    "login": "Sign this device in.",
    "logout": "Sign this device out.",
    "receipts": "Show what the relay signed about slow and dishonest opponents.",
    "referee": "Judge rules as a JSON-lines filter.",
    "resume": "Go on with the matches that are not finished.",
    "rooms": "List open rooms, watch the list, or show one room with its rules.",
    "vectors": "Check this implementation of the protocol against vector files.",
}


class LazyGroup(click.Group):
    """Imports a subcommand when it is called, so that `koikoi referee` never loads gRPC."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names of all subcommands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one subcommand."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"koikoi_sdk.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the table above, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Play Koi-Koi (花札こいこい) against somebody whom nobody can cheat, the server included."""


def main() -> None:
    """Run the command; an expected failure is one sentence on standard error and exit status 1."""
    from koikoi_sdk.cli.failures import describe

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold cards and keys
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.exceptions.Abort:
        click.echo("koikoi: stopped; `koikoi resume` goes on with an unfinished match", err=True)
        sys.exit(INTERRUPTED_EXIT_CODE)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE_EXIT_CODE)
    except Exception as error:
        sentence = describe(error)
        if sentence is None:
            raise
        click.echo(f"koikoi: {sentence}", err=True)
        sys.exit(1)
