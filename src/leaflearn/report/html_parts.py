"""Pieces of a page: tables, figures, things to open, a key to the colours. What goes in is `Html`; see `safe_text`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leaflearn.report.report_charts import MARKS
from leaflearn.report.safe_text import Html, from_text, join, plain

_MARK_PATHS = {  # of the same shapes that the charts draw, in a square of 12
    "o": '<circle cx="6" cy="6" r="4.5"/>',
    "s": '<rect x="2" y="2" width="8" height="8"/>',
    "^": '<path d="M6 1 11 10.5H1z"/>',
    "D": '<path d="M6 .5 11.5 6 6 11.5 .5 6z"/>',
    "v": '<path d="M6 11 1 1.5h10z"/>',
    "P": '<path d="M4 1h4v3h3v4H8v3H4V8H1V4h3z"/>',
}
LONGEST_COMMAND = 2000  # characters that are shown
_LINE_DASHES = (
    "",
    "8 3",
    "2.5 2.5",
    "9 3 2.5 3",
    "14 5",
    "5 2 2 2 2 2",
)  # as the charts have them, in the units of the key


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[Html]], texts: Sequence[int] = (0,)
) -> Html:
    """A table that scrolls by itself where it is too wide; the first cell of a row names it. `texts` are the columns that hold no numbers.

    Examples
    --------
    >>> "<caption>Coins</caption>" in table("Coins", ["side", "times"], [[Html("head"), Html("3")]])
    True
    """
    top = join(
        f"<th scope='col'{_kind(i, texts)}>{from_text(cell)}</th>" for i, cell in enumerate(head)
    )
    body = join(f"<tr>{_row(row, texts)}</tr>" for row in rows)
    label = from_text(caption)
    return Html(
        f"<div class='wide' role='region' tabindex='0' aria-label='{label}'><table><caption>{label}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[Html], texts: Sequence[int]) -> Html:
    first = f"<th scope='row'{_kind(0, texts)}>{row[0]}</th>"
    return Html(
        first + join(f"<td{_kind(i, texts)}>{cell}</td>" for i, cell in enumerate(row[1:], start=1))
    )


def _kind(column: int, texts: Sequence[int]) -> str:
    return "" if column in texts else " class='number'"


def section(identifier: str, heading: str, *parts: Html) -> Html:
    """A part of the page with a heading, which the list of contents can point to.

    Examples
    --------
    >>> section("groups", "Groups", Html("<p>None.</p>"))
    "<section id='groups' aria-labelledby='groups-heading'><h2 id='groups-heading'>Groups</h2><p>None.</p></section>"
    """
    return Html(
        f"<section id='{identifier}' aria-labelledby='{identifier}-heading'>"
        f"<h2 id='{identifier}-heading'>{from_text(heading)}</h2>{join(parts)}</section>"
    )


def figure(heading: Html, svg: Html, caption: Html, numbers: Html) -> Html:
    """A chart with a heading above, a sentence below, and its numbers to open.

    Examples
    --------
    >>> figure(Html("Loss"), Html("<svg></svg>"), Html("It falls."), Html("")).startswith("<figure><h3>Loss</h3>")
    True
    """
    opened = opening("The numbers", numbers) if numbers else Html("")
    return Html(
        f"<figure><h3>{heading}</h3>{svg}<figcaption>{caption}</figcaption>{opened}</figure>"
    )


def opening(summary: str, content: Html) -> Html:
    """Something that is shown when it is asked for.

    Examples
    --------
    >>> opening("More", Html("<p>Here.</p>"))
    '<details><summary>More</summary><p>Here.</p></details>'
    """
    return Html(f"<details><summary>{from_text(summary)}</summary>{content}</details>")


def paragraph(content: Html | str, kind: str = "") -> Html:
    """A paragraph, of a kind that the style knows.

    Examples
    --------
    >>> paragraph("Hello.", "note")
    "<p class='note'>Hello.</p>"
    """
    return Html(f"<p class='{kind}'>{content}</p>" if kind else f"<p>{content}</p>")


def command(text: str) -> Html:
    """A command to paste; names of strangers in it are text.

    Examples
    --------
    >>> command("leaflearn show 'a & b'")
    "<pre tabindex='0' dir='ltr'><code>leaflearn show &#x27;a &amp; b&#x27;</code></pre>"
    """
    return Html(
        f"<pre tabindex='0' dir='ltr'><code>{from_text(plain(text, LONGEST_COMMAND))}</code></pre>"
    )


def bullets(items: Sequence[Html]) -> Html:
    """A list.

    Examples
    --------
    >>> bullets([Html("one")])
    '<ul><li>one</li></ul>'
    """
    return Html(f"<ul>{join(f'<li>{item}</li>' for item in items)}</ul>")


def context_mark(context: int) -> Html:
    """The colour and the mark of a context, before its name; without them where it is not drawn.

    Examples
    --------
    >>> context_mark(7)
    "<span class='of-context'><span class='word'>context </span>7</span>"
    """
    mark = ""
    if context < len(MARKS):
        fill = f"fill='var(--context-{context})'"
        mark = f"<svg class='mark' viewBox='0 0 12 12' aria-hidden='true' {fill}>{_MARK_PATHS[MARKS[context]]}</svg>"
    return Html(
        f"<span class='of-context'>{mark}<span class='word'>context </span>{context}</span>"
    )


def key_to_lines(n_contexts: int) -> Html:
    """What the lines and marks of the charts stand for.

    Examples
    --------
    >>> key_to_lines(2).count("<li>")
    2
    """
    return Html(
        f"<ul class='key' aria-label='Key to the charts'>{join(f'<li>{_line(k)}{context_mark(k)}</li>' for k in range(n_contexts))}</ul>"
    )


def _line(context: int) -> Html:
    dashes = f" stroke-dasharray='{_LINE_DASHES[context]}'" if _LINE_DASHES[context] else ""
    return Html(
        f"<svg class='line' viewBox='0 0 36 12' aria-hidden='true'><path d='M0 6H36' stroke='var(--context-{context})' "
        f"stroke-width='3'{dashes}/></svg>"
    )


def bar(share: float, color: str = "var(--accent)") -> Html:
    """A bar of this share of its cell; the number stands beside it.

    Examples
    --------
    >>> "width='50.0'" in bar(0.5)
    True
    """
    return Html(
        "<svg class='bar' viewBox='0 0 100 10' preserveAspectRatio='none' aria-hidden='true'>"
        f"<rect width='{100 * min(max(share, 0.0), 1.0):.1f}' height='10' fill='{color}'/></svg>"
    )


def facts(pairs: Sequence[tuple[str, Any, Any]]) -> Html:
    """Key figures: what it is, the figure, and a few words.

    Examples
    --------
    >>> facts([("Contexts", Html("3"), Html("found"))])
    "<dl class='facts'><div><dt>Contexts</dt><dd><strong>3</strong> found</dd></div></dl>"
    """
    cells = join(
        f"<div><dt>{from_text(what)}</dt><dd><strong>{figure}</strong> {words}</dd></div>"
        for what, figure, words in pairs
    )
    return Html(f"<dl class='facts'>{cells}</dl>")
