"""`leaflearn show`: what is in a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from leaflearn.cli.table_verbs import (
    PATH,
    load_model,
    report_warnings,
    say,
    say_json,
    translate,
    with_json,
    with_local_model,
)


@click.command()
@click.argument("model", type=PATH)
@with_local_model
@with_json
def show(model: Path, local_model: str | None, as_json: bool) -> None:
    """Show what is in a model folder."""
    from leaflearn.persistence import read_model
    from leaflearn.tabular.saving import SECTION

    kept = read_model(model)
    files = {name: len(content) for name, content in sorted(kept.parts.items())}
    estimator = kept.sections.get("estimator", {})
    about: dict[str, Any] = {
        "model": str(model),
        "files": files,
        "library": kept.library,
        "estimator": estimator.get("class"),
        "training_data": estimator.get("data"),
    }
    if SECTION in kept.sections:
        from leaflearn.cli.fit_summary import describe, tell

        with report_warnings():
            found = load_model(model, local_model)
        about |= {
            **(describe(found) if as_json else {}),
            "warnings": [translate(sentence) for sentence in found.warnings_],
        }
    if as_json:
        say_json(about)
        return
    say(
        tell(found) + "\n"
        if SECTION in kept.sections
        else "An estimator that was fitted in Python, without a table.\n"
    )
    if about.get("warnings"):
        say(
            "The fit warned:\n"
            + "\n".join(f"- {sentence}" for sentence in about["warnings"])
            + "\n"
        )
    say(f"{about['estimator']}, written by leaflearn {kept.library.get('leaflearn', '?')}.")
    if about["training_data"]:
        say(f"Fingerprint of the training rows: {about['training_data'].get('sha256')}")
    say("Files: " + ", ".join(f"{name} ({size:,} bytes)" for name, size in files.items()))
