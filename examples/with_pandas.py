"""A data frame of pandas with columns of several kinds, and the context of each group beside it.

python examples/with_pandas.py

Twenty-four critics score wines. Some prefer strong wines and some light ones, and the table does
not say which critic prefers which.
"""

import numpy as np
import pandas as pd

from leaflearn.tabular.table_model import TableModel

rng = np.random.default_rng(0)
critics = pd.Index([f"critic {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"])
likes_light = pd.Series(rng.random(24) < 0.4, index=critics)  # hidden; for the last line only

# The table as a database may return it: numbers, words, dates, and missing values.
table = pd.DataFrame({"critic": critics.repeat(12)})
table["alcohol"] = rng.normal(12.5, 1.0, len(table)).round(1)
table["colour"] = rng.choice(["red", "white"], len(table))
table["tasted"] = rng.choice(pd.date_range("2026-01-01", periods=90), len(table))
sign = np.where(table["critic"].map(likes_light), -1.0, 1.0)
table["score"] = 80 + 4 * sign * (table["alcohol"] - 12.5) + 3 * (table["colour"] == "red")
table["score"] += rng.normal(0, 1, len(table))
table.loc[rng.choice(len(table), 20, replace=False), "colour"] = None

# The rows of one critic share a context. The number of contexts is determined from the data.
model = TableModel("score", group="critic", local_model="linear", random_state=0).fit(table)

# The contexts of the critics: a data frame with one row per critic, as `groupby` returns them.
leaf = model.estimator_
found = pd.DataFrame(
    {"context": leaf.contexts_, "probability": leaf.probabilities_.max(axis=1)},
    index=pd.Index(leaf.groups_, name="critic"),
)
summary = table.groupby("critic")["score"].agg(["size", "mean"]).join(found)
print(summary.round(2).to_string(max_rows=6))

# The context of each row of the table, and the prediction of that context.
table["context"] = table["critic"].map(found["context"])
table["expected"] = model.predict(table, by_group=True)["prediction"]
slope = {
    context: np.polyfit(rows["alcohol"], rows["expected"], 1)[0]
    for context, rows in table.groupby("context")
}
for context, value in slope.items():
    print(f"context {context}: {value:+.1f} points per percent of alcohol")

right = (found["context"] == found["context"][likes_light.idxmax()]) == likes_light.loc[found.index]
print(f"{right.mean():.0%} of the critics are with those who share their taste")
