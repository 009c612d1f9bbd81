"""The verbs of the command and where they live. A verb is imported when it is called, so that `leaflearn --help` answers at once."""

from __future__ import annotations

from importlib import import_module

import click

VERBS: dict[
    str, str
] = {  # leaflearn VERB is the command VERB in leaflearn/cli/VERB.py; beside it what --help says of it
    "demo": "See in a minute how conflicting labels come apart.",
    "fit": "Find the contexts in a table and keep a model for each.",
    "identify": "Find the context of new sources from a few labelled rows.",
    "predict": "Answer the rows of a table with a fitted model.",
    "show": "Show what is in a model folder.",
    "report": "Write a page about a model: what was found, where the contexts disagree, how sure it is.",
    "data": "See which data sets there are, get them, and look at them.",
    "bench": "Measure how often the contexts are recovered.",
    "reproduce": "Run the experiments of the paper, and write their tables and figures.",
    "results": "Show the tables of experiments that were run.",
}


class Verbs(click.Group):
    """A group of commands that imports a verb only when it is asked for.

    Examples
    --------
    >>> Verbs().list_commands(click.Context(Verbs()))[:3]
    ['demo', 'fit', 'identify']
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb, or None where there is none of that name."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"leaflearn.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))
