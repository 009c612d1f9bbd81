"""A Hugging Face data set of texts, labelled by readers who judge by different criteria.

python examples/with_hugging_face_dataset.py

Thirty readers say whether they like a restaurant. Some judge by the food and some by the price,
and the data set does not say which. If the library `datasets` is installed, this is a real data
set, as returned by `load_dataset`; otherwise a stand-in shows which methods are needed.
"""

import numpy as np

from leaflearn.tabular.table_model import TableModel

try:
    from datasets import Dataset
except ImportError:

    class Dataset(dict):
        """What leaflearn needs of a table: names of columns, and a column for a name."""

        @property
        def column_names(self):
            return list(self)

        @classmethod
        def from_dict(cls, columns):
            return cls(columns)


rng = np.random.default_rng(0)
by_price = rng.random(30) < 0.4  # the hidden context, for the last line only
reader = np.repeat(np.arange(30), 20)
is_tasty, is_cheap = rng.random(600) < 0.5, rng.random(600) < 0.5
dish = rng.choice(["soup", "fish", "cake"], 600)
food, price = np.where(is_tasty, "delicious", "tasteless"), np.where(is_cheap, "cheap", "expensive")
words = zip(dish, food, price, strict=True)
texts = [f"The {dish} was {food} and the bill {price}." for dish, food, price in words]
opinion = np.where(np.where(by_price[reader], is_cheap, is_tasty), "like", "dislike").tolist()
readers = [f"reader {r}" for r in reader]
opinions = Dataset.from_dict({"reader": readers, "text": texts, "opinion": opinion})

# Pass one split of a data set: `load_dataset(...)["train"]`. Texts become features by their words.
model = TableModel("opinion", group="reader", local_model="linear", random_state=0).fit(opinions)
leaf = model.estimator_
contexts = dict(zip(leaf.groups_.tolist(), leaf.contexts_.tolist(), strict=True))
print(f"{leaf.n_contexts_} contexts; reader 0 is in context {contexts['reader 0']}")

# Three labelled texts identify the context of a new reader. Tables may also be dicts of columns.
few = {"text": texts[:3], "opinion": ["like" if cheap else "dislike" for cheap in is_cheap[:3]]}
new = ["The soup was delicious and the bill expensive."]
new += ["The fish was tasteless and the bill cheap."]
for text, answer in zip(new, model.predict({"text": new}, support=few)["prediction"], strict=True):
    print(f"{answer}: {text}")

# To add a column: opinions.add_column("context", [contexts[name] for name in opinions["reader"]])
found = np.array([contexts[f"reader {r}"] for r in range(30)])
right = (found == found[by_price.argmax()]) == by_price
print(f"{right.mean():.0%} of the readers are with those who judge as they do")
