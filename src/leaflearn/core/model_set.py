"""K local models, times R restarts, as one object.

There are two implementations with the same results:

    LoopedModels   runs modules of any kind one after the other, and computes the gradient of each
                   model only on the rows that are allocated to it
    StackedModels  runs modules of the same architecture as one batched program; for small
                   networks, the cost of a step hardly depends on the number of models

`shape` is (K,) or (R, K); predictions have shape (*shape, N, ...).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from leaflearn.core import settings
from leaflearn.core.batches import Batches
from leaflearn.core.losses import Loss

Factory = Callable[[], nn.Module]

ACTIVATIONS = (
    nn.ReLU,
    nn.Tanh,
    nn.GELU,
    nn.SiLU,
    nn.ELU,
    nn.LeakyReLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Identity,
)


class ModelSet(Protocol):
    """The interface of a set of local models."""

    shape: tuple[int, ...]
    one_pass: bool  # whether one forward pass, with gradient, can be used to score and to learn

    def __call__(self, x: Tensor) -> Tensor:
        """Predictions of every model, shape (*shape, N, ...)."""

    def weighted_loss(self, batches: Batches, loss: Loss, row_weight: Tensor) -> Tensor:
        """Sum over models and rows of row_weight (*shape, N) times the loss, shape shape[:-1].

        Rows with weight 0 have no gradient.
        """

    def train(self, mode: bool) -> None: ...
    def parameters(self) -> list[nn.Parameter]: ...
    def zero_grad(self) -> None: ...
    def clip_gradients(self, max_norm: float) -> None: ...
    def modules(self) -> list[nn.Module]: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def make_model_set(
    factory: Factory,
    shape: tuple[int, ...],
    stacked: bool | None = None,
    device: str | torch.device = "cpu",
) -> ModelSet:
    """Build the local models with `factory`, one call per model.

    Parameters
    ----------
    factory
        A function without arguments that returns a new module.
    shape
        (K,), or (R, K) with restarts.
    stacked
        Whether to run the models as one batched program; None to stack small plain chains of
        linear layers only.
    device
        Device of the parameters.

    Examples
    --------
    >>> from torch import nn
    >>> make_model_set(lambda: nn.Linear(2, 1), (3,)).shape
    (3,)
    """
    modules = [factory().to(device) for _ in range(math.prod(shape))]
    if stacked is None:
        limit = settings.CORE.max_stacked_parameters
        stacked = _layers(modules[0]) is not None and count_parameters(modules[0]) <= limit
    return StackedModels(modules, shape) if stacked else LoopedModels(modules, shape)


def count_parameters(module: nn.Module) -> int:
    """Number of parameters of a module.

    Examples
    --------
    >>> count_parameters(nn.Linear(2, 1))
    3
    """
    return sum(parameter.numel() for parameter in module.parameters())


class LoopedModels:
    """Local models that run one after the other; modules of any kind and size.

    Examples
    --------
    >>> import torch
    >>> models = LoopedModels([torch.nn.Linear(2, 1) for _ in range(3)], (3,))
    >>> models(torch.zeros(5, 2)).shape
    torch.Size([3, 5, 1])
    """

    one_pass = False

    def __init__(self, modules: Sequence[nn.Module], shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._modules = list(modules)
        # On a CPU, convolutions are a third faster with the channels last in memory.
        for parameter in (p for module in modules for p in module.parameters() if p.ndim == 4):
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)

    def __call__(self, x: Tensor) -> Tensor:
        x = _channels_last(x)
        outputs = torch.stack([module(x) for module in self._modules])  #       (M, N, ...)
        return outputs.view(*self.shape, *outputs.shape[1:])

    def weighted_loss(self, batches: Batches, loss: Loss, row_weight: Tensor) -> Tensor:
        totals = []
        for module, weight in zip(
            self._modules, row_weight.reshape(len(self._modules), -1), strict=True
        ):
            rows = weight.nonzero()[:, 0]  # allocated to this model
            if len(rows) == 0:
                totals.append(weight.new_zeros(()))
                continue
            # Batch norm cannot compute statistics of a single row, so it uses the running ones.
            module.train(module.training and len(rows) > 1)
            losses = loss(module(_channels_last(batches.x[rows])), batches.y[rows])
            totals.append((losses * weight[rows]).sum())
        return torch.stack(totals).view(self.shape).sum(-1)

    def train(self, mode: bool) -> None:
        for module in self._modules:
            module.train(mode)

    def parameters(self) -> list[nn.Parameter]:
        return [p for module in self._modules for p in module.parameters() if p.requires_grad]

    def zero_grad(self) -> None:
        # Zero and not None: in Algorithm 1 a model without groups has a zero gradient, so momentum
        # and weight decay still apply to it.
        for p in self.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            else:
                p.grad.zero_()

    def clip_gradients(self, max_norm: float) -> None:
        for module in self._modules:
            nn.utils.clip_grad_norm_(module.parameters(), max_norm)

    def modules(self) -> list[nn.Module]:
        return list(self._modules)

    def state_dict(self) -> dict[str, Any]:
        return {str(i): module.state_dict() for i, module in enumerate(self._modules)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for i, module in enumerate(self._modules):
            module.load_state_dict(state[str(i)])


class StackedModels:
    """Modules of the same architecture that run as one batched program.

    Plain chains of linear layers are batched matrix products, other modules run under `vmap`. One
    forward pass is used to score and to learn, so modules that behave differently in training mode
    (dropout, batch norm) cannot be stacked.

    Examples
    --------
    >>> import torch
    >>> models = StackedModels([torch.nn.Linear(2, 1) for _ in range(6)], (2, 3))
    >>> models(torch.zeros(5, 2)).shape
    torch.Size([2, 3, 5, 1])
    """

    one_pass = True

    def __init__(self, modules: Sequence[nn.Module], shape: tuple[int, ...]) -> None:
        if any(
            isinstance(part, nn.modules.batchnorm._NormBase | nn.modules.dropout._DropoutNd)
            for part in modules[0].modules()
        ):
            raise ValueError(
                "Modules with batch norm or dropout cannot be stacked; use stacked=False."
            )
        self.shape = shape
        self._template = copy.deepcopy(modules[0])
        self._layers = _layers(self._template)
        self._parameters: dict[str, Tensor] = {
            name: nn.Parameter(stack, modules[0].get_parameter(name).requires_grad)
            for name, stack in self._stack(modules).items()
        }
        self._buffers = {
            name: torch.stack([dict(m.named_buffers())[name] for m in modules])
            for name, _ in modules[0].named_buffers()
        }

    def _stack(self, modules: Sequence[nn.Module]) -> dict[str, Tensor]:
        stacks = {
            name: torch.stack([m.get_parameter(name).detach() for m in modules])
            for name, _ in modules[0].named_parameters()
        }
        if self._layers is not None:  # weights as (M, in, out) and biases as (M, 1, out)
            stacks = {
                k: v.transpose(1, 2).contiguous() if k.endswith("weight") else v[:, None]
                for k, v in stacks.items()
            }
        return stacks

    def __call__(self, x: Tensor) -> Tensor:
        if self._layers is None:
            outputs = torch.func.vmap(self._call_one, in_dims=(0, 0, None))(
                self._parameters, self._buffers, x
            )
        else:
            outputs = x.expand(math.prod(self.shape), *x.shape)  #               (M, N, in)
            for name, layer in self._layers:
                if not isinstance(layer, nn.Linear):
                    outputs = layer(outputs)
                elif layer.bias is None:
                    outputs = outputs @ self._parameters[f"{name}weight"]
                else:
                    outputs = torch.baddbmm(
                        self._parameters[f"{name}bias"], outputs, self._parameters[f"{name}weight"]
                    )
        return outputs.view(*self.shape, *outputs.shape[1:])

    def _call_one(
        self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor
    ) -> Tensor:
        outputs: Tensor = torch.func.functional_call(self._template, (parameters, buffers), (x,))
        return outputs

    def weighted_loss(self, batches: Batches, loss: Loss, row_weight: Tensor) -> Tensor:
        return (loss(self(batches.x), batches.y) * row_weight).sum((-2, -1))

    def train(self, mode: bool) -> None:
        """Nothing to do: modules that can be stacked have the same output in both modes."""

    def parameters(self) -> list[nn.Parameter]:
        return [p for p in self._parameters.values() if p.requires_grad]  # type: ignore[misc]

    def zero_grad(self) -> None:
        for p in self.parameters():
            p.grad = None  # the backward pass sets the gradients of models without groups to zero

    def clip_gradients(self, max_norm: float) -> None:
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        norm = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()  # (M,)
        factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for g in gradients:
            g.mul_(factor.view(-1, *[1] * (g.ndim - 1)))

    def modules(self) -> list[nn.Module]:
        return [self._unstack(i) for i in range(math.prod(self.shape))]

    def _unstack(self, i: int) -> nn.Module:
        module = copy.deepcopy(self._template)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                stack = self._parameters[name][i]
                if self._layers is not None:
                    stack = stack.T if name.endswith("weight") else stack[0]
                parameter.copy_(stack)
            for name, buffer in module.named_buffers():
                buffer.copy_(self._buffers[name][i])
        return module

    def state_dict(self) -> dict[str, Any]:
        return {**self._parameters, **self._buffers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            for name, tensor in self.state_dict().items():
                tensor.copy_(state[name])


def _layers(module: nn.Module) -> list[tuple[str, nn.Module]] | None:
    """The layers of a plain chain of linear layers and activations, with their parameter prefixes.

    None for any other module. Types are compared exactly, because subclasses, parametrized layers
    and hooks may compute anything. `_modules` is used and not `named_children`, which lists an
    activation that occurs twice only once. A linear layer that occurs twice shares its weights,
    which a stack cannot do.
    """
    layers: list[tuple[str, nn.Module | None]] = [("", module)]
    if type(module) is nn.Sequential:
        layers = [(f"{name}.", layer) for name, layer in module._modules.items()]
    linear = [layer for _, layer in layers if type(layer) is nn.Linear]
    is_plain = all(type(layer) in (nn.Linear, *ACTIVATIONS) for _, layer in layers)
    is_shared = len(set(map(id, linear))) < len(linear)
    is_hooked = any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    if not linear or not is_plain or is_shared or is_hooked:
        return None
    return [(name, layer) for name, layer in layers if layer is not None]


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x
