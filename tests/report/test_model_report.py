"""The report describes the model in the user's columns, shows names as text, and is one file."""

import base64
import copy
import hashlib
import json
import re
import warnings
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas
import pytest

from leaflearn.report.model_report import render_report, write_report
from leaflearn.report.origin import Origin
from leaflearn.report.rendering import plain
from leaflearn.tabular.table_model import TableModel
from report_models import DOSE, EFFECT, GROUP, KINDS, NASTY, fit_label, fit_quantity

HEADINGS = [
    "What was found",
    "The contexts",
    "Where the contexts disagree",
    "The groups",
    "How it was fitted",
    "How many contexts",
    "Warnings",
    "How to reproduce it",
]
VOID = {"meta", "img", "input"}


class Page(HTMLParser):
    """The elements and texts of a page as a browser would see them; tags must close in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag):
        return [attributes for found, attributes in self.elements if found == tag]

    def text_of(self, *tags):
        return [text for tag, text in self.texts if tag in tags]

    @property
    def words(self):
        return " ".join(
            " ".join(text for tag, text in self.texts if tag not in ("script", "style")).split()
        )


@pytest.fixture(scope="module")
def quantity():
    return fit_quantity()


@pytest.fixture(scope="module")
def tame():
    return fit_quantity(tame=True)


@pytest.fixture(scope="module")
def label():
    return fit_label()


@pytest.fixture(scope="module")
def tame_page(tame):
    return render_report(*tame, Origin())


@pytest.fixture(scope="module", params=["quantity", "label", "quantity without its table"])
def page(request):
    model, table = request.getfixturevalue(request.param.split()[0])
    return render_report(
        model,
        None if "without" in request.param else table,
        Origin("model</script>", "<i>data.csv"),
    )


def read_groups(page):
    return json.loads(
        re.search(
            r'<script type="application/json" id="group-data">(.*?)</script>', page, re.DOTALL
        ).group(1)
    )


# ---- what it shows -------------------------------------------------------------------------------


def test_sections_come_in_order_under_one_title(page):
    found = Page(page)
    assert found.text_of("h2") == HEADINGS
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_it_shows_the_number_of_contexts_their_certainty_and_the_errors(tame, tame_page):
    model, words = tame[0], Page(tame_page).words
    assert "2 contexts were found in 12 groups (by site , 120 rows)." in words
    assert "Contexts 2 with 7 and 5 groups" in words
    assert (
        "Sure 100 % of the groups are in their context with a probability of at least 90 %" in words
    )
    smaller = round(100 * (1 - model.errors_.contexts / model.errors_.one_model))
    assert (
        f"With the contexts the error is {smaller} % smaller than that of a pooled model (95 % "
        f"interval: " in words
    )
    low, high = model.errors_.contexts_interval
    assert f"typical error of a prediction 95 % interval: {low:.3g} to {high:.3g}" in words
    assert f"Measured on {model.errors_.n_rows} rows that were held out within the groups" in words


def test_it_describes_how_contexts_differ_along_the_informative_column(tame_page):
    words = Page(tame_page).words
    assert "The charts show the columns on which the contexts differ most, dose first." in words
    assert re.search(
        r"effect rises along dose , from -[\d.]+ \(at [\d.]+\) to [\d.]+ \(at [\d.]+\)\.", words
    )
    assert re.search(
        r"effect falls along dose , from [\d.]+ \(at [\d.]+\) to -[\d.]+ \(at [\d.]+\)\.", words
    )


def test_examples_are_rows_of_the_table_with_the_predictions_of_each_context(tame, tame_page):
    model, table = tame
    rows = re.findall(
        r"<tr>(.*?)</tr>",
        tame_page.split("Rows on which the contexts disagree</caption>")[1].split("</table>")[0],
    )[1:]
    assert len(rows) == 6
    each = model.predict(table, each=True)
    for row in rows:
        number, site, *_, truth, first, second = [
            re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)
        ]
        place = int(number) - 1
        assert table["site"][place] == site
        assert float(truth) == pytest.approx(table["effect"][place], abs=0.06)
        assert [float(first), float(second)] == pytest.approx(each.iloc[place].tolist(), abs=0.06)
        own = model.estimator_.contexts_[model.estimator_.groups_.tolist().index(site)]
        assert re.findall(r"<strong><bdi>(.*?)</bdi></strong>", row) == [[first, second][own]]


def test_the_groups_are_those_of_the_model_with_the_least_certain_first(tame, tame_page):
    listed, estimator = read_groups(tame_page), tame[0].estimator_
    assert listed["margin"] == sorted(listed["margin"])
    assert sorted(listed["group"]) == sorted(estimator.groups_.tolist())
    context = dict(zip(estimator.groups_.tolist(), estimator.contexts_.tolist(), strict=True))
    assert [context[group] for group in listed["group"]] == listed["context"]
    assert listed["rows"] == [10] * 12


def test_without_the_table_there_are_curves_but_no_examples(tame, tame_page):
    alone, with_table = Page(render_report(tame[0], None, Origin())), Page(tame_page)
    assert (
        "Write this page with the training table to see rows on which the predictions of the "
        "contexts differ most." in alone.words
    )
    assert len(alone.of("svg")) > 5
    assert sum(a.get("id") == "curve-0-title" for a in alone.of("title")) == 1
    assert "Rows on which the contexts disagree" not in alone.words
    assert "Rows on which the contexts disagree" in with_table.words


def test_a_model_without_stored_rows_says_what_to_do(tame):
    model = copy.copy(tame[0])
    model.estimator_ = copy.copy(model.estimator_)
    model.estimator_.replay_buffer_ = None
    words = Page(render_report(model, None, Origin())).words
    assert (
        "The model stores none of its training rows. Write this page with the training table to "
        "see "
        "where the contexts differ." in words
    )


def test_one_context_is_reported_as_such():
    table = pandas.DataFrame(
        {"site": np.repeat(np.arange(8), 5), "dose": np.linspace(0.0, 1.0, 40)}
    )
    table["effect"] = 2.0 * table["dose"]
    model = TableModel("effect", "site", contexts=1, local_model="linear").fit(table)
    found = Page(render_report(model, table, Origin()))
    assert "One context was requested for 8 groups" in found.words
    assert "What the prediction depends on" in found.text_of("h2")
    assert "Use it like any model:" in found.words
    assert "Examples" not in found.text_of("h3")


def test_the_table_of_the_fit_is_recognized_and_another_is_reported(tame, tame_page):
    model, table = tame
    assert "The table of this page has the same fingerprint." in Page(tame_page).words
    words = Page(render_report(model, table[:60], Origin())).words
    assert "The table of this page has a different fingerprint." in words
    assert (
        "with a different table than the model was fitted to: their fingerprints differ." in words
    )


def test_warnings_about_the_data_and_the_fit_are_shown(tame):
    model, table = copy.copy(tame[0]), tame[1].copy()
    model.estimator_ = copy.copy(model.estimator_)
    model.estimator_.converged_ = False
    table.loc[[3, 7], "effect"] = np.nan
    found = Page(render_report(model, table, Origin()))
    assert (
        "The target 'effect' is missing in 2 of 120 rows, which were left out. Check these cells"
        in found.words
    )
    assert "The fit: The diagnostics of the fit contradict the contexts" in found.words
    assert "The diagnostics contradict the fit." in found.words


def test_each_context_has_its_errors_with_intervals(tame, tame_page):
    rows = tame_page.split("Errors on held-out rows: ")[-1].split("</table>")[0]
    cells = re.findall(r'<td class="number">(.*?)</td>', rows)
    parts = tame[0].errors_.by_context
    assert [part.n_groups for part in parts] == [7, 5]
    shown = [
        f"{part.own:.3g} ({part.own_interval[0]:.3g} to {part.own_interval[1]:.3g})"
        for part in parts
    ]
    assert [cells[0], cells[4]] == shown
    assert "In brackets: 95 % intervals, as explained above." in Page(tame_page).words


def test_the_code_to_fit_the_model_again_is_python_by_default(tame):
    page = Page(render_report(tame[0], None, Origin("my model", "trial.csv")))
    assert (
        "TableModel(target='effect', group='site', contexts=2, local_model='linear', "
        "features=['dose', 'kind', 'day'], random_state=0).fit(table)" in page.words
    )
    assert "--" not in page.words
    assert tame[0].estimator_._fingerprint in page.words


# ---- what it never does --------------------------------------------------------------------------


def test_names_are_text_and_nothing_else(page):
    found = Page(page)
    tags = {tag for tag, _ in found.elements}
    assert not tags & {"img", "b", "i", "u", "iframe", "object", "embed", "link", "base"}
    assert len(found.of("script")) == 2
    assert not [
        key
        for _, attributes in found.elements
        for key in attributes
        if key.startswith("on") or key in ("style", "srcdoc")
    ]
    assert len(found.of("title")) == 1 + sum(a.get("class") == "chart" for a in found.of("svg"))


def test_every_name_can_be_read(page):
    shown = [text for tag, text in Page(page).texts if tag == "bdi"]
    for text in (*NASTY, GROUP, DOSE, EFFECT):
        assert plain(text) in shown
    assert {plain(group) for group in NASTY} == set(read_groups(page)["group"])


def test_names_in_charts_are_unchanged(quantity):
    texts = Page(render_report(*quantity, Origin())).text_of("text")
    for text in (DOSE, *KINDS):
        assert any(plain(text, 22) in label or plain(text, 32) in label for label in texts)


def test_writing_directions_stay_inside_their_names(page):
    """Direction marks are visible signs; outside of `bdi`, names are between isolation marks."""
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066\u2067]", page)
    for tag, text in Page(page).texts:
        if "مجموعة" in text and tag not in ("script", "bdi"):
            assert re.search("\u2068[^\u2069]*مجموعة[^\u2069]*\u2069", text)


def test_the_policy_allows_what_is_there_and_nothing_more(page):
    policy = Page(page).of("meta")[1]["content"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_nothing_refers_to_the_network(page):
    assert not re.search(r"https?:|url\((?!#)|@import|//[a-z]", page.replace("// ", ""))
    found = Page(page)
    for _, attributes in found.elements:
        for key in ("src", "href", "action", "poster", "xlink:href"):
            assert (attributes.get(key) or "#").startswith(("#", "data:image/png;base64,"))


def test_identifiers_are_unique_and_all_references_resolve(page):
    found = Page(page)
    identifiers = [a["id"] for _, a in found.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    referenced = [
        word for _, a in found.elements for word in (a.get("aria-labelledby") or "").split()
    ]
    referenced += [a["href"][1:] for _, a in found.elements if "href" in a]
    referenced += re.findall(r"url\(#(.*?)\)", page)
    assert set(referenced) <= set(identifiers)


def test_every_chart_has_a_title_and_a_description(page):
    found = Page(page)
    charts = [a for a in found.of("svg") if a.get("class") == "chart"]
    assert charts
    assert all(a["role"] == "img" and len(a["aria-labelledby"].split()) == 2 for a in charts)
    assert all(text.strip() for text in found.text_of("title", "desc"))


# ---- how large it is, and how it is written ------------------------------------------------------


def enlarge(model, n_groups, name):
    """The same model with more groups."""
    model = copy.copy(model)
    model.estimator_ = estimator = copy.copy(model.estimator_)
    repeats = -(-n_groups // len(estimator.groups_))
    for attribute in ("contexts_", "probabilities_", "_scores"):
        setattr(
            estimator,
            attribute,
            np.concatenate([getattr(estimator, attribute)] * repeats)[:n_groups],
        )
    estimator.groups_ = np.array([name.format(i) for i in range(n_groups)])
    model.group_sizes_ = np.tile(model.group_sizes_, repeats)[:n_groups]
    return model


@pytest.mark.parametrize("name", ["annotator {}", "{}" + "<" * 300])
def test_ten_thousand_groups_stay_below_three_megabytes(tame, name):
    page = render_report(enlarge(tame[0], 10_000, name), tame[1], Origin())
    assert len(page.encode()) < 3_000_000
    assert len(read_groups(page)["group"]) == 10_000


def test_of_too_many_groups_the_least_certain_are_listed(tame):
    model = enlarge(tame[0], 25_000, "row {}")
    model.estimator_._scores = (
        np.stack([np.zeros(25_000), np.arange(25_000.0)], axis=1) * model.estimator_._evidence_unit
    )
    page = render_report(model, None, Origin())
    assert "Of 25,000 groups, the 20,000 least certain ones are listed." in Page(page).words
    assert max(read_groups(page)["margin"]) == pytest.approx(19_999, rel=1e-3)


def test_the_same_model_and_table_give_the_same_page(tame, tame_page, tmp_path):
    write_report(*tame, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == tame_page.encode()


def test_a_table_that_does_not_fit_the_model_is_rejected_and_the_old_page_stays(tame, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(
        ValueError,
        match=re.escape(
            "There is no column 'dose' in the table. There are: 'site', 'kind', 'day', 'effect'."
        ),
    ):
        write_report(tame[0], tame[1].drop(columns="dose"), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_it_gives_no_warnings(quantity, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_report(*quantity, tmp_path / "report.html")
