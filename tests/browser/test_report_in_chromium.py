"""The report in a browser: no requests, no errors, usable on all screens, in both themes."""

import copy
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leaflearn.report.model_report import write_report
from leaflearn.report.rendering import plain
from report_models import NASTY, fit_label, fit_quantity

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHROMIUM = os.environ.get("LEAFLEARN_CHROMIUM", "/usr/bin/chromium")
WIDTHS, THEMES = (360, 1400), ("light", "dark")
N_GROUPS = 130


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="pip install 'leaflearn[browser]'"
    )
    path = (
        CHROMIUM
        if Path(CHROMIUM).exists()
        else shutil.which("chromium") or shutil.which("google-chrome")
    )
    if path is None:
        pytest.skip(
            f"there is no Chromium at {CHROMIUM}; install it, or set LEAFLEARN_CHROMIUM to its path"
        )
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """A page with hostile names, one with labels, and one with many groups."""
    folder = tmp_path_factory.mktemp("pages")
    nasty, tame = fit_quantity(), fit_quantity(tame=True)
    write_report(*nasty, folder / "nasty.html")
    write_report(*fit_label(), folder / "label.html")
    write_report(_with_many_groups(tame[0]), tame[1], folder / "many.html")
    return folder


def _with_many_groups(model):
    model = copy.copy(model)
    model.estimator_ = estimator = copy.copy(model.estimator_)
    for name in ("contexts_", "probabilities_"):
        setattr(estimator, name, np.concatenate([getattr(estimator, name)] * 11)[:N_GROUPS])
    scores = np.concatenate([estimator.fitted_state_.scores] * 11)[:N_GROUPS]
    estimator.fitted_state_ = replace(estimator.fitted_state_, scores=scores)
    estimator.groups_ = np.array([f"site {i}" for i in range(N_GROUPS)])
    model.group_sizes_ = np.arange(N_GROUPS) + 1
    return model


@pytest.fixture
def visit(browser, pages):
    """Open a page, and check afterwards that there were no errors and no other requests."""
    opened, faults, requests, visited = [], [], [], set()

    def open_page(name, width=1400, theme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, **options
        )
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        visited.add((pages / name).as_uri())
        page.goto((pages / name).as_uri())
        opened.append(context)
        return page

    yield open_page
    for context in opened:
        context.close()
    assert faults == []
    assert set(requests) == visited


def names(page):
    return page.locator("#group-table tbody th").all_inner_texts()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["nasty.html", "label.html"])
def test_it_fits_its_window_and_has_no_serious_accessibility_problems(visit, name, width, theme):
    axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")
    # The page's policy would block axe, which is a script.
    page = visit(name, width, theme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    found = axe_playwright.Axe().run(page).response["violations"]
    assert [
        (fault["id"], fault["nodes"][0]["html"])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ] == []


def test_names_appear_as_they_are_and_run_nothing(visit):
    page = visit("nasty.html")
    assert sorted(names(page)) == sorted(plain(name) for name in NASTY)
    assert page.evaluate("document.images.length") == 0


def test_the_script_shows_the_same_as_the_page_without_it(visit):
    plain_page, live_page = visit("many.html", java_script_enabled=False), visit("many.html")
    shown = [
        page.locator("#group-table tbody tr").all_inner_texts() for page in (plain_page, live_page)
    ]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 50
    assert not plain_page.locator("#find").is_visible()


def test_the_table_sorts_by_every_column_with_the_keyboard(visit):
    page = visit("many.html")
    page.locator("#group-table th button", has_text="group").focus()
    page.keyboard.press("Enter")
    assert names(page)[:11] == [f"site {i}" for i in range(11)]  # 10 after 9
    assert page.locator("#group-table th[aria-sort]").all_inner_texts()[0].startswith("group")
    page.keyboard.press("Enter")
    assert page.locator("#group-table th[aria-sort='descending']").count() == 1
    assert names(page)[0] == f"site {N_GROUPS - 1}"
    page.locator("#group-table th button", has_text="rows").click()
    assert page.locator("#group-table tbody tr td:last-child").all_inner_texts() == [
        str(i + 1) for i in range(50)
    ]


def test_the_table_is_searched_and_filtered(visit):
    page = visit("many.html")
    page.get_by_label("Find a group").fill("SITE 12")
    assert sorted(names(page)) == sorted(f"site {i}" for i in (12, *range(120, 130)))
    assert page.locator("#group-count").inner_text() == "Groups 1 to 11 of 11"
    page.get_by_label("Context", exact=True).select_option("1")
    assert set(page.locator("#group-table tbody td:nth-child(2)").all_inner_texts()) == {
        "context 1"
    }
    page.get_by_label("Find a group").fill("unknown")
    assert page.locator("#group-count").inner_text() == "No group has such a name."
    assert names(page) == []


def test_pages_of_the_table_turn(visit):
    page = visit("many.html")
    first = names(page)
    page.get_by_role("button", name="Next").click()
    assert page.locator("#group-count").inner_text() == f"Groups 51 to 100 of {N_GROUPS}"
    assert not set(first) & set(names(page))
    page.get_by_role("button", name="Next").click()
    assert page.get_by_role("button", name="Next").is_disabled()
    assert len(names(page)) == N_GROUPS - 100


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_follows_the_system_and_can_be_switched(visit, theme):
    page = visit("label.html", theme=theme)

    def is_dark():
        return (
            sum(
                int(part)
                for part in page.evaluate("getComputedStyle(document.body).backgroundColor")
                .strip("rgb()")
                .split(",")
            )
            < 200
        )

    def ink_of_a_chart():
        return page.evaluate("getComputedStyle(document.querySelector('.chart text')).fill")

    before = ink_of_a_chart()
    assert is_dark() == (theme == "dark")
    page.locator("#theme").click()
    assert is_dark() == (theme == "light")
    assert ink_of_a_chart() != before
    page.reload()
    assert is_dark() == (theme == "dark")


def test_it_is_printed_in_light_colors_with_all_details_open(visit):
    page = visit("label.html", theme="dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.querySelectorAll('section > details:not([open])').length") == 0
    assert not page.locator("figure details").first.is_visible()
    assert not page.locator("nav").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
