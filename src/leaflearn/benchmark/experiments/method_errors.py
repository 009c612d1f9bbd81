"""What a trained method gets wrong in each domain, by the protocols that fit it; they are never mixed.

best        the paper's: of all contexts' answers, those of the context that is best on the test labels
identified  honest: the context is chosen on ten labelled rows and tested on the others
label set   of methods that give one score a label: is the domain's label among the best N?
adapted     of meta-learners: after fine-tuning on a hundred labelled rows of the domain, mean of ten draws
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.streaming import as_inputs, as_targets
from leaflearn.benchmark.evaluation import (
    best_errors,
    error_rate,
    identified_errors,
    label_set_errors,
    rmse,
)
from leaflearn.benchmark.methods import Method

N_ADAPTED, N_ADAPTATIONS = 100, 10  # labelled rows, and how often they are drawn, as in the paper

Errors = dict[str, list[float]]


def method_errors(method: Method, domains: DomainSet, random_state: int = 0) -> Errors:
    """The errors of a trained method in every domain, by the names of the protocols that apply to it.

    Examples
    --------
    >>> from leaflearn.benchmark.datasets.streaming import BilevelSampler
    >>> from leaflearn.benchmark.datasets import DATASETS
    >>> from leaflearn.benchmark.methods import describe, make_method, train
    >>> from leaflearn.engines.networks import mlp
    >>> sampler = BilevelSampler(DATASETS["functions"]())
    >>> problem, method = describe(sampler, lambda n_outputs: mlp(1, n_outputs), n_epochs=1), make_method("leaf")
    >>> _ = train(method, sampler, problem, n_epochs=1)
    >>> {name: len(errors) for name, errors in method_errors(method, sampler.domains).items()}
    {'best': 3, 'identified': 3}
    """
    is_class = domains.classes is not None
    if hasattr(method, "adapt"):
        return {
            "adapted": [
                _adapted_error(method, domain, is_class, random_state) for domain in domains
            ]
        }
    each = [
        (
            method.predict_each(as_inputs(np.asarray(domain.test.x[:]))).numpy(),
            _truth(domain, is_class),
        )
        for domain in domains
    ]
    if method.gives_label_set:
        return {
            "label set": [
                float(label_set_errors(answers[:, 0], [truth], len(domains))[0])
                for answers, truth in each
            ]
        }
    best, identified = [], []
    for answers, truth in each:
        best += best_errors(
            _decide(answers, is_class), [truth], error_rate if is_class else rmse
        ).error.tolist()
        identified += identified_errors(
            answers, [truth], "cross-entropy" if is_class else "squared", random_state=random_state
        ).tolist()
    return {"best": best, "identified": identified}


def _adapted_error(method: Any, domain: Domain, is_class: bool, random_state: int) -> float:
    """Mean over several draws of the rows that it adapts to."""
    generator, measure = np.random.default_rng(random_state), error_rate if is_class else rmse
    found = []
    for _ in range(N_ADAPTATIONS):
        support = domain.train.draw(N_ADAPTED, generator)
        answer = method.adapt(
            as_inputs(np.asarray(support.x[:])), as_targets(np.asarray(support.y), is_class)
        )
        answers: Tensor = answer(as_inputs(np.asarray(domain.test.x[:])))
        found.append(
            float(measure(_decide(answers.numpy()[:, None], is_class), _truth(domain, is_class))[0])
        )
    return float(np.mean(found))


def _decide(answers: Any, is_class: bool) -> Any:
    """From answers (N, K, D) to what is measured: class numbers (N, K), or the values themselves."""
    return answers.argmax(-1) if is_class else answers


def _truth(domain: Domain, is_class: bool) -> Any:
    """Class numbers (N,), or values (N, D)."""
    y = np.asarray(domain.test.y)
    return y if is_class else y.reshape(len(y), -1)
