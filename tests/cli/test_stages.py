"""The line that says what is being done: on a terminal only, and without a trace."""

import io
from types import SimpleNamespace

from rich.console import Console

from leaflearn.cli.stages import Stages


def test_silent_where_there_is_no_terminal():
    stream = io.StringIO()
    with Stages(Console(file=stream)) as stages:
        stages.begin("reading")
        stages.on_epoch(SimpleNamespace(stage="search", epoch=1, max_epochs=2))
    assert stream.getvalue() == ""


def test_on_a_terminal_the_stage_is_shown_as_text():
    stream = io.StringIO()
    with Stages(Console(file=stream, force_terminal=True, width=100)) as stages:
        stages.begin("reading [red]x[/red]")
        stages._progress.refresh()
    assert "reading [red]x[/red]" in stream.getvalue()
