"""From a raw table to a decision: which clinics follow another rule, and which rule do new ones?

    python examples/worked_example.py

It writes its tables, the model and the report into the current folder; see
docs/how-to/worked-example.md. The measurements of 569 patients and their diagnoses are real: the
breast cancer data of Wisconsin, which come with scikit-learn. The clinics, to which the patients
are assigned at random, and the rules by which they call patients back are simulated.
"""

import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_breast_cancer

from leaflearn.cli.main import run

CLINICS = list("ABCDEFGHIJKLMNOPQRSTUV")
BY_TEXTURE = list("CFHKOQSU")  # call back if the texture is above 19; the others by the diagnosis
NEW = ["U", "V"]  # clinics that join later


def make_visits() -> pd.DataFrame:
    """A row per patient: clinic, ten measurements of cells, and whether they are called back."""
    data = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=0, ignore_index=True)
    names = {name: name[5:].replace(" ", "_") for name in data if name.startswith("mean ")}
    table = data[list(names)].rename(columns=names)
    table.insert(0, "clinic", np.array(CLINICS)[np.arange(len(table)) * len(CLINICS) // len(table)])
    table.insert(0, "patient", [f"P{number:03}" for number in range(1, len(table) + 1)])
    is_malignant, is_coarse = data["target"] == 0, table["texture"] > 19
    is_called = np.where(table["clinic"].isin(BY_TEXTURE), is_coarse, is_malignant)
    return table.assign(call_back=np.where(is_called, "yes", "no"))


def write_tables(visits: pd.DataFrame) -> None:
    """Training rows; six labelled patients of each new clinic; and their other patients."""
    is_new, is_early = visits["clinic"].isin(NEW), visits.groupby("clinic").cumcount() < 6
    visits[~is_new].to_csv("visits.csv", index=False)
    visits[is_new & is_early].to_csv("few.csv", index=False)
    visits[is_new & ~is_early].drop(columns="call_back").to_csv("new.csv", index=False)


def ask_clinic(visits: pd.DataFrame, clinic: str, n_patients: int) -> None:
    """Label the first patients on whom the contexts disagree, and add them to the labelled ones."""
    each = pd.read_csv("each.csv")
    is_disputed = (each["clinic"] == clinic) & (each["prediction_0"] != each["prediction_1"])
    is_asked = visits["patient"].isin(each["patient"][is_disputed].head(n_patients))
    pd.concat([pd.read_csv("few.csv"), visits[is_asked]]).to_csv("more.csv", index=False)


def call(command: str) -> None:
    """Run a command and print its output."""
    print(f"\n$ leaflearn {command}", flush=True)
    assert run(command.split()) == 0


def count_wrong(file: str, visits: pd.DataFrame) -> str:
    """The number of wrong predictions per new clinic, without the patients that were labelled."""
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
    print(f"\nWrong in the identified contexts: {count_wrong('answers.csv', visits)}.")
    print(f"Wrong if context 0 is used for both: {count_wrong('as-usual.csv', visits)}.")
