"""A tiny table in the data folder, a fast method, and records for the tests of the comparison."""

import numpy as np
import pytest

from leaflearn.benchmark.real.run import METHODS
from leaflearn.benchmark.real.tables import TABLES, RealTable


class Constant:
    """Predicts the mean of all rows, or of the labelled ones."""

    def __init__(self, rows):
        self.mean = rows.y.mean()

    def known(self, X, group):
        return np.full(len(X), self.mean)

    def new(self, labelled, X, group):
        return np.full(len(X), labelled.y.mean())


@pytest.fixture
def pets(tmp_path, monkeypatch):
    """The table "pets": ten owners with twelve rows each, and a method called "constant"."""
    monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path / "data"))
    table = RealTable("pets", "pets.csv", "weight", "owner", ("length",), "a friend")
    monkeypatch.setitem(TABLES, "pets", table)
    monkeypatch.setitem(METHODS, "constant", Constant)
    rng = np.random.default_rng(0)
    lines = ["rownames,age,kind,owner,length,weight"]
    for i in range(120):
        age = i % 12
        weight = age + 3 * (i // 12) + rng.normal()
        lines.append(f"{i},{age},{('cat', 'dog', 'ant')[i % 3]},p{i // 12},{weight},{weight:.3f}")
    table.path.parent.mkdir(parents=True)
    table.path.write_text("\n".join(lines))
    return table


@pytest.fixture
def make_record():
    """Makes a record of a run whose cells are given as (loss, rows, groups)."""

    def make(table="wages", method="leaflearn", split=0, outcome="ok", measure="rmse", **cells):
        found = {
            name.replace("_", " "): dict(zip(("loss", "rows", "groups"), cell, strict=True))
            for name, cell in cells.items()
        }
        record = {"table": table, "method": method, "split": split, "outcome": outcome}
        record |= {"reason": None, "measure": measure, "cells": found, "seconds": 1.0}
        return record | {"commit": "abc"}

    return make
