"""Read with polars, fit, and join the contexts to the table.

python examples/with_polars.py

Twenty scales weigh parcels. Some of them add the weight of the tray, which grows with the size of
the parcel. The table does not say which scales do.
"""

import io

import numpy as np
import polars as pl

from leaflearn.tabular.table_model import TableModel

rng = np.random.default_rng(0)
scale = np.repeat(np.arange(20), 15)
with_tray = rng.random(20) < 0.4  # the hidden context, for the last line only
volume = rng.uniform(1, 20, 300)
kind = rng.choice(["book", "clothes"], 300)
weight = np.where(kind == "book", 0.6, 0.2) * volume + with_tray[scale] * (1 + 0.5 * volume)
weight += rng.normal(0, 0.3, 300)
rows = zip(scale, volume, kind, weight, strict=True)
lines = [f"scale {s:02},{v:.2f},{k},{w:.2f}" for s, v, k, w in rows]
file = io.StringIO("\n".join(["scale,volume,kind,weight", *lines]))  # usually the name of a file

parcels = pl.read_csv(file)

# A table model takes the data frame as it is. A lazy frame has to be collected first.
model = TableModel("weight", group="scale", local_model="smooth", random_state=0).fit(parcels)

# Join the context of every scale: it becomes a column like any other.
leaf = model.estimator_
contexts = pl.DataFrame({"scale": leaf.groups_.tolist(), "context": leaf.contexts_})
parcels = parcels.join(contexts, on="scale")
summary = [pl.col("scale").n_unique().alias("scales"), pl.col("weight").mean().round(2)]
print(parcels.group_by("context").agg(summary).sort("context"))

# Five parcels identify the context of a new scale; other parcels are predicted in that context.
few = pl.DataFrame(
    {"volume": [2.0, 5, 9, 14, 18], "kind": ["book"] * 5, "weight": [3.1, 6.4, 11.0, 16.3, 20.9]}
)
new = pl.DataFrame({"volume": [4.0, 12.0], "kind": ["clothes", "book"]})
answers = model.predict(new, support=few)  # a data frame of pandas
columns = [pl.Series(name, answers[name].to_numpy()) for name in ("context", "prediction")]
print(new.with_columns(columns))

found = contexts["context"].to_numpy()
right = (found == found[with_tray.argmax()]) == with_tray
print(f"{right.mean():.0%} of the scales are with those that weigh as they do")
