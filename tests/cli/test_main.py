"""Every way in which the command ends: the exit code, and at most one sentence."""

import subprocess
import sys

import click
import pytest

from leaflearn import __version__
from leaflearn.cli.main import VERBS, Verbs, main, run
from leaflearn.messages import MessageError, TryMoreContexts


@pytest.fixture
def verb(monkeypatch):
    """Make `leaflearn demo` raise an error."""

    def install(error):
        def fail():
            raise error

        monkeypatch.setattr(
            Verbs, "get_command", lambda self, ctx, name: click.Command(name, callback=fail)
        )

    monkeypatch.delenv("LEAFLEARN_DEBUG", raising=False)
    return install


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"leaflearn {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_verb(arguments, capsys):
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: leaflearn")
    assert all(verb in out for verb in VERBS)


def test_every_verb_exists_with_the_help_of_the_list():
    group = Verbs()
    for name, sentence in VERBS.items():
        command = group.get_command(click.Context(group), name)
        assert command.name == name
        assert command.help.splitlines()[0] == sentence


def test_unknown_verb(capsys):
    assert run(["sing"]) == 2
    assert capsys.readouterr().err == "leaflearn: No such command 'sing'. See 'leaflearn --help'.\n"


def test_unknown_option(capsys):
    assert run(["demo", "--louder"]) == 2
    assert (
        capsys.readouterr().err
        == "leaflearn: No such option '--louder'. See 'leaflearn demo --help'.\n"
    )


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (ValueError("The table has\n  no rows."), 2, "leaflearn: The table has no rows."),
        (
            FileNotFoundError(2, "No such file or directory", "a.csv"),
            2,
            "leaflearn: Cannot use 'a.csv': No such file or directory.",
        ),
        (OSError("The disk is full."), 2, "leaflearn: The disk is full."),
        (click.ClickException("Name a file."), 2, "leaflearn: Name a file."),
        (
            MessageError(TryMoreContexts(3, 2)),
            2,
            "leaflearn: 3 contexts predict held-out rows significantly better than 2; "
            "try --contexts 3.",
        ),
        (KeyboardInterrupt(), 130, "leaflearn: Interrupted."),
        (
            TypeError("x"),
            1,
            "leaflearn: This is a bug in leaflearn (TypeError: x); LEAFLEARN_DEBUG=1 shows where.",
        ),
    ],
)
def test_errors_end_in_one_sentence_and_a_code(verb, capsys, error, code, sentence):
    verb(error)
    assert run(["demo"]) == code
    captured = capsys.readouterr()
    assert captured.err.strip() == sentence
    assert captured.out == ""


def test_debugging_raises_the_error(verb, monkeypatch):
    verb(ValueError("here"))
    monkeypatch.setenv("LEAFLEARN_DEBUG", "1")
    with pytest.raises(ValueError, match="here"):
        run(["demo"])


def test_main_exits_with_the_code():
    with pytest.raises(SystemExit) as exit_:
        main(["sing"])
    assert exit_.value.code == 2


def test_help_imports_no_heavy_package():
    heavy = "{'torch', 'sklearn', 'matplotlib', 'pandas'}"
    program = (
        "import sys; from leaflearn.cli.main import run; run(['--help']); "
        f"sys.exit(bool({heavy} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode
        == 0
    )


def test_python_m_leaflearn_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "leaflearn", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"leaflearn {__version__}\n")
