"""A recipe: every choice of a training run in one place, and what `"auto"` means for each.

`make_recipe` collects an estimator's parameters, `train` runs one `Training` as the recipe says.
Below them is what the choices resolve to: allocation rule, loss, optimizer, number of starts and
epochs, device, data as tensors, and the network of a context.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from leaflearn.core import settings as core_settings
from leaflearn.core.allocation import RULES, Annealed, Rule, make_rule
from leaflearn.core.batches import GroupedExamples
from leaflearn.core.grouped_data import GroupedData
from leaflearn.core.losses import LOSSES, CrossEntropy, GeneralizedCrossEntropy, Loss
from leaflearn.core.model_set import Factory, ModelSet, count_parameters
from leaflearn.core.training import Callback, Schedule, Training
from leaflearn.engines import settings
from leaflearn.engines.local_models import Scaling, to_tensor
from leaflearn.engines.networks import mlp
from leaflearn.engines.parameters import MakeOptimizer, Parameters

OPTIMIZERS: dict[str, MakeOptimizer] = {
    "adam": partial(torch.optim.Adam, fused=True),
    "adamw": partial(torch.optim.AdamW, fused=True),
    "sgd": partial(  # the paper's, in regression
        torch.optim.SGD, momentum=0.9, weight_decay=1e-4, fused=True
    ),
}


@dataclass(frozen=True)
class Recipe:
    """How to train networks: the parameters of an estimator that concern training.

    Examples
    --------
    >>> Recipe(max_epochs=5).allocation
    'annealed'
    """

    allocation: str | Rule = "annealed"
    temperature: float | str = "auto"
    n_init: int | str = "auto"
    optimizer: str | MakeOptimizer = "adamw"
    learning_rate: float = 0.003
    schedule: str | Schedule = "cosine"
    max_epochs: int | str = "auto"
    groups_per_step: int = 32
    rows_per_group: int | None = 32
    max_grad_norm: float | None = None
    trim: float = 0.0
    tol: float = 1e-4
    n_iter_no_change: int | None = 20
    refresh: bool = True
    stacked: bool | None = None
    callbacks: Sequence[Callback] = ()


def make_recipe(parameters: Parameters, callbacks: Sequence[Callback] = ()) -> Recipe:
    """The recipe that an estimator's parameters ask for.

    Examples
    --------
    >>> from leaflearn import LeafRegressor
    >>> make_recipe(LeafRegressor(learning_rate=0.01)).learning_rate
    0.01
    """
    names = [field.name for field in fields(Recipe) if field.name not in ("callbacks", "stacked")]
    return Recipe(**{name: getattr(parameters, name) for name in names}, callbacks=callbacks)


def train(
    models: ModelSet,
    data: GroupedExamples,
    loss: Loss,
    rule: Rule,
    recipe: Recipe,
    generator: torch.Generator,
    stage: str,
) -> Training:
    """Train the models on the data; callbacks read the name of the stage.

    Examples
    --------
    >>> from leaflearn.core.allocation import Hard
    >>> from leaflearn.core.losses import SquaredError
    >>> from leaflearn.core.model_set import make_model_set
    >>> data = GroupedExamples(torch.zeros(2, 1), torch.zeros(2, 1), torch.arange(2))
    >>> models = make_model_set(lambda: torch.nn.Linear(1, 1), (2,))
    >>> recipe = Recipe(max_epochs=5)
    >>> train(models, data, SquaredError(), Hard(), recipe, torch.Generator(), "training").epoch
    5
    """
    return Training(
        models,
        data,
        loss,
        rule,
        _make_optimizer(recipe, models.parameters()),
        max_epochs=count_epochs(recipe, data.n_groups),
        groups_per_step=recipe.groups_per_step,
        rows_per_group=recipe.rows_per_group,
        schedule=recipe.schedule,
        tol=recipe.tol,
        n_iter_no_change=recipe.n_iter_no_change,
        max_grad_norm=recipe.max_grad_norm,
        trim=recipe.trim,
        generator=generator,
        callbacks=recipe.callbacks,
        stage=stage,
    ).run()


def resolve_rule(allocation: str | Rule, temperature: float | str, loss: Loss, y: Tensor) -> Rule:
    """The allocation rule by its name, with a temperature that suits the data where it is "auto".

    Annealing starts at half the loss of the best constant prediction. The other rules have the
    paper's temperatures: 1 for cross-entropy, 0.1 for squared error (Appendix D).

    Examples
    --------
    >>> import torch
    >>> from leaflearn.core.losses import SquaredError
    >>> resolve_rule("annealed", "auto", SquaredError(), torch.tensor([[0.0], [2.0]]))
    Annealed(start=0.5, until=0.75)
    """
    if not isinstance(allocation, str):
        return allocation
    if allocation not in RULES:
        raise ValueError(
            f"allocation={allocation!r} is not known; choose one of "
            f"{', '.join(map(repr, RULES))}, or pass a rule object."
        )
    if isinstance(temperature, str):
        if allocation == "annealed":
            # Constant targets have no loss to explain, so any temperature will do.
            temperature = settings.TRAINING.start_temperature * loss.of_best_constant(y) or 1.0
        else:
            is_entropy = isinstance(loss, CrossEntropy | GeneralizedCrossEntropy)
            temperature = settings.TRAINING.paper_temperatures[0 if is_entropy else 1]
    return make_rule(allocation, temperature)


def vary_temperature(rule: Rule, recipe: Recipe, n_starts: int) -> Rule:
    """The rule with another start temperature for each start, unless the user chose one.

    Where contexts overlap, a soft start finds them and a hard one gets stuck. With many inputs and
    few rows per context it is the other way round. Which start was better shows in its loss.

    Examples
    --------
    >>> vary_temperature(Annealed(0.5), Recipe(), n_starts=2).start.ravel()
    tensor([0.5000, 1.0000])
    """
    if not isinstance(rule, Annealed) or recipe.temperature != "auto" or n_starts == 1:
        return rule
    factors = torch.tensor(settings.TRAINING.start_temperatures).repeat(n_starts)[:n_starts]
    return Annealed(rule.start * factors[:, None, None], rule.until)


def count_starts(n_init: int | str, factory: Factory, n_small: int) -> int:
    """How many starts run side by side: `n_init`, else `n_small` of small networks, one of large.

    Examples
    --------
    >>> count_starts("auto", lambda: nn.Linear(1, 1), 5)
    5
    >>> count_starts("auto", lambda: nn.Linear(1000, 1000), 5)
    1
    """
    if not isinstance(n_init, str):
        return n_init
    is_small = count_parameters(factory()) <= core_settings.CORE.max_stacked_parameters
    return n_small if is_small else 1


def count_epochs(recipe: Recipe, n_groups: int) -> int:
    """Passes over the groups in a stage: `max_epochs`, else enough for a number of steps.

    Examples
    --------
    >>> [count_epochs(Recipe(), n_groups) for n_groups in (32, 64, 6400)]
    [2000, 1000, 20]
    """
    if not isinstance(recipe.max_epochs, str):
        return recipe.max_epochs
    steps_per_epoch = math.ceil(n_groups / recipe.groups_per_step)
    return max(settings.TRAINING.min_epochs, math.ceil(settings.TRAINING.n_steps / steps_per_epoch))


def _make_optimizer(recipe: Recipe, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    make = OPTIMIZERS[recipe.optimizer] if isinstance(recipe.optimizer, str) else recipe.optimizer
    return make(parameters, lr=recipe.learning_rate)


@contextmanager
def seeded(seed: int, device: str | torch.device = "cpu") -> Iterator[None]:
    """Seed torch's global generator, which layers and dropout use, and restore it afterwards.

    Examples
    --------
    >>> with seeded(0):
    ...     _ = torch.rand(1)
    """
    with torch.random.fork_rng(devices=[device] if torch.device(device).type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def resolve_device(device: str) -> str:
    """The device that networks run on; "auto" uses a graphics card where there is one.

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
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device={device!r} cannot be used here ({reason}); use 'auto' or 'cpu'."
        ) from None
    return device


def resolve_loss(loss: str | Loss, is_classifier: bool) -> Loss:
    """The loss by its name, where it suits the task.

    Examples
    --------
    >>> resolve_loss("auto", is_classifier=True)
    CrossEntropy()
    """
    if not isinstance(loss, str):
        return loss
    suited = ("auto", "cross-entropy", "gce") if is_classifier else ("auto", "squared", "robust")
    if loss not in suited:
        task = "classification" if is_classifier else "regression"
        known = "exists, but not for" if loss in LOSSES else "is not known in"
        raise ValueError(
            f"loss={loss!r} {known} {task}; choose one of {', '.join(map(repr, suited))}, or pass "
            "a loss object."
        )
    return LOSSES[suited[1] if loss == "auto" else loss]()


def to_grouped_tensors(
    data: GroupedData, x_scaling: Scaling | None, y_scaling: Scaling | None, device: str
) -> GroupedExamples:
    """The rows as tensors in standard units, as networks see them.

    Examples
    --------
    >>> import numpy as np
    >>> y, group = np.array([0, 1]), np.array([0, 0])
    >>> rows = GroupedData(np.zeros((2, 1)), y, group, np.arange(2), None, 2, True)
    >>> to_grouped_tensors(rows, None, None, "cpu").y
    tensor([0, 1])
    """
    y_type = torch.long if data.is_classifier else torch.float32
    return GroupedExamples(
        to_tensor(x_scaling.apply(data.X) if x_scaling else data.X, torch.float32, device),
        to_tensor(y_scaling.apply(data.y) if y_scaling else data.y, y_type, device),
        torch.as_tensor(data.group),
        None if data.weight is None else to_tensor(data.weight, torch.float32, device),
    )


def make_factory(local_model: Any, data: GroupedData) -> Callable[[], nn.Module]:
    """Makes the network of a context: the default one, or that of the user's factory.

    Examples
    --------
    >>> import numpy as np
    >>> group, row = np.array([0, 0]), np.arange(2)
    >>> rows = GroupedData(np.zeros((2, 3)), np.zeros((2, 1)), group, row, None, 1, False)
    >>> make_factory(None, rows)()[0]
    Linear(in_features=3, out_features=64, bias=True)
    """
    input_shape = data.X.shape[1:]
    if local_model in (None, "mlp"):
        few = input_shape[0] <= settings.TRAINING.n_few_features
        hidden = settings.TRAINING.hidden_few if few else settings.TRAINING.hidden_many
        return lambda: mlp(input_shape[0], data.n_outputs, hidden).float()
    with seeded(0):  # checking one module must not change the global generator
        module = local_model(input_shape, data.n_outputs)
    _check_module(module, data)
    return lambda: local_model(input_shape, data.n_outputs)


def _check_module(module: Any, data: GroupedData) -> None:
    """Refuse anything but a module that maps a row to as many numbers as there are outputs."""
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"local_model(input_shape, n_outputs) gave {module!r}, but a torch.nn.Module was "
            "expected."
        )
    called = f"the module of local_model({tuple(data.X.shape[1:])}, {data.n_outputs})"
    try:
        with torch.no_grad():
            shape = tuple(module.eval()(torch.as_tensor(data.X[:1], dtype=torch.float32)).shape)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{called} cannot take one row of X: {reason}.") from error
    if shape != (1, data.n_outputs):
        raise ValueError(
            f"{called} maps one row to shape {shape}, but (1, {data.n_outputs}) was expected; let "
            "its last layer have n_outputs units."
        )
