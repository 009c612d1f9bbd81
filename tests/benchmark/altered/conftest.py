"""A tiny table in the data folder, and a task that is made from it."""

import numpy as np
import pytest

from leaflearn.benchmark.altered.tasks import TASKS, AlteredTask, reverse
from leaflearn.benchmark.real.tables import RealTable


@pytest.fixture
def pets(tmp_path, monkeypatch):
    """The table "pets": twelve owners with ten rows each; the country is that of the owner."""
    monkeypatch.setenv("LEAFLEARN_DATA", str(tmp_path / "data"))
    table = RealTable("pets", "pets.csv", "weight", "owner", (), "a friend")
    table.path.parent.mkdir(parents=True)
    rng, lines = np.random.default_rng(0), ["age,length,country,owner,weight"]
    for i in range(120):
        age, owner = i % 10, i // 10
        length, weight = rng.normal(), 3 * age + owner / 10 + rng.normal()
        lines.append(f"{age},{length:.3f},{'no' if owner % 3 else 'yes'},{owner},{weight:.3f}")
    table.path.write_text("\n".join(lines))
    monkeypatch.setitem(TASKS, "pets-reversed", AlteredTask("pets-reversed", table, reverse))
    monkeypatch.setitem(
        TASKS, "pets-country", AlteredTask("pets-country", table, None, "country=yes")
    )
    return table
