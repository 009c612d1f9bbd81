"""How many contexts there are: held-out rows tell.

Each further context lowers the loss under the best model, if only by chance. What chance cannot do is foretell: the context that the other
rows of a group choose must be the better one for the row that was held out. So the loss of held-out rows is compared, group by group, and a
context more has to pay for itself clearly.

Clearly means: by more than chance. Groups may gain alike, and then their differences measure chance. Or two sources of twelve contradict
all others and gain all there is to gain; then it is the rows of each that agree on the gain. Either will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PATIENCE = 2  # numbers of contexts in a row that may bring nothing before the count ends
CLEARLY = 3.0  # standard errors
MIN_GAIN = 0.1  # of the loss: what a context must save
STEEPLY = 4.0  # times lower is the fitted loss of a context more only where there is one: chance makes it less than twice as low


@dataclass(frozen=True, eq=False)
class CandidateCount:
    """What was found with one number of contexts.

    Parameters
    ----------
    n_contexts
        How many.
    error
        Mean loss of groups under their best model, which had not seen them.
    held_out
        Loss of each row when it was held out, a line for each group, nan where there is none: single rows, shorter groups; (m, n).

    Examples
    --------
    >>> CandidateCount(2, 0.1, np.array([[0.2, 0.3], [0.75, np.nan], [np.nan, np.nan]])).mean
    0.5
    """

    n_contexts: int
    error: float
    held_out: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean over groups of the loss of their held-out rows; nan where no group has two rows."""
        told = mean_of_rows(self.held_out)
        told = told[np.isfinite(told)]
        return float(np.mean(told)) if len(told) else float("nan")


def mean_of_rows(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the finite values of each line, nan where there is none, (m,).

    Examples
    --------
    >>> mean_of_rows(np.array([[1.0, 2.0], [3.0, np.nan]]))
    array([1.5, 3. ])
    """
    told = np.isfinite(values)
    n_told = told.sum(1)
    sums = np.where(told, values, 0.0).sum(1)
    return np.divide(sums, n_told, out=np.full(len(values), np.nan), where=n_told > 0)


def is_significantly_better(
    better: CandidateCount, worse: CandidateCount, worth: float = MIN_GAIN
) -> bool:
    """Does the first foretell held-out rows clearly better than the second, or fit so much better that it cannot be chance?

    Contexts that differ in rare groups, or in few places, show little in the average of held-out rows, and much in the fit.

    Parameters
    ----------
    better, worse
        What was found with two numbers of contexts.
    worth
        The share of the loss that has to be saved, beside being more than chance.

    Examples
    --------
    >>> one, two = CandidateCount(1, 0.5, np.full((50, 4), 0.5)), CandidateCount(2, 0.1, np.full((50, 4), 0.1))
    >>> is_significantly_better(two, one), is_significantly_better(one, two)
    (True, False)
    """
    if (
        better.error * STEEPLY ** (better.n_contexts - worse.n_contexts) < worse.error
        and better.n_contexts > worse.n_contexts
    ):
        return True
    gain = worse.held_out - better.held_out  #                                  (m, n)
    gain = gain[np.isfinite(gain).any(1)]
    if len(gain) < 2:
        return False
    return bool(mean_of_rows(gain).mean() > max(CLEARLY * standard_error(gain), worth * worse.mean))


def standard_error(gain: NDArray[np.float64]) -> float:
    """How far chance may move the mean gain of these groups, of which each has a finite one.

    Groups that gain alike show it in their differences. Where few groups gain much and the others nothing, their rows do: if signs were
    chance, the gains of rows would add up to no more than the root of their squares. The smaller of the two counts.

    Parameters
    ----------
    gain
        Of the rows of each group, nan where there is none, shape (m, n).

    Examples
    --------
    >>> few_gain_much = np.concatenate([np.full((2, 40), 1.0), np.zeros((10, 40))])
    >>> round(standard_error(few_gain_much), 3), round(standard_error(few_gain_much[:, :1]), 3)
    (0.019, 0.112)
    """
    n_told = np.isfinite(gain).sum(1, keepdims=True)  #                         (m, 1)
    of_groups = mean_of_rows(gain).std(ddof=1) * np.sqrt(len(gain))
    of_rows = np.sqrt(np.nansum((gain / n_told) ** 2))
    return float(min(of_groups, of_rows) / len(gain))


def count_up(find: Callable[[int], CandidateCount], most: int) -> list[CandidateCount]:
    """Look for 1, 2, ... contexts, until more of them bring nothing, or `most`.

    Examples
    --------
    >>> held_out = {1: 0.9, 2: 0.95, 3: 0.01, 4: 0.01, 5: 0.01}
    >>> [c.n_contexts for c in count_up(lambda k: CandidateCount(k, held_out[k], np.full((20, 2), held_out[k])), most=9)]
    [1, 2, 3, 4, 5]
    """
    counts: list[CandidateCount] = []
    best = 0
    for n_contexts in range(1, most + 1):
        counts.append(find(n_contexts))
        if is_significantly_better(counts[-1], counts[best]):
            best = len(counts) - 1
        if len(counts) - 1 - best >= PATIENCE:
            break
    return counts


def choose(counts: list[CandidateCount]) -> int:
    """The smallest number of contexts that no larger one clearly beats.

    Examples
    --------
    >>> losses = [0.9, 0.95, 0.01, 0.0099]
    >>> choose([CandidateCount(k, loss, np.full((20, 2), loss)) for k, loss in enumerate(losses, start=1)])
    3
    """
    for i, candidate in enumerate(counts):
        if not any(is_significantly_better(larger, candidate) for larger in counts[i + 1 :]):
            return candidate.n_contexts
    return counts[-1].n_contexts


def count_down(
    find: Callable[[int], CandidateCount], asked: int
) -> tuple[int, list[CandidateCount]]:
    """How many of the contexts that were asked for the data can fill, and what was found on the way, by rising number.

    Where one less is clearly worse, all are filled; how much worse does not matter, since they were asked for, and where groups are mixed
    or labels wrong most of the loss is noise. Else the interval in which the number must lie is halved, for as long as it can be.
    Where that leaves one, held-out rows tell nothing, and all that were asked for are kept: who asks for two may know of a difference
    that shows in few places.

    Examples
    --------
    >>> held_out = {1: 0.9, 2: 0.95, 3: 0.01, 4: 0.01, 5: 0.01}
    >>> n_used, counts = count_down(lambda k: CandidateCount(k, held_out[k], np.full((20, 2), held_out[k])), asked=5)
    >>> n_used, [c.n_contexts for c in counts]
    (3, [1, 2, 3, 4, 5])
    """
    counts: dict[int, CandidateCount] = {}

    def look(n: int) -> CandidateCount:
        if n not in counts:
            counts[n] = find(n)
        return counts[n]

    def is_clear(more: int, less: int) -> bool:
        return is_significantly_better(look(more), look(less), worth=0.0)

    few, enough = 1, asked  # so many are too few, and so many are enough
    look(asked), look(1)
    if asked > 2 and not is_clear(asked, asked - 1):
        enough = asked - 1
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (middle, enough) if is_clear(enough, middle) else (few, middle)
    n_used = enough if is_clear(enough, few) else few
    return n_used if n_used > 1 else asked, [counts[n] for n in sorted(counts)]
