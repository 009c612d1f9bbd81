"""The files of the experiments: every key is known and has an effect, at every scale."""

import copy
import re

import pytest

from leaflearn.benchmark.experiments.result_tables import TABLES_BY_KIND
from leaflearn.benchmark.experiments.spec import SCALES, Spec, check_spec, load_spec, spec_names

NAMES = {
    "fig-regression", "table1", "table2", "table-cross-noise", "table-in-noise", "table-gas",
    "fig-parameters", "table-extra-model", "table-time", "fig-iterations", "fig-features",
    "table-single", "table-identifiability", "fig-success",
}  # fmt: skip
CONTENT = {
    "title": "Mine", "source": "nowhere", "show": "errors", "n_seeds": 2,
    "methods": ["erm", "leaf"],
    "run": {
        "n_epochs": 3, "dataset": {"name": "functions"}, "sampler": {"group_size": 2},
        "network": {"name": "mlp", "hidden": [4]}, "optimizer": {"name": "sgd"},
    },
    "setting": [
        {"name": "a", "published": {"leaf": [1.0]}},
        {"name": "b", "run": {"sampler": {"group_size": 5}}},
    ],
    "method": {"leaf": {"method": {"n_contexts": 2}}},
    "smoke": {
        "n_seeds": 1, "run": {"n_epochs": 1}, "setting": {"b": {"dataset": {"name": "two-lines"}}},
    },
}  # fmt: skip


def test_every_table_and_figure_of_the_paper_is_there():
    assert set(spec_names()) >= NAMES


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", spec_names())
def test_every_key_is_known(name, scale):
    spec = load_spec(name, scale)
    assert spec.content["show"] in {*TABLES_BY_KIND, "success"}
    assert spec.content["title"]


@pytest.mark.parametrize("name", spec_names())
def test_a_remark_compares_with_the_paper(name):
    assert load_spec(name, "laptop").content["remark"].strip()


@pytest.mark.parametrize("name", spec_names())
def test_smoke_scale_needs_no_files(name):
    from leaflearn.benchmark.datasets import DATASETS

    assert all(
        DATASETS[run.settings["dataset"]["name"]].files is None
        for run in load_spec(name, "smoke").runs()
    )


def test_settings_methods_and_scales_change_the_run():
    runs = {
        (run.setting, run.method, run.seed): run.settings
        for run in Spec("mine", "paper", CONTENT).runs()
    }
    assert len(runs) == 8
    assert runs["a", "erm", 0]["sampler"] == {"group_size": 2}
    assert runs["b", "erm", 1]["sampler"] == {"group_size": 5}
    assert runs["a", "leaf", 0]["method"] == {"name": "leaf", "n_contexts": 2}
    small = {
        (run.setting, run.method, run.seed): run.settings
        for run in Spec("mine", "smoke", CONTENT).runs()
    }
    assert len(small) == 4
    assert small["a", "erm", 0]["n_epochs"] == 1
    assert small["b", "leaf", 0]["dataset"] == {"name": "two-lines"}


def test_equal_settings_are_the_same_run_in_every_table():
    first, other = (Spec(name, "paper", CONTENT) for name in ("one", "other"))
    assert [run.key for run in first.runs()] == [run.key for run in other.runs()]
    assert len({run.key for run in first.runs()}) == 8


@pytest.mark.parametrize(
    ("where", "key", "value", "message"),
    [
        ((), "epochs", 3, "'mine' has an unknown key `epochs`; known keys are "),
        (("run",), "epochs", 3, "'mine, a run' has an unknown key `epochs`; known keys are "),
        (
            ("run",),
            "slows_down",
            "yes",
            "`slows_down` in 'mine' must be of type bool; it is 'yes'.",
        ),
        (
            ("run", "sampler"),
            "grup_size",
            3,
            "sampler 'sampler' does not take `grup_size`; it takes group_size, ",
        ),
        (("run", "dataset"), "name", "function", "dataset 'function' is not known; choose one of "),
        (("run", "network"), "width", 3, "network 'mlp' does not take `width`; it takes hidden."),
        (
            ("run", "optimizer"),
            "lr",
            3,
            "optimizer 'sgd' does not take `lr`; it takes learning_rate, momentum, weight_decay.",
        ),
        (
            ("method", "leaf", "method"),
            "gate",
            "switch",
            "method 'leaf' does not take `gate`; it takes n_contexts.",
        ),
        (
            ("setting", 0),
            "publishd",
            {},
            "'mine, a' has an unknown key `publishd`; known keys are ",
        ),
        (
            ("setting", 0, "published"),
            "laef",
            [1],
            "'mine, a, published' has an unknown key `laef`; known keys are erm, leaf.",
        ),
        (("smoke",), "seeds", 3, "'mine, smoke' has an unknown key `seeds`; known keys are "),
        (
            ("smoke", "setting"),
            "bb",
            {"n_epochs": 2},
            "'mine, smoke, setting' has an unknown key `bb`; known keys are a, b.",
        ),
        (
            ("smoke",),
            "settings",
            ["a", "c"],
            "'mine, smoke, settings' has an unknown key `c`; known keys are a, b.",
        ),
        (
            ("method",),
            "laef",
            {},
            "'mine, method' has an unknown key `laef`; known keys are erm, leaf.",
        ),
        (
            ("run",),
            "measures",
            ["erors"],
            "'mine, measures' has an unknown key `erors`; known keys are answer time, curves, ",
        ),
        (
            (),
            "recovery",
            {"taks": []},
            "'mine, recovery' has an unknown key `taks`; known keys are first_seed, ",
        ),
        (
            ("setting", 0, "published"),
            "erm",
            [1, 2],
            "`published` in 'mine, a' must have equally many numbers for all methods.",
        ),
    ],
)
def test_an_unknown_key_is_refused_before_anything_runs(where, key, value, message):
    content = copy.deepcopy(CONTENT)
    place = content
    for step in where:
        place = place[step]
    place[key] = value
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        check_spec(Spec("mine", "smoke", content))
