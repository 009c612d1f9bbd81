"""The colours are distinct and repeat only after all are used."""

import matplotlib
import pytest

from leaflearn.plot.style import FAINT, INK, PALETTE, color_of, styled


def test_all_colours_differ():
    assert len({*PALETTE, INK, FAINT}) == len(PALETTE) + 2


def test_colours_repeat_only_after_the_last():
    assert [color_of(d) for d in range(len(PALETTE))] == list(PALETTE)
    assert color_of(len(PALETTE)) == PALETTE[0]
    assert color_of(-1) == INK


def test_settings_are_restored_after_an_error():
    before = matplotlib.rcParams["font.size"]

    @styled
    def fail():
        raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert matplotlib.rcParams["font.size"] == before
