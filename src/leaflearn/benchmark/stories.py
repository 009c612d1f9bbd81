"""What the demonstration says of each data set: the words, the table and the pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leaflearn.benchmark.comparison import Comparison
from leaflearn.plot.figures import Panel, plot_allocation, plot_answers, plot_curves
from leaflearn.report.page import Image, Section, to_png

LEARNERS = {"ERM": "ERM, one model for all", "LEAF": "LEAF", "oracle": "oracle, told the truth"}
CAME_APART = 0.9  # share of groups in the right context from which on one may say so
N_PICTURES = 24


@dataclass(frozen=True)
class Story:
    """A data set in words, and how to draw what came of it.

    Examples
    --------
    >>> STORIES["functions"].heading
    'Three functions in one cloud of points'
    """

    heading: str
    explanation: str
    table_note: str
    draw: Callable[[Comparison], list[Image]]


def tell(story: Story, result: Comparison) -> Section:
    """The story with its outcome: a section of the page."""
    head = ("learner", *result.data.names)
    rows = [
        (label, *(format_error(result, e) for e in result.learnt[learner].errors.error))
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
    """What came apart, in plain words."""
    n_groups = len(result.truth.domain)
    if result.agreement < CAME_APART:
        return f"Nothing came apart here: LEAF allocated only {result.agreement:.1%} of the {n_groups:,} groups to the right context."
    worst = {
        learner: format_error(result, learnt.errors.error.max())
        for learner, learnt in result.learnt.items()
    }
    return (
        f"LEAF allocated {result.agreement:.1%} of the {n_groups:,} groups to the right context without ever seeing it. "
        f"Its worst error is {worst['LEAF']}; one model for all has {worst['ERM']}, the oracle {worst['oracle']}."
    )


def describe_errors(result: Comparison, learner: str) -> dict[str, float]:
    """The learner's error in every domain, by the domain's name."""
    return dict(zip(result.data.names, result.learnt[learner].errors.error.tolist(), strict=True))


def format_error(result: Comparison, error: float) -> str:
    """An RMSE with three digits, an error rate in per cent."""
    return f"{error:.3f}" if result.data.classes is None else f"{error:.1%}"


def draw_functions(result: Comparison) -> list[Image]:
    """The curves of all learners, and the allocation over time."""
    x = result.data.domains[0].test.x[:, 0]  #                                          (N,)
    truths = np.stack(
        [domain.test.y for domain in result.data], axis=1
    )  #             (N, n_domains)
    erm, leaf, oracle = (result.learnt[learner] for learner in LEARNERS)
    panels = [
        Panel("The truth, which nobody tells", truths, range(len(result.data))),
        Panel("One model: an average nobody gave", erm.predictions, erm.domains),
        Panel(
            "LEAF",
            leaf.predictions,
            leaf.domains,
            leaf.domains[leaf.contexts][result.sample.groups],
        ),
        Panel("Oracle, told the truth", oracle.predictions, oracle.domains),
    ]
    curves = plot_curves(x, (result.sample.x[:, 0], result.sample.y), panels, result.data.names)
    words = "The same points four times. In LEAF's panel they have the colour of the context that their group was allocated to."
    return [Image("functions.png", to_png(curves), words), _draw_allocation(result)]


def draw_digits(result: Comparison) -> list[Image]:
    """Test pictures with the answers of LEAF's contexts, and the allocation over time."""
    leaf, classes = result.learnt["LEAF"], np.array(result.data.classes)
    context_of = np.argsort(
        leaf.domains
    )  # the context that stands for each domain            (n_domains,)
    answers = classes[
        leaf.predictions[:N_PICTURES, context_of]
    ]  #                             (n, n_domains)
    truths = classes[np.stack([domain.test.y[:N_PICTURES] for domain in result.data], axis=1)]
    figure = plot_answers(
        result.data.domains[0].test.x[:N_PICTURES], answers, truths, result.data.names
    )
    words = "The first pictures of the test part, and what each of LEAF's two contexts answers; wrong answers are red."
    return [Image("colored-digits.png", to_png(figure), words), _draw_allocation(result)]


def _draw_allocation(result: Comparison) -> Image:
    figure = plot_allocation(result.found, result.truth.domain, result.data.names)
    words = "How the groups found their context as LEAF learnt: one stripe a group, one colour a context."
    return Image(f"{result.data.name}-allocation.png", to_png(figure), words)


STORIES: dict[str, Story] = {
    "functions": Story(
        "Three functions in one cloud of points",
        "Each of 250 groups holds two points of one function, and nobody says of which. For one x there are three right answers, so a "
        "model that minimises the error on all of them can only learn their average, which is none of the three.",
        "Root mean squared error on a grid; in each column, of the learner's model that is best there.",
        draw_functions,
    ),
    "colored-digits": Story(
        "Digits or colours?",
        "Each of 1,000 groups holds four pictures, labelled either all by the digit or all by the colour. "
        "To one model for all, a red seven is half the time a seven and half the time red.",
        "Share of wrong answers on 497 test pictures; in each column, of the learner's model that is best there.",
        draw_digits,
    ),
}
