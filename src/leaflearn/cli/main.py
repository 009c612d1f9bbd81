"""The command `leaflearn`: its verbs, and how it ends.

Every error is one clear sentence and an exit code, never a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from leaflearn.cli._text import printable
from leaflearn.cli.messages import render
from leaflearn.messages import MessageError

OK, BUG, USER_ERROR, INTERRUPTED = 0, 1, 2, 130

# `leaflearn VERB` is the command VERB in leaflearn/cli/VERB.py; `leaflearn --help` prints these.
VERBS = {
    "demo": "Show in a minute how conflicting labels are separated.",
    "fit": "Find the contexts in a table and save a model for each.",
    "identify": "Find the context of new sources from a few labelled rows.",
    "predict": "Predict the target of new rows with a fitted model.",
    "show": "Show what is in a model folder.",
    "report": "Write a page about a model: what was found and where the contexts disagree.",
    "data": "List the data sets, download them, and look at them.",
    "bench": "Measure how often the contexts are recovered, and compare with other methods.",
    "reproduce": "Run the experiments of the paper, and write their tables and figures.",
    "results": "Show the tables of experiments that were run.",
}


class Verbs(click.Group):
    """A group of commands that imports a verb only when it is used.

    Examples
    --------
    >>> Verbs().list_commands(click.Context(Verbs()))[:3]
    ['demo', 'fit', 'identify']
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of `VERBS`."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb; None if there is no verb of that name."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"leaflearn.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="leaflearn", message="leaflearn %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Learn from labels that disagree because of a context that was not recorded."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and end the process with its exit code.

    Set LEAFLEARN_DEBUG=1 to see the traceback of an error.

    Examples
    --------
    >>> main(["--version"])
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    sys.exit(run(None if arguments is None else list(arguments)))


def run(arguments: list[str] | None) -> int:
    """Run the command and return its exit code.

    The code is 0, or 2 after an error, 130 after Ctrl-C, 1 after a bug in leaflearn.

    Examples
    --------
    >>> run(["no-such-verb"])
    2
    """
    try:
        code = cli.main(arguments, prog_name="leaflearn", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return _fail("Interrupted.", INTERRUPTED)
    except click.ClickException as error:
        return _fail(_sentence_of(error), USER_ERROR)
    except (ValueError, OSError) as error:
        _raise_when_debugging(error)
        return _fail(_sentence_of(error), USER_ERROR)
    except Exception as error:
        _raise_when_debugging(error)
        kind = type(error).__name__
        return _fail(
            f"This is a bug in leaflearn ({kind}: {error}); LEAFLEARN_DEBUG=1 shows where.", BUG
        )
    return code if isinstance(code, int) else OK


def _sentence_of(error: Exception) -> str:
    if isinstance(error, MessageError):
        return render(error.message)
    if isinstance(error, click.ClickException):
        context = error.ctx if isinstance(error, click.UsageError) else None
        advice = f" See '{context.command_path} --help'." if context else ""
        return error.format_message() + advice
    if isinstance(error, OSError) and error.strerror:  # the system's text, without its number
        prefix = f"Cannot use '{error.filename}': " if error.filename else ""
        return f"{prefix}{error.strerror}."
    return str(error) or type(error).__name__


def _fail(sentence: str, code: int) -> int:
    # Names in the sentence may come from an untrusted file.
    click.echo(printable(f"leaflearn: {' '.join(sentence.split())}"), err=True)
    return code


def _raise_when_debugging(error: Exception) -> None:
    if os.environ.get("LEAFLEARN_DEBUG"):
        raise error
