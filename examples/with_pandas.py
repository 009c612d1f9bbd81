"""A frame of pandas with columns of every kind, and the context of each group as a frame beside it.

python examples/with_pandas.py

Twenty-four critics score wines. Some like them strong and some like them light, and the table does not say who.
"""

import numpy as np
import pandas as pd

from leaflearn.tabular.table_model import TableModel

rng = np.random.default_rng(0)
critics = pd.Index([f"critic {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWX"])
likes_light = pd.Series(
    rng.random(24) < 0.4, index=critics
)  # the hidden context, for the last line only

# The table as it may come out of a database: numbers, words, dates, and holes.
table = pd.DataFrame({"critic": critics.repeat(12)})
table["alcohol"] = rng.normal(12.5, 1.0, len(table)).round(1)
table["colour"] = rng.choice(["red", "white"], len(table))
table["tasted"] = rng.choice(pd.date_range("2026-01-01", periods=90), len(table))
sign = np.where(table["critic"].map(likes_light), -1.0, 1.0)
table["score"] = (
    80
    + 4 * sign * (table["alcohol"] - 12.5)
    + 3 * (table["colour"] == "red")
    + rng.normal(0, 1, len(table))
)
table.loc[rng.choice(len(table), 20, replace=False), "colour"] = None

# The rows of one critic share a context; how many contexts there are is read off the data.
model = TableModel("score", group="critic", local_model="linear", random_state=0).fit(table)

# The contexts of the critics: a frame with the name of the critic as its index, as `groupby` makes them.
found = pd.DataFrame(
    {
        "context": model.estimator_.contexts_,
        "probability": model.estimator_.probabilities_.max(axis=1),
    },
    index=pd.Index(model.estimator_.groups_, name="critic"),
)
summary = table.groupby("critic")["score"].agg(["size", "mean"]).join(found)
print(summary.round(2).to_string(max_rows=6))

# A column beside each row of the table, and what the context answers there.
table["context"] = table["critic"].map(found["context"])
table["expected"] = model.predict(table, by_group=True)["prediction"]
slope = {
    context: np.polyfit(rows["alcohol"], rows["expected"], 1)[0]
    for context, rows in table.groupby("context")
}
print(
    {
        f"context {context}": f"{value:+.1f} points for a percent of alcohol"
        for context, value in slope.items()
    }
)

right = (found["context"] == found["context"][likes_light.idxmax()]) == likes_light.loc[found.index]
print(f"{right.mean():.0%} of the critics are with those who share their taste")
