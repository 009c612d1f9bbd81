import copy

import pytest
import torch
from torch import nn

from leaflearn.core.algorithm import step
from leaflearn.core.allocation import Annealed, Hard
from leaflearn.core.batches import Batches
from leaflearn.core.losses import SquaredError
from leaflearn.core.model_set import LoopedModels, StackedModels, make_model_set


class Residual(nn.Module):
    """A module that is not a plain chain, so that its stack runs under vmap; it has a buffer."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(2, 2), nn.Linear(2, 1)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        return self.outer(x + torch.tanh(self.inner(x + self.shift)))


def chain():
    return nn.Sequential(
        nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 8, bias=False), nn.GELU(), nn.Linear(8, 1)
    )


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
}


def parameters_of(models):
    return torch.cat(
        [p.detach().flatten() for module in models.modules() for p in module.parameters()]
    )


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("rule", [Hard(), Annealed(0.5)])
@pytest.mark.parametrize("max_grad_norm", [None, 0.1])
@pytest.mark.parametrize("factory", [chain, Residual, lambda: nn.Linear(2, 1)])
def test_looped_and_stacked_agree_over_fifty_steps(factory, max_grad_norm, rule, optimizer):
    torch.manual_seed(0)
    modules = [factory().double() for _ in range(6)]
    looped, stacked = (
        LoopedModels(copy.deepcopy(modules), (2, 3)),
        StackedModels(copy.deepcopy(modules), (2, 3)),
    )
    optimizers = [OPTIMIZERS[optimizer](models.parameters()) for models in (looped, stacked)]
    for t in range(50):
        batches = Batches(
            torch.randn(12, 2).double(), torch.randn(12, 1).double(), torch.arange(12) // 3
        )
        for models, update in zip((looped, stacked), optimizers, strict=True):
            step(
                models,
                batches,
                SquaredError(),
                rule,
                update,
                progress=t / 50,
                max_grad_norm=max_grad_norm,
            )
    torch.testing.assert_close(parameters_of(looped), parameters_of(stacked), rtol=0, atol=1e-5)


def test_small_chains_are_stacked_and_everything_else_is_looped():
    assert isinstance(make_model_set(chain, (2,)), StackedModels)
    # 160,000 parameters.
    assert isinstance(make_model_set(lambda: nn.Linear(400, 400), (2,)), LoopedModels)
    assert isinstance(make_model_set(Residual, (2,)), LoopedModels)
    assert isinstance(
        make_model_set(lambda: nn.Sequential(nn.Linear(2, 1), nn.Dropout()), (2,)), LoopedModels
    )
    assert isinstance(make_model_set(Residual, (2,), stacked=True), StackedModels)


@pytest.mark.parametrize("layer", [nn.Dropout(), nn.BatchNorm1d(1)])
def test_modules_that_differ_in_training_mode_cannot_be_stacked(layer):
    with pytest.raises(
        ValueError,
        match=r"^Modules with batch norm or dropout cannot be stacked; use stacked=False\.$",
    ):
        make_model_set(lambda: nn.Sequential(nn.Linear(2, 1), layer), (2,), stacked=True)


@pytest.mark.parametrize("factory", [chain, Residual])
def test_modules_of_a_stack_equal_the_original_ones(factory):
    modules = [factory() for _ in range(3)]
    x = torch.randn(5, 2)
    unstacked = StackedModels(copy.deepcopy(modules), (3,)).modules()
    for before, after in zip(modules, unstacked, strict=True):
        torch.testing.assert_close(before(x), after(x))


@pytest.mark.parametrize("stacked", [True, False])
def test_a_loaded_state_gives_the_same_predictions(stacked):
    one, other = (make_model_set(Residual, (3,), stacked=stacked) for _ in range(2))
    x = torch.randn(4, 2)
    assert not torch.equal(one(x), other(x))
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(one(x), other(x), rtol=0, atol=0)


def test_images_run_with_channels_last_and_models_learn_only_from_allocated_rows():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

        def forward(self, x):
            seen.append(
                (
                    torch.is_grad_enabled(),
                    len(x),
                    x.is_contiguous(memory_format=torch.channels_last),
                )
            )
            return self.head(self.convolution(x).mean((2, 3)))

    models = make_model_set(Spy, (2,))
    batches = Batches(torch.randn(6, 3, 5, 5), torch.randn(6, 2), torch.arange(6) // 2)
    weights = step(
        models, batches, SquaredError(), Hard(), torch.optim.SGD(models.parameters(), lr=0.1)
    ).weights
    assert all(channels_last for _, _, channels_last in seen)
    scored = [rows for gradient, rows, _ in seen if not gradient]
    learned = [rows for gradient, rows, _ in seen if gradient]
    assert scored == [6, 6]  # every model scores every row
    assert learned == [int(2 * groups) for groups in weights.sum(0) if groups]


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_an_activation_that_occurs_twice_is_applied_twice():
    act = nn.Tanh()
    modules = [
        nn.Sequential(nn.Linear(2, 4), act, nn.Linear(4, 4), act, nn.Linear(4, 1)) for _ in range(2)
    ]
    x = torch.randn(5, 2)
    torch.testing.assert_close(
        StackedModels(modules, (2,))(x), torch.stack([module(x) for module in modules])
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Sequential(Doubled(2, 2), nn.ReLU(), nn.Linear(2, 1)),
        lambda: Doubled(2, 1),
        lambda: nn.Sequential(*[nn.Linear(2, 2)] * 2),  # shared weights
        lambda: nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 1)), nn.ReLU()),
    ],
)
def test_modules_that_only_resemble_a_plain_chain_are_looped(make):
    models = make_model_set(make, (2,))
    assert isinstance(models, LoopedModels)
    assert models(torch.randn(3, 2)).shape[:2] == (2, 3)


@pytest.mark.parametrize("stacked", [True, False])
def test_frozen_parameters_stay_frozen(stacked):
    def make():
        module = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
        module[0].requires_grad_(False)
        return module

    models = make_model_set(make, (2,), stacked=stacked)
    before = [module[0].weight.clone() for module in models.modules()]
    batches = Batches(torch.randn(6, 2), torch.randn(6, 1), torch.arange(6) // 2)
    step(
        models,
        batches,
        SquaredError(),
        Hard(),
        torch.optim.SGD(models.parameters(), lr=0.5, weight_decay=0.1),
    )
    assert all(
        torch.equal(module[0].weight, old)
        for module, old in zip(models.modules(), before, strict=True)
    )


def test_three_dimensional_convolutions_can_be_local_models():
    models = make_model_set(
        lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.Flatten(), nn.Linear(16, 1)), (2,)
    )
    assert models(torch.randn(4, 1, 3, 3, 3)).shape == (2, 4, 1)


@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("bad", [1e30, float("nan")])
def test_a_diverged_model_does_not_affect_the_others(stacked, bad):
    modules = [nn.Linear(1, 1), nn.Linear(1, 1)]
    nn.init.constant_(modules[0].bias, bad)
    models = make_model_set(iter(modules).__next__, (2,), stacked=stacked)
    batches = Batches(torch.zeros(4, 1), torch.ones(4, 1), torch.arange(4) // 2)
    taken = step(
        models, batches, SquaredError(), Hard(), torch.optim.SGD(models.parameters(), lr=0.1)
    )
    assert taken.weights[:, 1].tolist() == [1.0, 1.0]
    assert torch.isfinite(taken.value).all()
    assert torch.isfinite(models.modules()[1].weight).all()
