"""Loading.

Old folders keep loading, foreign ones are refused in a sentence, and no code of theirs is run.
"""

import json
import os
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression
from torch import nn

import leaflearn
from leaflearn import LeafClassifier, LeafRegressor
from leaflearn.core.losses import SquaredError
from leaflearn.core.training import Callback
from leaflearn.persistence import (
    pack_objects,
    pack_tensors,
    read_model,
    unpack_tensors,
    write_model,
)

SAVED = Path(__file__).parent / "saved"  # its README says how these were made
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X @ [2.0, 1.0]
GROUPS = np.repeat(np.arange(8), 5)


def chain(input_shape, n_outputs):
    return nn.Sequential(nn.Linear(input_shape[0], 4), nn.ReLU(), nn.Linear(4, n_outputs))


class Half(SquaredError):
    """A loss of the user's own."""

    def __call__(self, prediction, y):
        return 0.5 * super().__call__(prediction, y)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model of each kind, saved once."""
    parent, quick = tmp_path_factory.mktemp("models"), {"max_epochs": 2, "random_state": 0}
    LeafRegressor(1, **quick).fit(X, Y, GROUPS).save(parent / "mlp")
    LeafRegressor(1, local_model=chain, loss=Half(), optimizer=torch.optim.RMSprop, **quick).fit(
        X, Y, GROUPS
    ).save(parent / "module")
    LeafClassifier(1, local_model=LogisticRegression()).fit(X, Y > 0, GROUPS).save(parent / "refit")
    return parent


@pytest.fixture
def model(folders):
    return lambda kind: read_model(folders / kind)


def write(model, folder, section=None, parts=None):
    """The same model with other entries of its estimator, or other parts.

    And with checksums that fit.
    """
    write_model(
        folder,
        {"estimator": {**model.sections["estimator"], **(section or {})}},
        {**model.parts, **(parts or {})},
    )
    return folder


def refused(folder, sentence, **parameters):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        leaflearn.load(folder, **parameters)


# ---- old folders keep loading --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", sorted(path.name for path in SAVED.glob("version-*") if path.is_dir())
)
def test_folders_of_every_version_answer_as_they_did(name):
    leaf = leaflearn.load(SAVED / name)
    expected = json.loads((SAVED / f"{name}.json").read_text(encoding="utf-8"))
    rows = np.array(expected["X"])
    each = leaf.predict_proba_each(rows) if hasattr(leaf, "classes_") else leaf.predict_each(rows)
    np.testing.assert_allclose(each, expected["each"], rtol=1e-9, atol=1e-12)
    assert leaf.predict(rows, groups=expected["groups"]).tolist() == pytest.approx(
        expected["predict"]
    )
    found = leaf.identify(rows, expected["y"], expected["groups"])
    assert found.context.tolist() == expected["context"]
    np.testing.assert_allclose(found.novelty, expected["novelty"], rtol=1e-9)
    assert (leaf.n_contexts_, leaf.groups_.tolist(), leaf.init_) == (
        expected["n_contexts"],
        expected["all_groups"],
        expected["init"],
    )
    assert leaf.prune(redundant=False).n_contexts_ == expected["n_contexts"]
    assert leaf.fitted_state_.effects is None  # the versions so far had no group effects
    assert not hasattr(leaf, "group_effects_")


def test_a_model_with_effects_whose_pieces_do_not_fit_together_is_refused(tmp_path):
    leaf = LeafRegressor(1, local_model="linear").fit(X, Y, GROUPS)
    state = leaf.fitted_state_
    sound = state.effects
    for name in ("effects", "products", "sums"):
        effects = replace(sound, **{name: getattr(sound, name)[:-1]})
        leaf.fitted_state_ = replace(state, effects=effects)
        leaf.save(tmp_path / name)
        with pytest.raises(ValueError, match=r"^The model folder does not describe an estimator"):
            leaflearn.load(tmp_path / name)


def test_a_model_without_the_sums_of_its_groups_predicts_but_cannot_be_updated(tmp_path):
    leaf = LeafRegressor(1, local_model="linear").fit(X, Y, GROUPS)
    state = leaf.fitted_state_
    leaf.fitted_state_ = replace(state, effects=replace(state.effects, sums=None))
    leaf.save(tmp_path / "model")
    again = leaflearn.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X, groups=GROUPS), leaf.predict(X, groups=GROUPS))
    with pytest.raises(ValueError) as error:  # noqa: PT011
        again.partial_fit(X, Y, groups=GROUPS)
    assert str(error.value) == (
        "the model was saved by a version that did not store the sums of its groups, so it cannot "
        "be updated; fit again."
    )


# ---- what the caller passes ----------------------------------------------------------------------


def test_code_of_the_users_has_to_be_passed_again(folders):
    folder = folders / "module"
    refused(
        folder,
        r"The model was saved with local_model=chain, which is code and not in the folder; pass it"
        r" again: local_model=...",
    )
    given = {"local_model": chain}
    refused(
        folder,
        r"The model was saved with loss=Half, which is code and not in the folder; pass it again:"
        r" loss=...",
        **given,
    )
    given["loss"] = Half()
    refused(
        folder,
        r"The model was saved with optimizer=RMSprop, which is code and not in the folder; pass it"
        r" again: optimizer=...",
        **given,
    )
    callback = Callback()
    leaf = leaflearn.load(folder, **given, optimizer=torch.optim.RMSprop, callbacks=[callback])
    assert (leaf.local_model, leaf.optimizer, leaf.callbacks) == (
        chain,
        torch.optim.RMSprop,
        [callback],
    )
    assert isinstance(leaf.fitted_state_.local_models.loss, Half)


def test_a_factory_that_does_not_fit_is_named(folders):
    given = {"loss": Half(), "optimizer": torch.optim.RMSprop}

    def wider(input_shape, n_outputs):
        return nn.Sequential(nn.Linear(input_shape[0], 5), nn.ReLU(), nn.Linear(5, n_outputs))

    end = r"\); pass the factory of the fit."
    refused(
        folders / "module",
        rf"The weights do not fit the modules of local_model \(.*size mismatch.*{end}",
        local_model=wider,
        **given,
    )
    doubled = (
        rf"The weights do not fit the modules of local_model \(the numbers are of another type{end}"
    )
    refused(
        folders / "module", doubled, local_model=lambda *shapes: chain(*shapes).double(), **given
    )
    with pytest.raises(
        TypeError,
        match=(
            r"^local_model\(input_shape, n_outputs\) gave 3, but a torch.nn.Module was expected.$"
        ),
    ):
        leaflearn.load(folders / "module", local_model=lambda *shapes: 3, **given)


def test_parameters_that_cannot_be_meant_are_refused(folders):
    refused(
        folders / "mlp", r"n_models is no parameter of LeafRegressor; leave it out.", n_models=3
    )
    for kind in ("mlp", "refit"):
        sentence = (
            r"local_model was given, but the folder holds the local models themselves; leave it"
            r" out."
        )
        refused(folders / kind, sentence, local_model=chain)
    sentence = (
        r"local_model=LinearRegression\(\), but a factory of torch modules was expected, the one of"
        r" the fit."
    )
    refused(folders / "module", sentence, local_model=LinearRegression())
    refused(
        folders / "mlp",
        r"device='cuda:9' cannot be used here \(.*\); use 'auto' or 'cpu'.",
        device="cuda:9",
    )
    assert leaflearn.load(folders / "mlp", device="cpu", verbose=1).verbose == 1


# ---- what a folder may not do --------------------------------------------------------------------


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["mlp", "refit"])
def test_a_pickle_in_place_of_a_part_is_not_run(model, kind, tmp_path):
    harm = pickle.dumps(Harmful(tmp_path / "made"))
    for name in model(kind).parts:
        write(model(kind), tmp_path / "model", parts={name: harm})
        refused(
            tmp_path / "model",
            rf"{re.escape(name)} is a pickle, and pickles can run code, so it was not read; get a"
            r" fresh copy of .*",
        )
    assert os.listdir(tmp_path) == ["model"]


def test_other_types_in_skops_are_refused_on_loading(model, tmp_path):
    class_name = f"{__name__}.Mine"
    content = pack_objects(
        {"local_model": Mine(), "fitted": [Mine()]}, "the example", also=[class_name]
    )
    folder = tmp_path / "model"
    write(model("refit"), folder, parts={"local-models.skops": content})
    refused(
        folder,
        rf"local-models.skops holds {re.escape(class_name)}, which is not trusted in a model"
        r" folder; choose .* without it.",
    )


class Mine(LogisticRegression):
    """A class that no list can name."""


@pytest.mark.parametrize("name", ["os.system", "Mine", "BaseLeaf", "", None, ["LeafRegressor"]])
def test_no_class_is_looked_up_by_the_name_in_the_file(model, name, tmp_path):
    write(model("mlp"), tmp_path / "model", {"class": name})
    refused(
        tmp_path / "model",
        r"The model folder does not describe an estimator of leaflearn \((KeyError|TypeError):"
        r" .*\); get a fresh .*",
    )


def test_no_attribute_is_set_that_is_not_in_the_list(model, tmp_path):
    fitted = {
        **model("mlp").sections["estimator"]["fitted"],
        "predict": 3,
        "__class__": "x",
        "_engine": "refit",
    }
    leaf = leaflearn.load(write(model("mlp"), tmp_path / "model", {"fitted": fitted}))
    assert callable(leaf.predict)
    assert type(leaf) is LeafRegressor


def other(section, path, value):
    """A copy of a section with another value at that path."""
    section = json.loads(json.dumps(section))
    inner = section
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return section


VALUES = {"$values": ["int64", [1], [7]]}
WRONG = {
    "no parameters": (["parameters"], None),
    "a parameter less": (["parameters"], {}),
    "an unknown object": (["parameters", "allocation"], {"$object": ["system", {}]}),
    "no state": (["fitted"], None),
    "state of nothing": (["fitted"], {}),
    "more contexts than there are": (["fitted", "n_contexts_"], 2),
    "contexts in words": (["fitted", "n_contexts_"], "one"),
    "contexts that are not there": (
        ["fitted", "contexts_"],
        {"$values": ["int64", [8], [0] * 7 + [1]]},
    ),
    "negative contexts": (["fitted", "contexts_"], {"$values": ["int64", [8], [0] * 7 + [-1]]}),
    "too few contexts": (["fitted", "contexts_"], VALUES),
    "too few scores": (["fitted", "_scores"], VALUES),
    "no array": (["fitted", "_scores"], {"$array": "somewhere"}),
    "no held-out rows": (["fitted", "_held_out"], None),
    "memory of other groups": (["memory", "group"], {"$values": ["int64", [40], [99] * 40]}),
    "memory of another length": (["memory", "group"], VALUES),
    "memory of nothing": (["memory"], {}),
    "an unknown kind": (["local_models", "kind"], "torch"),
    "modules without a factory": (["local_models", "kind"], "module"),
    "no kind": (["local_models"], {}),
    "huge networks": (["local_models", "hidden"], [2**40, 2**40]),
    "more networks": (["local_models", "n_models"], 2),
    "no networks": (["local_models", "n_models"], 0),
    "other outputs": (["local_models", "n_outputs"], 3),
    "no scaling": (["local_models", "x_scaling"], {"$object": ["Scaling", {"center": 1}]}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_description_that_does_not_hold_together_is_refused(model, case, tmp_path):
    write(model("mlp"), tmp_path / "model", other(model("mlp").sections["estimator"], *WRONG[case]))
    with pytest.raises(
        ValueError,
        match=(
            r"^(The model folder does not describe|The model was saved|The weights do not"
            r" fit|local_model)"
        ),
    ) as caught:
        leaflearn.load(tmp_path / "model")
    assert "\n" not in str(caught.value)


def test_weights_of_another_precision_are_refused(model, tmp_path):
    halves = {
        name: tensor.half()
        for name, tensor in unpack_tensors(model("mlp").part("weights.safetensors"), "").items()
    }
    write(model("mlp"), tmp_path / "model", parts={"weights.safetensors": pack_tensors(halves)})
    refused(
        tmp_path / "model",
        r"The model folder does not describe local models of leaflearn \(ValueError: the default"
        r" network predicts in .*",
    )


def test_a_folder_without_an_estimator_is_named(tmp_path):
    write_model(tmp_path / "model", {"preparation": {}}, {})
    refused(
        tmp_path / "model",
        r"The model folder holds no estimator; give one that an estimator's save wrote.",
    )


def test_a_missing_part_is_named(model, tmp_path):
    parts = {
        name: content
        for name, content in model("mlp").parts.items()
        if name != "weights.safetensors"
    }
    write_model(tmp_path / "model", model("mlp").sections, parts)
    refused(
        tmp_path / "model",
        r"The model has no part 'weights.safetensors', which model.json should name; save it"
        r" again.",
    )


def test_sections_and_parts_of_others_do_not_disturb(model, folders, tmp_path):
    write_model(
        tmp_path / "model",
        {**model("mlp").sections, "preparation": {"columns": ["a"]}},
        {**model("mlp").parts, "preparation.skops": b""},
    )
    np.testing.assert_array_equal(
        leaflearn.load(tmp_path / "model").predict(X), leaflearn.load(folders / "mlp").predict(X)
    )
