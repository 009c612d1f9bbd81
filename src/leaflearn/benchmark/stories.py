"""The text, the table and the figures of the demonstration, for each data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leaflearn.benchmark.comparison import Comparison
from leaflearn.plot.figures import Panel, plot_allocation, plot_answers, plot_curves
from leaflearn.report.page import Image, Section, to_png

LEARNERS = {"ERM": "ERM, pooled model", "LEAF": "LEAF", "oracle": "oracle, given the truth"}
MIN_AGREEMENT = 0.9  # share of groups in the right context that counts as recovered
N_IMAGES = 24


@dataclass(frozen=True)
class Story:
    """A data set in words, and how to draw the results.

    Examples
    --------
    >>> STORIES["functions"].heading
    'Three functions in one cloud of points'
    """

    heading: str
    explanation: str
    table_note: str
    draw: Callable[[Comparison], list[Image]]


def make_section(story: Story, result: Comparison) -> Section:
    """The section of the page about a data set and its results."""
    head = ("learner", *result.data.names)
    rows = [
        (label, *(format_error(result, e) for e in result.learners[learner].errors.error))
        for learner, label in LEARNERS.items()
    ]
    return Section(
        story.heading,
        story.explanation,
        summarize(result),
        (head, *rows),
        story.table_note,
        story.draw(result),
    )


def summarize(result: Comparison) -> str:
    """Whether the contexts were recovered, in plain words."""
    n_groups = len(result.truth.domain)
    if result.agreement < MIN_AGREEMENT:
        return (
            f"Not recovered: LEAF allocated only {result.agreement:.1%} of the "
            f"{n_groups:,} groups to the right context."
        )
    worst = {
        name: format_error(result, learner.errors.error.max())
        for name, learner in result.learners.items()
    }
    return (
        f"LEAF allocated {result.agreement:.1%} of the {n_groups:,} groups to the right context "
        f"without ever seeing it. Its worst error is {worst['LEAF']}; that of the pooled model is "
        f"{worst['ERM']}, that of the oracle {worst['oracle']}."
    )


def describe_errors(result: Comparison, learner: str) -> dict[str, float]:
    """The learner's error in every domain, by the domain's name."""
    return dict(zip(result.data.names, result.learners[learner].errors.error.tolist(), strict=True))


def format_error(result: Comparison, error: float) -> str:
    """An RMSE with three digits, or an error rate in percent."""
    return f"{error:.3f}" if result.data.classes is None else f"{error:.1%}"


def draw_functions(result: Comparison) -> list[Image]:
    """The curves of all learners, and the allocation over time."""
    x = result.data.domains[0].test.x[:, 0]  #                                  (N,)
    truths = np.stack([domain.test.y for domain in result.data], axis=1)  #     (N, n_domains)
    erm, leaf, oracle = (result.learners[learner] for learner in LEARNERS)
    found = leaf.domains[leaf.contexts][result.sample.groups]
    panels = [
        Panel("The truth, which is hidden", truths, range(len(result.data))),
        Panel("Pooled model: an average", erm.predictions, erm.domains),
        Panel("LEAF", leaf.predictions, leaf.domains, found),
        Panel("Oracle, given the truth", oracle.predictions, oracle.domains),
    ]
    curves = plot_curves(x, (result.sample.x[:, 0], result.sample.y), panels, result.data.names)
    words = (
        "The same points four times. In LEAF's panel they have the colour of the context that "
        "their group was allocated to."
    )
    return [Image("functions.png", to_png(curves), words), _draw_allocation(result)]


def draw_digits(result: Comparison) -> list[Image]:
    """Test images with the predictions of LEAF's contexts, and the allocation over time."""
    leaf, classes = result.learners["LEAF"], np.array(result.data.classes)
    context_of = np.argsort(leaf.domains)  # that matches each domain           (n_domains,)
    answers = classes[leaf.predictions[:N_IMAGES, context_of]]  #               (n, n_domains)
    truths = classes[np.stack([domain.test.y[:N_IMAGES] for domain in result.data], axis=1)]
    images = result.data.domains[0].test.x[:N_IMAGES]
    figure = plot_answers(images, answers, truths, result.data.names)
    words = (
        "The first test images, with the predictions of LEAF's two contexts; wrong predictions "
        "are red."
    )
    return [Image("colored-digits.png", to_png(figure), words), _draw_allocation(result)]


def _draw_allocation(result: Comparison) -> Image:
    figure = plot_allocation(result.found, result.truth.domain, result.data.names)
    words = (
        "The contexts of the groups during training: one stripe per group, one colour per context."
    )
    return Image(f"{result.data.name}-allocation.png", to_png(figure), words)


STORIES: dict[str, Story] = {
    "functions": Story(
        "Three functions in one cloud of points",
        "Each of 250 groups has two points of one function, and it is not recorded which one. For "
        "each x there are three right values of y. A model that minimises the error on all points "
        "can only learn their average, which is none of the three.",
        "Root mean squared error on a grid; in each column, of the learner's best model.",
        draw_functions,
    ),
    "colored-digits": Story(
        "Digits or colours?",
        "Each of 1,000 groups has four images, either all labelled with the digit or all labelled "
        "with the colour. For a pooled model, a red seven is a seven half of the time, and red "
        "the other half.",
        "Share of wrong labels on 497 test images; in each column, of the learner's best model.",
        draw_digits,
    ),
}
