"""`leaflearn show`: what is in a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leaflearn.cli._tables import (
    PATH,
    load_model,
    report_warnings,
    with_json,
    with_local_model,
)
from leaflearn.cli._text import say, say_json
from leaflearn.cli.messages import render


@click.command()
@click.argument("model", type=PATH)
@with_local_model
@with_json
def show(model: Path, local_model: str | None, as_json: bool) -> None:
    """Show what is in a model folder."""
    from leaflearn.cli._fit_summary import describe, summarize
    from leaflearn.persistence import read_model
    from leaflearn.tabular.saving import SECTION

    saved = read_model(model)
    files = {name: len(content) for name, content in sorted(saved.parts.items())}
    estimator = saved.sections.get("estimator", {})
    about: dict[str, Any] = {
        "model": str(model),
        "files": files,
        "library": saved.library,
        "estimator": estimator.get("class"),
        "training_data": estimator.get("data"),
    }
    summary = "An estimator that was fitted in Python, without a table."
    if SECTION in saved.sections:
        with report_warnings():
            found = load_model(model, local_model)
        if as_json:
            about |= describe(found)
        else:
            summary = summarize(found)
        about["warnings"] = [render(warning) for warning in found.warnings_]
    if as_json:
        say_json(about)
        return
    say(f"{summary}\n")
    if about.get("warnings"):
        say("Warnings of the fit:")
        say("\n".join(f"- {sentence}" for sentence in about["warnings"]) + "\n")
    say(f"{about['estimator']}, written by leaflearn {saved.library.get('leaflearn', '?')}.")
    if about["training_data"]:
        say(f"Fingerprint of the training rows: {about['training_data'].get('sha256')}")
    say("Files: " + ", ".join(f"{name} ({size:,} bytes)" for name, size in files.items()))
