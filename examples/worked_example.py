"""From a raw table to a decision, on real measurements: which clinics follow another rule, and what becomes of two new ones.

    python examples/worked_example.py

It writes its tables, the model and the report into the folder where it is run. docs/how-to/worked-example.md tells the story.

Real: the measurements of 569 patients and their diagnoses, from the breast cancer data of Wisconsin that come with scikit-learn.
Made: the clinics, among which the patients are dealt out at random, and the rule by which each of them calls patients back.
"""

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_breast_cancer

from leaflearn.cli.main import run

CLINICS = list("ABCDEFGHIJKLMNOPQRSTUV")
BY_TEXTURE = list(
    "CFHKOQSU"
)  # they call back whoever has a texture above 19; the others go by the diagnosis. No table says so.
NEW = ["U", "V"]  # clinics that come later


def make_visits() -> pd.DataFrame:
    """A row for each patient: who, where, ten measurements of the cells, and whether the clinic called the patient back."""
    data = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=0, ignore_index=True)
    table = data.filter(regex="^mean ").rename(
        columns=lambda name: name.removeprefix("mean ").replace(" ", "_")
    )
    table.insert(0, "clinic", np.array(CLINICS)[np.arange(len(table)) * len(CLINICS) // len(table)])
    table.insert(0, "patient", [f"P{number:03}" for number in range(1, len(table) + 1)])
    is_malignant, is_coarse = data["target"] == 0, table["texture"] > 19
    table["call_back"] = np.where(
        np.where(table["clinic"].isin(BY_TEXTURE), is_coarse, is_malignant), "yes", "no"
    )
    return table


def write_tables(visits: pd.DataFrame) -> None:
    """What there is to learn from; of each new clinic, six patients with an answer; and the others, without."""
    is_new, is_early = visits["clinic"].isin(NEW), visits.groupby("clinic").cumcount() < 6
    visits[~is_new].to_csv("visits.csv", index=False)
    visits[is_new & is_early].to_csv("few.csv", index=False)
    visits[is_new & ~is_early].drop(columns="call_back").to_csv("new.csv", index=False)


def ask_clinic(visits: pd.DataFrame, clinic: str, n_patients: int) -> None:
    """Have the clinic answer for the first patients about whom the contexts disagree, and put them with those it has answered."""
    each = pd.read_csv("each.csv")
    telling = each["patient"][
        (each["clinic"] == clinic) & (each["prediction_0"] != each["prediction_1"])
    ].head(n_patients)
    pd.concat([pd.read_csv("few.csv"), visits[visits["patient"].isin(telling)]]).to_csv(
        "more.csv", index=False
    )


def call(command: str) -> None:
    """The command as one would type it, and what it says."""
    print(f"\n$ leaflearn {command}", flush=True)
    assert run(command.split()) == 0


def count_wrong(file: str, visits: pd.DataFrame) -> str:
    """In how many answers of a file a new clinic would have said otherwise, the patients it was asked about left out."""
    answers = pd.read_csv(file).merge(visits[["patient", "call_back"]])
    answers = answers[~answers["patient"].isin(pd.read_csv("more.csv")["patient"])]
    wrong = (answers["prediction"] != answers["call_back"]).groupby(answers["clinic"])
    return ", ".join(f"{rows.sum()} of {len(rows)} at clinic {clinic}" for clinic, rows in wrong)


if __name__ == "__main__":
    torch.set_num_threads(1)
    visits = make_visits()
    write_tables(visits)
    call("fit visits.csv --target call_back --group clinic --report report.html -o model")
    call("show model")
    call("identify model few.csv")
    call("predict model new.csv --each -o each.csv")
    ask_clinic(visits, "U", n_patients=3)
    call("identify model more.csv")
    call("predict model new.csv --support more.csv -o answers.csv")
    call("predict model new.csv --context 0 -o as-usual.csv")
    print(f"\nWrong in their own contexts: {count_wrong('answers.csv', visits)}.")
    print(f"Wrong where both are answered as usual: {count_wrong('as-usual.csv', visits)}.")
