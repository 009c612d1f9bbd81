"""A Hugging Face data set of texts, labelled by people who judge by different things.

python examples/with_hugging_face_dataset.py

Thirty readers say whether they like a restaurant. Some go by the food and some by the price, and the data set does not say who.
With the library `datasets` installed this is a real data set, as `load_dataset` gives one; without, a stand-in shows what is asked of it.
"""

import numpy as np

from leaflearn.tabular.table_model import TableModel

try:
    from datasets import Dataset
except ImportError:

    class Dataset:
        """All that leaflearn asks of a table: the names of its columns, and a column by its name. A dict of columns will do as well."""

        def __init__(self, columns):
            self._columns, self.column_names = columns, list(columns)

        def __getitem__(self, name):
            return self._columns[name]

        @classmethod
        def from_dict(cls, columns):
            return cls(columns)


rng = np.random.default_rng(0)
by_price = rng.random(30) < 0.4  # the hidden context, for the last line only
reader, is_tasty, is_cheap = (
    np.repeat(np.arange(30), 20),
    rng.random(600) < 0.5,
    rng.random(600) < 0.5,
)
food, price = np.where(is_tasty, "delicious", "tasteless"), np.where(is_cheap, "cheap", "expensive")
texts = [
    f"The {dish} was {f} and the bill {p}."
    for dish, f, p in zip(rng.choice(["soup", "fish", "cake"], 600), food, price, strict=True)
]
likes = np.where(by_price[reader], is_cheap, is_tasty)
opinions = Dataset.from_dict(
    {
        "reader": [f"reader {r}" for r in reader],
        "text": texts,
        "opinion": np.where(likes, "like", "dislike").tolist(),
    }
)

# A data set in parts is fitted part by part: `load_dataset(...)["train"]`. Texts become features by their words.
model = TableModel("opinion", group="reader", local_model="linear", random_state=0).fit(opinions)
contexts = dict(
    zip(model.estimator_.groups_.tolist(), model.estimator_.contexts_.tolist(), strict=True)
)
print(f"{model.estimator_.n_contexts_} contexts; reader 0 is in context {contexts['reader 0']}")

# New texts in the context of a new reader, which three labelled texts tell. Here plain dicts of columns do for a data set.
few = {
    "text": [texts[i] for i in (0, 1, 2)],
    "opinion": ["like" if is_cheap[i] else "dislike" for i in (0, 1, 2)],
}
new = {
    "text": [
        "The soup was delicious and the bill expensive.",
        "The fish was tasteless and the bill cheap.",
    ]
}
for text, answer in zip(new["text"], model.predict(new, support=few)["prediction"], strict=True):
    print(f"{answer}: {text}")

# In real life a column more: opinions.add_column("context", [contexts[name] for name in opinions["reader"]])
found = np.array([contexts[f"reader {r}"] for r in range(30)])
print(
    f"{((found == found[by_price.argmax()]) == by_price).mean():.0%} of the readers are with those who judge as they do"
)
