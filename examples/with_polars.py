"""Read with polars, fit, and join the contexts back on.

python examples/with_polars.py

Twenty scales weigh parcels. Some of them add the weight of the tray, which grows with the size of the parcel, and nobody wrote down which.
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
weight = (
    np.where(kind == "book", 0.6, 0.2) * volume
    + with_tray[scale] * (1 + 0.5 * volume)
    + rng.normal(0, 0.3, 300)
)
lines = [
    f"scale {s:02},{v:.2f},{k},{w:.2f}"
    for s, v, k, w in zip(scale, volume, kind, weight, strict=True)
]
file = io.StringIO(
    "\n".join(["scale,volume,kind,weight", *lines])
)  # in real life the name of a file

parcels = pl.read_csv(file)

# A table model takes the frame as it is. A lazy frame has to be collected first.
model = TableModel("weight", group="scale", local_model="linear", random_state=0).fit(parcels)

# The context of every scale as a frame of polars, joined on: then it is a column like any other.
contexts = pl.DataFrame(
    {"scale": model.estimator_.groups_.tolist(), "context": model.estimator_.contexts_}
)
parcels = parcels.join(contexts, on="scale")
print(
    parcels.group_by("context")
    .agg(pl.col("scale").n_unique().alias("scales"), pl.col("weight").mean().round(2))
    .sort("context")
)

# Five parcels on a new scale tell its context, and answers for others follow. Answers come as columns of pandas.
few = pl.DataFrame(
    {"volume": [2.0, 5, 9, 14, 18], "kind": ["book"] * 5, "weight": [3.1, 6.4, 11.0, 16.3, 20.9]}
)
new = pl.DataFrame({"volume": [4.0, 12.0], "kind": ["clothes", "book"]})
answers = model.predict(new, support=few)
print(
    new.with_columns(
        pl.Series(name, answers[name].to_numpy()) for name in ("context", "prediction")
    )
)

found = contexts["context"].to_numpy()
right = (found == found[with_tray.argmax()]) == with_tray
print(f"{right.mean():.0%} of the scales are with those that weigh as they do")
