"""The command `leaflearn`, and how it ends: every error is one clear sentence and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from leaflearn.cli.plain_text import printable
from leaflearn.cli.verbs import Verbs

OK, BUG, USER_ERROR, INTERRUPTED = 0, 1, 2, 130


@click.group(
    cls=Verbs, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="leaflearn", message="leaflearn %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Learn from labels that disagree because of a context nobody recorded."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave the process with its exit code. Set LEAFLEARN_DEBUG=1 to see the traceback of an error.

    Examples
    --------
    >>> main(["--version"])
    Traceback (most recent call last):
    ...
    SystemExit: 0
    """
    sys.exit(run(None if arguments is None else list(arguments)))


def run(arguments: list[str] | None) -> int:
    """Run the command and give its exit code: 0, 2 after an error, 130 after Ctrl-C, 1 after a bug of ours.

    Examples
    --------
    >>> run(["no-such-verb"])
    2
    """
    try:
        code = cli.main(arguments, prog_name="leaflearn", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return _say("Interrupted.", INTERRUPTED)
    except click.ClickException as error:
        return _say(_sentence_of(error), USER_ERROR)
    except (ValueError, OSError) as error:
        _raise_when_debugging(error)
        return _say(_sentence_of(error), USER_ERROR)
    except Exception as error:
        _raise_when_debugging(error)
        return _say(
            f"This is a bug in leaflearn ({type(error).__name__}: {error}); LEAFLEARN_DEBUG=1 shows where.",
            BUG,
        )
    return code if isinstance(code, int) else OK


def _sentence_of(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        context = error.ctx if isinstance(error, click.UsageError) else None
        return error.format_message() + (
            f" See '{context.command_path} --help'." if context else ""
        )
    if isinstance(error, OSError) and error.strerror:  # the system's own words, without its number
        return (
            f"Cannot use '{error.filename}': {error.strerror}."
            if error.filename
            else f"{error.strerror}."
        )
    return str(error) or type(error).__name__


def _say(message: str, code: int) -> int:
    click.echo(
        printable(f"leaflearn: {' '.join(message.split())}"), err=True
    )  # names in it may come from a stranger's file
    return code


def _raise_when_debugging(error: Exception) -> None:
    if os.environ.get("LEAFLEARN_DEBUG"):
        raise error
