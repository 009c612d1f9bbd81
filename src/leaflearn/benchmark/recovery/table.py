"""The summary of the recovery suite as a table: cells for a terminal, or a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from leaflearn.benchmark.recovery.summary import Summary

HEAD = (
    "task", "rule", "recovered", "95 % interval", "bar", "worst error", "of the oracle's", "cost", "failures flagged", "successes flagged",
    "counted",
)  # fmt: skip
NOTE = (
    "Recovered: below the task's threshold or, where the oracle misses it too, within 1.5 times the oracle's error in every domain. "
    "Worst error: the worst domain's, mean over seeds. Of the oracle's: the ratio of these means, on the seeds that the oracle ran on too; "
    "their number is in brackets. Cost: processor seconds, in units of one plain hard run. Flagged: did not converge, or warned. "
    "Counted: ended with as many contexts as there are domains."
)


def as_cells(line: Summary) -> tuple[str, ...]:
    """A summary as the cells of a table with the columns of `HEAD`.

    Examples
    --------
    >>> as_cells(Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4))[:6]
    ('rare', 'hard', '7 of 20', '18 to 57 %', '', '0.400')
    """
    failures = line.runs - line.successes
    return (
        line.task, line.rule, f"{line.successes} of {line.runs}", f"{100 * line.low:.0f} to {100 * line.high:.0f} %",
        f"{100 * line.bar:.0f} %" if line.bar is not None and line.rule == "default" else "",
        f"{line.worst_error:.3f}",
        "" if line.oracle_ratio is None else f"{line.oracle_ratio:.2f} ({line.oracle_runs})",
        "" if line.cost is None else f"{line.cost:.1f}",
        f"{line.failures_flagged} of {failures}" if failures else "",
        f"{line.successes_flagged} of {line.successes}" if line.successes else "",
        "" if line.counted_right is None else f"{100 * line.counted_right:.0f} %",
    )  # fmt: skip


def render_markdown(lines: Sequence[Summary]) -> str:
    """The summary as a page of Markdown that shows the two pictures beside it.

    Examples
    --------
    >>> page = render_markdown([Summary("rare", "hard", successes=7, runs=20, low=0.18, high=0.57, worst_error=0.4)])
    >>> print(page.splitlines()[4][:52])
    | rare | hard | 7 of 20 | 18 to 57 % |  | 0.400 |  |
    """
    rows = [HEAD, ("---",) * len(HEAD), *map(as_cells, lines)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    pictures = "![How often the contexts were recovered](recovery.png)\n\n![The data of each task](tasks.png)"
    return f"# How often the contexts are recovered\n\n{table}\n\n{NOTE}\n\n{pictures}\n"
