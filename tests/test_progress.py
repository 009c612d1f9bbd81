"""The progress display: what it shows on a terminal, and that it is silent elsewhere."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from leaflearn.engines.progress import ProgressBar
from leaflearn.progress import ProgressDisplay

HISTORY = {"loss": [np.array([0.5, 0.25])], "usage": [np.array([[0.5, 0.5], [0.25, 0.75]])]}
EPOCH = SimpleNamespace(stage="search", epoch=1, max_epochs=2, history=HISTORY)


def draw(work, **options):
    """What a display writes while it does the work."""
    stream = io.StringIO()
    with ProgressBar(
        "fit", Console(file=stream, width=120, **options.pop("on", {})), **options
    ) as bar:
        work(bar)
        bar._progress.refresh()
    return stream.getvalue()


@pytest.mark.parametrize("shows", ["count", "bytes", "elapsed"])
def test_silent_without_a_terminal(shows):
    def work(bar):
        bar.begin("reading")
        bar.on_epoch(EPOCH)

    assert draw(work, shows=shows) == ""


def test_a_stage_is_shown_as_plain_text_not_as_markup():
    shown = draw(
        lambda bar: bar.begin("reading [red]x[/red]"), shows="elapsed", on={"force_terminal": True}
    )
    assert "reading [red]x[/red]" in shown


def test_epochs_of_a_training_are_shown_behind_the_title():
    def work(bar):
        bar.begin("fitting")
        bar.on_epoch(EPOCH)

    assert "fitting: search" in draw(work, shows="elapsed", on={"force_terminal": True})


def test_loss_and_usage_are_those_of_the_best_restart():
    (line,) = draw(lambda bar: bar.on_epoch(EPOCH)).splitlines()
    assert line.startswith("fit search ")
    assert " 100 % " in line
    assert line.rstrip().endswith("loss 0.25  usage 25/75 %")


def test_every_stage_keeps_its_line():
    def work(bar):
        bar.update("search", 1, 4, 2.0, [1.0])
        bar.update("refresh", 4, 4, 1.0, [1.0])

    first, second = draw(work).splitlines()
    assert first.startswith("fit search ")
    assert " 100 % " in first
    assert second.startswith("fit refresh ")


def test_a_fit_that_fails_leaves_its_line_unfilled():
    stream = io.StringIO()

    def fail():
        with ProgressDisplay("fit", Console(file=stream, width=120)) as display:
            display.update("search", 1, 4)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert "  25 % " in stream.getvalue()


@pytest.mark.parametrize(("shows", "amount"), [("count", "3/10"), ("bytes", "3/10 bytes")])
def test_the_amount_is_counted(shows, amount):
    def work(bar):
        bar.begin("reading", total=10)
        bar.advance(3)

    assert amount in draw(work, shows=shows, on={"force_terminal": True})
