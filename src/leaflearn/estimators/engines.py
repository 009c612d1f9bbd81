"""The two ways to fit: networks by gradient steps, and any scikit-learn model by refitting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from torch import nn

from leaflearn.conflict.columns import as_numbers
from leaflearn.conflict.criteria import Criteria
from leaflearn.conflict.reading import Reading
from leaflearn.conflict.start import Start, find_start
from leaflearn.conflict.wrong_labels import find_wrong_labels
from leaflearn.core.allocation import Given, Hard
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.losses import LOSSES, Loss
from leaflearn.core.refitting import refit
from leaflearn.core.row_losses import ClassRowLoss, Fitted, SquaredRowLoss
from leaflearn.core.training import Callback
from leaflearn.estimators.inputs import Scaling
from leaflearn.estimators.item_reading import ItemReading, find_items, start_from_items
from leaflearn.estimators.local_models import LocalModels, NetworkModels, RefittedModels, to_tensor
from leaflearn.estimators.progress import ProgressBar
from leaflearn.networks import mlp
from leaflearn.recipe import Recipe, fit_networks, learn_again, resolve_rule, seeded

FEW_FEATURES = 20
DEEP, WIDE = (64, 64, 64), (256,)  # widths of the default local model for few features, and for many


@dataclass(frozen=True)
class Examples:
    """Checked training data."""

    X: Any  #                                                                       (N, ...)
    y: NDArray[Any]  # class numbers (N,), or values (N, D)
    group: NDArray[np.intp]  #                                                      (N,) in 0..m-1
    row: NDArray[np.intp]  # number of the row in the user's data                   (N,)
    weight: NDArray[np.float64] | None  #                                           (N,)
    n_outputs: int  # classes, or values a row
    is_classifier: bool

    def without(self, rows: NDArray[np.bool_]) -> Examples:
        """The others; a group that would lose its last row keeps all."""
        left = np.bincount(self.group, ~rows)
        keep = np.flatnonzero(~rows | (left[self.group] == 0))
        weight = None if self.weight is None else self.weight[keep]
        X = _safe_indexing(self.X, keep)
        return replace(self, X=X, y=self.y[keep], group=self.group[keep], row=self.row[keep], weight=weight)


@dataclass(frozen=True)
class Fitting:
    """What an engine hands back."""

    local_models: LocalModels
    scores: NDArray[np.float64]  # summed loss of every model on every group        (m, K)
    history: dict[str, NDArray[Any]]
    restarts: list[dict[str, Any]]
    best_restart: int
    converged: bool
    constant_loss: float  # mean loss of the best constant prediction
    learn_again: Callable[[NDArray[np.intp], NDArray[np.intp], int], LocalModels]  # from some rows, the contexts (m,) known; and a seed
    init: str = "random"  # where the search began, and why
    selection: dict[str, NDArray[Any]] = field(default_factory=dict)  # what other numbers of contexts would have given


def choose_engine(local_model: Any) -> str:
    """Which engine fits this kind of local model: "mlp", "module" (a factory of the user's) or "refit".

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> choose_engine(None), choose_engine(Ridge()), choose_engine(lambda shape, n_outputs: ...)
    ('mlp', 'refit', 'module')
    """
    if local_model is None:
        return "mlp"
    if hasattr(local_model, "fit") and hasattr(local_model, "predict") and not isinstance(local_model, type):
        return "refit"
    if isinstance(local_model, nn.Module):
        raise TypeError("local_model is a torch module, but every context needs one of its own; pass a function or class that makes one.")
    if isinstance(local_model, type) and hasattr(local_model, "fit"):
        raise TypeError(f"local_model={local_model.__name__} is a class, but an object was expected; write {local_model.__name__}().")
    if callable(local_model):
        return "module"
    raise TypeError(
        f"local_model={local_model!r} is neither None, a factory (input_shape, n_outputs) -> torch.nn.Module, nor a scikit-learn estimator "
        "object; pass one of these."
    )


def fit_by_gradient(estimator: Any, examples: Examples, start: Start | None, random_state: np.random.RandomState) -> Fitting:
    """Networks: meta-batches of groups and an optimizer, several starts side by side."""
    device = resolve_device(estimator.device)
    # The default network stands between two scalings; a module of the user's sees the data in the user's units.
    is_own = estimator.local_model is None
    x_scaling = Scaling.of(examples.X) if is_own else None
    y_scaling = Scaling.of(examples.y) if is_own and not examples.is_classifier else None
    data = as_grouped(examples, x_scaling, y_scaling, device)
    loss = _resolve_loss(estimator.loss, examples.is_classifier)
    factory = make_factory(estimator.local_model, examples)
    with _progress_bar(estimator) as bar:
        recipe = make_recipe(estimator, [*(estimator.callbacks or []), bar])
        contexts = start.contexts if start is not None and start.is_trusted and starts_from_conflict(estimator) else None
        fit = fit_networks(factory, data, loss, estimator.n_contexts_, recipe, random_state, device, contexts)
    # In double precision the answer for a row does not depend on the rows that are asked with it.
    modules = [module.double() if is_own else module for module in fit.modules]
    local_models = NetworkModels(modules, loss, x_scaling, y_scaling, examples.is_classifier, device)
    constant = loss.of_best_constant(data.y)
    init = _describe_start(estimator, start, fit.kept_start)

    def again(rows: NDArray[np.intp], contexts: NDArray[np.intp], seed: int) -> LocalModels:
        kept, group = np.unique(examples.group[rows], return_inverse=True)
        part = GroupedExamples(data.x[rows], data.y[rows], torch.as_tensor(group), None if data.weight is None else data.weight[rows])
        return replace(local_models, models=learn_again(factory, part, loss, contexts[kept], estimator.n_contexts_, recipe, seed, device))

    return Fitting(
        local_models, fit.scores, fit.history, fit.restarts, fit.best_restart, fit.converged, constant, again, init, _selection(start)
    )


def as_grouped(examples: Examples, x_scaling: Scaling | None, y_scaling: Scaling | None, device: str) -> GroupedExamples:
    """The examples as networks see them: tensors in standard units.

    Examples
    --------
    >>> rows = Examples(np.zeros((2, 1)), np.array([0, 1]), np.array([0, 0]), np.arange(2), None, 2, True)
    >>> as_grouped(rows, None, None, "cpu").y
    tensor([0, 1])
    """
    y_type = torch.long if examples.is_classifier else torch.float32
    return GroupedExamples(
        to_tensor(x_scaling.apply(examples.X) if x_scaling else examples.X, torch.float32, device),
        to_tensor(y_scaling.apply(examples.y) if y_scaling else examples.y, y_type, device),
        torch.as_tensor(examples.group),
        None if examples.weight is None else to_tensor(examples.weight, torch.float32, device),
    )


def make_recipe(estimator: Any, callbacks: Sequence[Callback] = ()) -> Recipe:
    """The recipe that the estimator's parameters ask for.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> make_recipe(LeafRegressor(learning_rate=0.01)).learning_rate
    0.01
    """
    settings = {field.name: getattr(estimator, field.name) for field in fields(Recipe) if field.name not in ("callbacks", "stacked")}
    return Recipe(**settings, callbacks=callbacks)


def find_start_for(estimator: Any, examples: Examples, random_state: np.random.RandomState) -> Start | None:
    """Contexts read off the conflict, where the estimator asks for them."""
    is_open = estimator.n_contexts == "auto"
    x = as_numbers(examples.X) if (is_open or starts_from_conflict(estimator)) and estimator.n_contexts != 1 else None
    if x is None:
        return None
    n_classes = examples.n_outputs if examples.is_classifier else 0
    n_contexts = None if is_open else int(estimator.n_contexts)
    seed = int(random_state.randint(2**31 - 1))
    items = find_items(examples.X, examples.group)
    if items is not None:
        return start_from_items(items, examples.y, examples.group, n_contexts, n_classes, seed)
    try:
        start = find_start(x, examples.y, examples.group, n_contexts, n_classes, seed, estimator.init == "seeded")
        return _mark_wrong_labels(start, x, examples, seed) if examples.is_classifier and start.is_trusted else start
    except torch.linalg.LinAlgError:  # inputs so far apart that their equations cannot be solved: the search begins at random
        return None


def _mark_wrong_labels(start: Start, x: NDArray[np.floating], examples: Examples, seed: int) -> Start:
    """Labels that the rest of their context contradicts are set aside like rows of another context."""
    if np.bincount(examples.group).max() == 1:  # a group keeps its last row
        return start
    is_wrong = find_wrong_labels(x, examples.y, examples.group, start.contexts, seed)
    return replace(start, is_stranger=is_wrong if start.is_stranger is None else is_wrong | start.is_stranger)


def _describe_start(estimator: Any, start: Start | None, kept: bool) -> str:
    if start is None or not starts_from_conflict(estimator):
        return "random"
    return f"{start.kind if kept else 'random'}: {start.reason}" + ("" if kept or not start.is_trusted else ", but it did not hold")


def starts_from_conflict(estimator: Any) -> bool:
    """Does the estimator want its contexts read off the conflict, and not only their number?

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> starts_from_conflict(LeafRegressor()), starts_from_conflict(LeafRegressor(allocation="hard"))
    (True, False)
    """
    return estimator.init in ("conflict", "seeded") or (estimator.init == "auto" and estimator.allocation == "annealed")


def read_conflict(examples: Examples, random_state: np.random.RandomState) -> Reading | None:
    """The data as smooth models see them, or as mean answers to items do, for a second opinion; None where neither can."""
    x = as_numbers(examples.X) if np.bincount(examples.group).max() > 1 else None
    if x is None:
        return None
    seed = int(random_state.randint(2**31 - 1))
    n_classes, items = examples.n_outputs if examples.is_classifier else 0, find_items(examples.X, examples.group)
    if items is not None:
        return ItemReading.of_items(x, items, examples.y, examples.group, n_classes, seed)
    return Reading.of(x, examples.y, examples.group, n_classes, seed)


def _selection(start: Start | None) -> dict[str, NDArray[Any]]:
    counts = [] if start is None else start.counts
    columns: dict[str, list[Any]] = {
        "n_contexts": [c.n_contexts for c in counts],
        "error": [c.error for c in counts],
        "held_out": [c.mean for c in counts],
    }
    if start is not None and start.reading is not None:
        criteria = [start.reading.measure(c.n_contexts) for c in counts]
        columns |= {name: [getattr(c, name) for c in criteria] for name in Criteria._fields}
    return {name: np.array(column) for name, column in columns.items()}


def fit_by_refitting(estimator: Any, examples: Examples, start: Start | None, random_state: np.random.RandomState) -> Fitting:
    """Models that only know fit and predict: score, allocate, refit, until the allocation stands still."""
    if estimator.loss != "auto":
        raise ValueError(f"loss={estimator.loss!r} has no effect on a scikit-learn local model, which has its own; leave it at 'auto'.")
    n_classes = examples.n_outputs if examples.is_classifier else 0
    y = examples.y if examples.is_classifier or examples.n_outputs > 1 else examples.y[:, 0]
    is_probabilistic = hasattr(estimator.local_model, "predict_proba")
    row_losses = ClassRowLoss(n_classes, is_probabilistic) if n_classes else SquaredRowLoss(Scaling.of(y).scale)
    targets = torch.as_tensor(examples.y if n_classes else Scaling.of(examples.y).apply(examples.y))  # in the units of the row losses
    loss = _resolve_loss("auto", examples.is_classifier)
    is_trusted = start is not None and start.is_trusted and starts_from_conflict(estimator)
    # To anneal would forget the start: from there on the allocation is hard.
    rule = Hard() if is_trusted else resolve_rule(estimator.allocation, estimator.temperature, loss, targets)
    with _progress_bar(estimator) as bar:
        fit = refit(
            make_local_model(estimator.local_model),
            examples.X,
            y,
            examples.group,
            row_losses,
            rule,
            estimator.n_contexts_,
            n_init=1 if is_trusted and estimator.n_init == "auto" else estimator.n_init,
            start=start.contexts if start is not None and is_trusted else None,
            max_iter=estimator.max_epochs,
            out_of_fold=estimator.out_of_fold,
            trim=estimator.trim,
            sample_weight=examples.weight,
            take=_safe_indexing,
            rng=np.random.default_rng(random_state.randint(2**31 - 1)),
            on_iteration=lambda start, row: bar.update(f"start {start + 1}", row["epoch"], row["max_iter"], row["loss"], row["usage"]),
        )
    fitted = [Fitted(model, n_rows) for model, n_rows in zip(fit.models, fit.n_rows, strict=True)]
    best = [start["kept"] for start in fit.restarts].index(True)
    local_models = RefittedModels(fitted, row_losses, n_classes)
    # Without probabilities the loss is an error, and the best constant answer the commonest class.
    constant = loss.of_best_constant(targets) if is_probabilistic or not n_classes else 1.0 - np.bincount(y).max() / len(y)
    init = _describe_start(estimator, start, is_trusted)

    def again(rows: NDArray[np.intp], contexts: NDArray[np.intp], seed: int) -> LocalModels:
        kept, group = np.unique(examples.group[rows], return_inverse=True)
        found = refit(
            make_local_model(estimator.local_model),
            _safe_indexing(examples.X, rows),
            y[rows],
            group,
            row_losses,
            Given(torch.as_tensor(contexts[kept])),
            estimator.n_contexts_,
            n_init=1,
            start=contexts[kept],
            max_iter=1,
            out_of_fold=False,
            sample_weight=None if examples.weight is None else examples.weight[rows],
            take=_safe_indexing,
            rng=np.random.default_rng(seed),
        )
        return replace(local_models, fitted=[Fitted(*pair) for pair in zip(found.models, found.n_rows, strict=True)])

    return Fitting(local_models, fit.scores, fit.history, fit.restarts, best, fit.converged, constant, again, init, _selection(start))


def resolve_device(device: str) -> str:
    """The device that networks run on; "auto" takes a graphics card where there is one.

    Examples
    --------
    >>> resolve_device("cpu")
    'cpu'
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        raise ValueError(f"device={device!r} cannot be used here ({str(error).splitlines()[0]}); use 'auto' or 'cpu'.") from None
    return device


def _progress_bar(estimator: Any) -> ProgressBar:
    return ProgressBar(type(estimator).__name__, Console(stderr=True, quiet=not estimator.verbose))


def _resolve_loss(loss: str | Loss, is_classifier: bool) -> Loss:
    if not isinstance(loss, str):
        return loss
    suited = ("auto", "cross-entropy", "gce") if is_classifier else ("auto", "squared", "robust")
    if loss not in suited:
        task = "classification" if is_classifier else "regression"
        known = "exists, but not for" if loss in LOSSES else "is not known in"
        raise ValueError(f"loss={loss!r} {known} {task}; choose one of {', '.join(map(repr, suited))}, or pass a loss object.")
    return LOSSES[suited[1] if loss == "auto" else loss]()


def make_factory(local_model: Any, examples: Examples) -> Callable[[], nn.Module]:
    """What makes the networks: the default ones, or those of the user's factory, looked at once.

    Examples
    --------
    >>> rows = Examples(np.zeros((2, 3)), np.zeros((2, 1)), np.array([0, 0]), np.arange(2), None, 1, False)
    >>> make_factory(None, rows)()[0]
    Linear(in_features=3, out_features=64, bias=True)
    """
    input_shape = examples.X.shape[1:]
    if local_model is None:
        return lambda: mlp(input_shape[0], examples.n_outputs, DEEP if input_shape[0] <= FEW_FEATURES else WIDE).float()
    with seeded(0):  # a look at one module must not move the global generator
        module = local_model(input_shape, examples.n_outputs)
    if not isinstance(module, nn.Module):
        raise TypeError(f"local_model(input_shape, n_outputs) gave {module!r}, but a torch.nn.Module was expected.")
    try:
        with torch.no_grad():
            shape = tuple(module.eval()(torch.as_tensor(examples.X[:1], dtype=torch.float32)).shape)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"the module of local_model({tuple(input_shape)}, {examples.n_outputs}) cannot take one row of X: {reason}."
        ) from error
    if shape != (1, examples.n_outputs):
        raise ValueError(
            f"the module of local_model({tuple(input_shape)}, {examples.n_outputs}) answers one row with shape {shape}, "
            f"but (1, {examples.n_outputs}) was expected; let its last layer have n_outputs units."
        )
    return lambda: local_model(input_shape, examples.n_outputs)


def make_local_model(local_model: Any) -> Callable[[int], Any]:
    """What makes unfitted copies of a scikit-learn model, from a seed.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> make_local_model(DecisionTreeRegressor())(7)
    DecisionTreeRegressor(random_state=7)
    """
    seeds = [name for name in local_model.get_params(deep=True) if name == "random_state" or name.endswith("__random_state")]
    return lambda seed: clone(local_model).set_params(**dict.fromkeys(seeds, int(seed)))


ENGINES = {"mlp": fit_by_gradient, "module": fit_by_gradient, "refit": fit_by_refitting}
