"""What a fit prints at the end can be pasted: every command runs as it stands, once the tables to be filled in are there."""

import re
import shlex
import shutil
from html import unescape

import pytest

from leaflearn.cli.main import run

PLACE = "it's my model"
FIT = ["--target", "effect", "--group", "source", "--local-model", "linear", "-o", PLACE]


def commands(out):
    return [line.strip() for line in out.splitlines() if line.startswith("  leaflearn ")]


def fill_in(folder):
    for name in ("NEW.csv", "FEW.csv"):
        shutil.copy(folder / "table.csv", folder / name)


@pytest.mark.parametrize("contexts", [1, 2])
def test_every_command_runs_as_it_is_printed(table, call, contexts):
    _, out, _ = call("fit", "table.csv", *FIT, "--contexts", contexts)
    fill_in(table.parent)
    printed = commands(out)
    assert [shlex.split(command)[1] for command in printed] == [
        "predict",
        *["identify"] * (contexts > 1),
        "report",
    ]
    for command in printed:
        assert call(*shlex.split(command)[1:])[0] == 0, command
    assert (table.parent / "answers.csv").exists()
    assert (table.parent / "report.html").exists()


def test_every_command_of_the_page_runs_as_it_is_printed(table, call):
    assert call("fit", "table.csv", *FIT, "--contexts", 2, "--report", "page.html")[0] == 0
    fill_in(table.parent)
    page = (table.parent / "page.html").read_text(encoding="utf-8")
    printed = [
        unescape(command)
        for command in re.findall(r"<pre [^>]*><code>(.*?)</code></pre>", page, re.S)
    ]
    assert [shlex.split(command)[1] for command in printed] == [
        "identify",
        "predict",
        "predict",
        "fit",
    ]
    for command in printed:
        assert call(*shlex.split(command)[1:])[0] == 0, command


def test_what_has_to_be_filled_in_is_said(table, call):
    _, out, _ = call("fit", "table.csv", *FIT, "--contexts", 2)
    assert out.endswith(
        """
The model is in 'it's my model'. From here on:

  leaflearn predict 'it'"'"'s my model' NEW.csv --each -o answers.csv
      what every context answers. Fill in NEW.csv: a table of new rows, with the columns that were learnt from
  leaflearn identify 'it'"'"'s my model' FEW.csv
      the context of a new 'source'. Fill in FEW.csv: a table of a few of its rows, also with 'effect'
  leaflearn report 'it'"'"'s my model' table.csv -o report.html
      a page about all this, to look at in a browser
"""
    )


def test_a_page_that_was_not_told_a_name_says_what_to_fill_in(fitted, table, capsys):
    fitted.save("model")
    assert run(["report", "model"]) == 0
    page = (table.parent / "report.html").read_text(encoding="utf-8")
    assert "leaflearn fit DATA.csv --target effect" in page
    assert "Fill in <code>DATA.csv</code>: the training table." in page
    capsys.readouterr()
