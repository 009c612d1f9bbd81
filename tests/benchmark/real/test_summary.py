"""The summary of the comparison: which cells count, ratios, and the page."""

import json

import pytest

from leaflearn.benchmark.real.summary import (
    MeanRatio,
    as_json,
    collect_cells,
    compare,
    compare_own,
    count_outcomes,
    ratio_table,
    render_markdown,
)


def one_cell(cells):
    (cell,) = cells
    return cell


def test_errors_are_over_all_rows_of_all_splits(make_record):
    records = [
        make_record(split=0, known=(100.0, 10, 15)),
        make_record(split=1, known=(20.0, 20, 15)),
        make_record("toenail", split=0, measure="error rate", known=(3.0, 30, 40)),
    ]
    wages, toenail = collect_cells(records)
    assert (wages.errors, wages.n_groups, wages.n_splits) == ({"leaflearn": 2.0}, 30, 2)
    assert wages.split_errors["leaflearn"] == pytest.approx([10**0.5, 1.0])
    assert toenail.errors == {"leaflearn": 0.1}


@pytest.mark.parametrize(("n_groups", "n_cells"), [(10, 1), (9, 0)])
def test_a_cell_counts_with_twenty_groups_over_all_splits(make_record, n_groups, n_cells):
    records = [make_record(split=split, new_20=(1.0, 50, n_groups)) for split in range(2)]
    assert len(collect_cells(records)) == n_cells


def test_methods_are_compared_on_the_splits_that_all_finished(make_record):
    records = [
        make_record(split=0, known=(100.0, 100, 30)),
        make_record(split=1, known=(900.0, 100, 30)),
        make_record(method="lme4", split=0, known=(400.0, 100, 30)),
        make_record(method="lme4", split=1, outcome="failed"),
        make_record(method="merf", split=0, outcome="missing"),
    ]
    cell = one_cell(collect_cells(records))
    assert (cell.errors, cell.n_splits) == ({"leaflearn": 1.0, "lme4": 2.0}, 1)


def test_no_error_counts_as_half_of_one(make_record):
    record = make_record("toenail", measure="error rate", known=(0.0, 50, 30))
    assert one_cell(collect_cells([record])).errors == {"leaflearn": 0.01}


def compared(make_record):
    """The errors of leaflearn are 1, 3 and 2 in three tables, of lme4 2, 2.5 and 2, of merf 4."""
    own = {"wages": 1, "males": 9, "bdf": 4}
    lme4 = {"wages": 4, "males": 6.25, "bdf": 4}
    merf = {"wages": 16}
    return [
        make_record(table, method, split, known=(100.0 * loss, 100, 30))
        for method, losses in [("leaflearn", own), ("lme4", lme4), ("merf", merf)]
        for table, loss in losses.items()
        for split in range(2)
    ]


def test_ratios_are_geometric_means_over_tables(make_record):
    found = compare(collect_cells(compared(make_record)), "leaflearn")
    assert found.to_peers["lme4"]["known"].ratio == pytest.approx((0.5 * 1.2 * 1.0) ** (1 / 3))
    assert found.to_peers["merf"] == {"known": MeanRatio(pytest.approx(0.25), 1)}
    assert found.to_best["known"] == MeanRatio(pytest.approx(0.6 ** (1 / 3)), 3)


def test_best_tied_and_notable_cells_are_counted(make_record):
    found = compare(collect_cells(compared(make_record)), "leaflearn")
    assert (found.n_cells, found.n_best, found.n_tied) == (3, 1, 2)
    assert found.share_tied == pytest.approx(2 / 3)
    notable = one_cell(found.notable)
    assert (notable.table, notable.cell, notable.best_peer) == ("males", "known", "lme4")
    assert (notable.ratio, notable.standard_error) == (pytest.approx(1.2), pytest.approx(0))


def test_the_standard_error_is_over_splits(make_record):
    records = [
        make_record(method=method, split=split, known=(loss, 1, 30))
        for method, losses in [("leaflearn", (4.0, 16.0)), ("lme4", (1.0, 1.0))]
        for split, loss in enumerate(losses)
    ]
    cell = one_cell(collect_cells(records))
    assert cell.ratio_error("leaflearn", "lme4") == pytest.approx(1.0)  # of the ratios 2 and 4
    alone = one_cell(collect_cells(records[::2]))
    assert alone.ratio_error("leaflearn", "lme4") is None


def test_a_peer_is_compared_with_the_other_peers(make_record):
    found = compare(collect_cells(compared(make_record)), "lme4")
    assert set(found.to_peers) == {"merf"}
    assert found.n_cells == 1


def test_only_own_methods_beside_peers_have_a_section(make_record):
    cells = collect_cells(compared(make_record))
    assert [comparison.method for comparison in compare_own(cells)] == ["leaflearn"]
    alone = collect_cells([make_record(known=(1.0, 1, 30))])
    assert compare_own(alone) == []


def test_outcomes_are_counted_by_method(make_record):
    records = [
        make_record(method="lme4"),
        make_record(method="lme4", split=1, outcome="missing"),
        make_record(method="merf", outcome="not applicable"),
    ]
    lme4, merf = count_outcomes(records)
    assert (lme4["method"], lme4["ok"], lme4["missing"], lme4["seconds"]) == ("lme4", 1, 1, 1.0)
    assert (merf["not applicable"], merf["seconds"]) == (1, None)


def test_the_page_has_ratios_notable_cells_errors_and_runs(make_record):
    page = render_markdown(compared(make_record))
    assert (
        "leaflearn is best in 1 of 3 cells, and best or within 2 % of the best peer in 2 (67 %)."
        in page
    )
    assert "| lme4 | 0.843 (3) |  |  |  |  |" in page
    assert "| the best peer | 0.843 (3) |  |  |  |  |" in page
    assert "| males | known | 1.20 ± 0.00 | lme4 |" in page
    assert "| wages | rmse | known | 60 | 2 | **1** | 2 | 4 |" in page
    assert "| merf | 2 | 0 | 0 | 0 | 1 |" in page
    assert "![Ratios to the best peer](ratios.png)" in page


def test_a_page_without_results_has_the_runs_only(make_record):
    page = render_markdown([make_record(method="lme4", outcome="missing")])
    assert "ratios.png" not in page
    assert page.endswith("| lme4 | 0 | 0 | 1 | 0 |  |\n")


def test_the_rows_of_a_ratio_table_are_equally_long(make_record):
    rows = ratio_table(compare(collect_cells(compared(make_record)), "leaflearn"))
    assert [row[0] for row in rows] == ["leaflearn to", "lme4", "merf", "the best peer"]
    assert {len(row) for row in rows} == {6}


def test_the_summary_can_be_written_as_json(make_record):
    found = json.loads(json.dumps(as_json(compared(make_record))))
    assert found["comparisons"][0]["to_best"]["known"]["n_tables"] == 3
    assert found["comparisons"][0]["notable"][0]["table"] == "males"
    assert [cell["table"] for cell in found["cells"]] == ["wages", "males", "bdf"]
