"""Intervals of errors: they cover what they should, know that rows of a group go together, and keep quiet where groups are few."""

import numpy as np
import pytest

from leaflearn.tabular.held_out import FEWEST_GROUPS, find_interval, find_interval_of_ratio


def draw_rate(rng, m, share, likeness):
    """Wrong rows of m groups, whose own shares differ the more, the larger the likeness of their rows."""
    rows = rng.integers(3, 8, m)
    own = (
        rng.beta(share * (1 / likeness - 1), (1 - share) * (1 / likeness - 1), m)
        if likeness
        else np.full(m, share)
    )
    return rng.binomial(rows, own).astype(float), rows.astype(float)


def covered(draw, truth, is_rate, n=400):
    ends = [find_interval(*draw(), is_rate) for _ in range(n)]
    return np.mean([low <= truth <= high for low, high in ends])


@pytest.mark.parametrize(("share", "likeness"), [(0.3, 0.0), (0.3, 0.3), (0.05, 0.0), (0.05, 0.2)])
@pytest.mark.parametrize("m", [5, 8, 30])
def test_shares_are_covered_as_often_as_promised(m, share, likeness):
    rng = np.random.default_rng(m)
    assert covered(lambda: draw_rate(rng, m, share, likeness), share, is_rate=True) > 0.9


@pytest.mark.parametrize("m", [5, 8, 30])
def test_roots_of_mean_squares_are_covered_nearly_as_often(m):
    rng = np.random.default_rng(m)

    def draw():
        rows = rng.integers(3, 8, m)
        return np.array([np.square(rng.normal(0, 2, n)).sum() for n in rows]), rows.astype(float)

    assert covered(draw, 2.0, is_rate=False) > 0.88


def test_resampling_the_groups_would_cover_much_less_where_they_are_few():
    """The reason why nothing is drawn."""
    rng = np.random.default_rng(0)
    ours, theirs = [], []
    for _ in range(300):
        wrong, rows = draw_rate(rng, 6, 0.05, 0.2)
        low, high = find_interval(wrong, rows, is_rate=True)
        ours.append(low <= 0.05 <= high)
        times = rng.multinomial(6, np.full(6, 1 / 6), 200)
        low, high = np.quantile(times @ wrong / (times @ rows), [0.025, 0.975])
        theirs.append(low <= 0.05 <= high)
    assert np.mean(theirs) < 0.8 < 0.9 < np.mean(ours)


def test_too_few_groups_have_none():
    for m in range(2, FEWEST_GROUPS):
        assert find_interval(np.ones(m), np.full(m, 9.0), is_rate=True) is None
        assert find_interval_of_ratio(np.ones(m), np.ones(m), is_rate=True) is None


@pytest.mark.parametrize("wrong", [0.0, 4.0])
def test_no_error_seen_is_not_no_error_at_all(wrong):
    low, high = find_interval(np.full(10, wrong), np.full(10, 4.0), is_rate=True)
    assert (low, high) == pytest.approx((0.0, 0.113) if wrong == 0 else (0.887, 1.0), abs=0.001)


def test_rows_that_are_wrong_together_say_less():
    rows, spread, together = np.full(20, 5.0), np.ones(20), np.repeat([5.0, 0.0], [4, 16])
    wide, narrow = (
        np.ptp(find_interval(wrong, rows, is_rate=True)) for wrong in (together, spread)
    )
    assert wide > 1.5 * narrow


@pytest.mark.parametrize("is_rate", [True, False])
def test_the_error_is_inside_and_more_groups_say_more(is_rate):
    rng = np.random.default_rng(0)
    wrong, rows = rng.integers(0, 5, 12).astype(float), np.full(12, 5.0)
    error = wrong.sum() / rows.sum() if is_rate else np.sqrt(wrong.sum() / rows.sum())
    few, many = (find_interval(np.tile(wrong, n), np.tile(rows, n), is_rate) for n in (1, 9))
    assert 0 <= few[0] < many[0] < error < many[1] < few[1]
    order = rng.permutation(12)
    assert find_interval(wrong[order], rows[order], is_rate) == pytest.approx(few)


def test_the_unit_of_a_quantity_does_not_matter():
    rng = np.random.default_rng(0)
    losses, rows = rng.gamma(2.0, size=8), np.full(8, 3.0)
    small, large = (find_interval(unit**2 * losses, rows, is_rate=False) for unit in (1.0, 1000.0))
    assert large == pytest.approx([1000.0 * end for end in small])


@pytest.mark.parametrize("is_rate", [True, False])
def test_a_ratio_turned_over_has_its_ends_turned_over(is_rate):
    rng = np.random.default_rng(0)
    losses, others = rng.gamma(2.0, size=9), 3 * rng.gamma(2.0, size=9)
    low, high = find_interval_of_ratio(losses, others, is_rate)
    assert find_interval_of_ratio(others, losses, is_rate) == pytest.approx((1 / high, 1 / low))
    assert find_interval_of_ratio(losses, losses, is_rate) == (1.0, 1.0)
    assert find_interval_of_ratio(losses, np.zeros(9), is_rate) is None


def test_groups_that_are_hard_for_both_do_not_blur_what_one_saves():
    """Both errors are of the same rows: their own intervals overlap, and yet one is surely half of the other."""
    hard = np.array([1.0, 2.0, 9.0, 1.0, 30.0, 2.0, 1.0, 12.0])
    one, each = (
        find_interval(4 * hard, np.full(8, 5.0), is_rate=False),
        find_interval(hard, np.full(8, 5.0), is_rate=False),
    )
    assert one[0] < each[1]
    assert find_interval_of_ratio(hard, 4 * hard, is_rate=False) == pytest.approx((0.5, 0.5))


def test_what_cannot_be_measured_has_no_interval():
    assert find_interval(np.zeros(9), np.full(9, 5.0), is_rate=False) is None
    assert find_interval(np.array([1e300] + [0.0] * 8), np.full(9, 5.0), is_rate=False) is not None
    assert find_interval(np.array([np.inf] + [0.0] * 8), np.full(9, 5.0), is_rate=False) is None
