"""How long a stage lasts."""

from opposite_lines import Stages, fit, make_data


def test_large_data_gets_at_least_twenty_passes_and_small_data_two_thousand_steps():
    stages = Stages()
    fit(
        make_data(n_groups=64, size=1),
        max_epochs="auto",
        refresh=False,
        n_init=1,
        n_iter_no_change=None,
        callbacks=[stages],
    )
    assert len(stages.heard) == 1000  # two steps each
    stages = Stages()
    data = make_data(n_groups=6400, size=1)
    fit(data, max_epochs="auto", refresh=False, n_init=1, n_iter_no_change=None, callbacks=[stages])
    assert len(stages.heard) == 20
