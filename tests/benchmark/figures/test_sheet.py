"""The sheet shows examples with their true targets; `leaflearn data show NAME` draws one."""

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples, Function, Images
from leaflearn.benchmark.figures.sheet import draw_sheet
from leaflearn.plot.style import FAINT, INK, PALETTE

LONG = (
    "large carnivores",
    "household electrical devices",
    "large omnivores and herbivores",
    "WWWWWWWWW MMMMMMMMM WWWWWWWWW",
    "antidisestablishmentarianism",
    "$ or \\frac$",
)


def make_set(*tests, classes=None, name="mine", names=("shape", "paint", "size")):
    """One domain for each pair of inputs and targets."""
    domains = [
        Domain(names[d], train=Examples(x, y), test=Examples(x, y))
        for d, (x, y) in enumerate(tests)
    ]
    return DomainSet(name, tuple(domains), n_groups=4, group_size=2, classes=classes)


def make_images(n, n_channels=3):
    """Images whose first pixel is the number of the row."""
    x = np.random.default_rng(0).random((n, n_channels, 4, 6), dtype=np.float32)
    x[:, :, 0, 0] = (np.arange(n, dtype=np.float32) / n)[:, None]
    return x


def rows_of(figure, n):
    """Which row each image of the sheet is, read from its first pixel."""
    return [round(float(np.ravel(axes.images[0].get_array()[0, 0])[0]) * n) for axes in figure.axes]


def answers_of(figure):
    return [[text.get_text() for text in axes.texts] for axes in figure.axes]


def places(dots):
    return np.asarray(dots.get_offsets())


@pytest.fixture
def images():
    """40 images; domain 0 has labels 0 to 9, domain 1 labels 10 to 17."""
    x, row = make_images(40), np.arange(40)
    classes = tuple(f"class {label}" for label in range(18))
    return make_set((x, row % 10), (x, 10 + row * 3 % 8), classes=classes)


def test_the_label_of_every_domain_is_below_each_image_in_its_colour(images):
    figure = draw_sheet(images)
    rows = rows_of(figure, 40)
    assert len(set(rows)) == 24
    assert all(len(axes.images) == 1 for axes in figure.axes)
    assert answers_of(figure) == [
        [f"class {row % 10}", f"class {10 + row * 3 % 8}"] for row in rows
    ]
    assert all(
        [text.get_color() for text in axes.texts] == list(PALETTE[:2]) for axes in figure.axes
    )


def test_the_seed_selects_the_images(images):
    first, again, other = (rows_of(draw_sheet(images, seed), 40) for seed in (0, 0, 1))
    assert first == again
    assert set(first) != set(other)


def test_rare_labels_occur_too():
    n = 2000
    rare, other = np.zeros(n, dtype=np.uint8), np.full(n, 30)
    rare[100:118] = np.arange(1, 19)  # one image each
    other[500:505] = np.arange(31, 36)
    x = make_images(n)
    said = answers_of(
        draw_sheet(make_set((x, rare), (x, other), classes=tuple(map(str, range(36)))))
    )
    assert {answers[0] for answers in said} == set(map(str, range(19)))
    assert {answers[1] for answers in said} == set(map(str, range(30, 36)))


def test_no_combination_of_labels_is_repeated_before_all_occur():
    row = np.arange(800)
    x = make_images(800)
    # Mostly the same combination.
    labels = (row % 4 * (row > 700), 4 + row // 4 % 6 * (row > 700))
    said = answers_of(
        draw_sheet(make_set((x, labels[0]), (x, labels[1]), classes=tuple(map(str, range(10)))))
    )
    assert len(set(map(tuple, said))) == 24


def test_few_examples_are_all_shown_once():
    x = make_images(5)
    figure = draw_sheet(make_set((x, np.arange(5)), classes=tuple("abcde")))
    assert answers_of(figure) == [["a"], ["b"], ["c"], ["d"], ["e"]]


def test_images_of_one_domain_are_in_rows_of_that_domain():
    n = 40
    mine, yours = make_images(n), make_images(n)
    labels = np.arange(n) % 2
    figure = draw_sheet(
        make_set((mine, labels), (yours, 1 - labels), classes=("negative", "positive"))
    )
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()] == [
        "shape",
        "shape",
        "paint",
        "paint",
    ]
    for axes, row, said in zip(figure.axes, rows_of(figure, n), answers_of(figure), strict=True):
        in_first_half = axes.get_position().y0 > figure.axes[12].get_position().y1
        is_positive = (row % 2 == 1) == in_first_half
        assert said == ["positive" if is_positive else "negative"]
        assert axes.texts[0].get_color() == PALETTE[0 if in_first_half else 1]


def test_images_are_the_right_way_round_and_undistorted():
    x = np.zeros((1, 3, 4, 6), dtype=np.float32)
    x[0, 0, 0, 5] = 1.0  # red, top right
    axes = draw_sheet(make_set((x, np.array([0])), classes=("a",))).axes[0]
    shown = axes.images[0].get_array()
    assert shown[0, 5].tolist() == [1.0, 0.0, 0.0]
    assert float(shown.sum()) == 1.0
    assert axes.get_aspect() == 1.0
    assert axes.images[0].get_interpolation() == "nearest"


def test_grey_images_kept_as_bytes():
    stored = np.full((3, 1, 8, 8), 51, dtype=np.uint8)
    image = (
        draw_sheet(make_set((Images(stored), np.arange(3)), classes=tuple("abc"))).axes[1].images[0]
    )
    assert np.asarray(image.get_array()) == pytest.approx(np.full((8, 8), 0.2))
    assert image.get_clim() == (0.0, 1.0)  # not stretched to what is there
    assert image.get_cmap().name == "gray"


@pytest.mark.parametrize("together", [True, False])
def test_long_labels_overlap_nothing(together):
    x, y = make_images(40), np.arange(40) % len(LONG)
    figure = draw_sheet(
        make_set((x, y), (x if together else x.copy(), (y + 1) % len(LONG)), classes=LONG)
    )
    FigureCanvasAgg(figure).draw()
    labels = [axes.yaxis.label for axes in figure.axes if axes.get_ylabel()]
    texts = [*figure.texts, *labels, *(text for axes in figure.axes for text in axes.texts)]
    boxes = [
        artist.get_window_extent() for artist in (*texts, *(axes.patch for axes in figure.axes))
    ]
    overlaps = [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[:i]
        if a.padded(-1).overlaps(b.padded(-1))
    ]
    assert overlaps == []
    assert all(
        box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        for box in boxes
    )
    assert {" ".join(text.get_text().split()) for text in texts} >= set(LONG[:4])


def test_the_heading_has_names_and_numbers_of_examples():
    x = make_images(1234)
    data = make_set(
        (x, np.zeros(1234, int)),
        (x, np.ones(1234, int)),
        classes=("a", "b"),
        name="mine (simulated)",
    )
    heading = [(text.get_text(), text.get_color()) for text in draw_sheet(data).texts]
    assert heading == [
        ("mine (simulated)", INK),
        ("shape: 1,234 training examples, 1,234 test examples", PALETTE[0]),
        ("paint: 1,234 training examples, 1,234 test examples", PALETTE[1]),
    ]


def test_functions_are_curves_over_grey_examples():
    up, down = Function(lambda x: x, -1.0, 1.0), Function(lambda x: -x, -1.0, 1.0)
    backwards = Examples(down.grid(5).x[::-1], down.grid(5).y[::-1])
    data = DomainSet(
        "cross", (Domain("up", up, up.grid(9)), Domain("down", down, backwards)), 10, 2
    )
    figure = draw_sheet(data)
    lines = figure.axes[0].lines
    assert [line.get_color() for line in lines] == list(PALETTE[:2])
    assert lines[0].get_ydata() == pytest.approx(np.linspace(-1, 1, 9))
    assert lines[1].get_xydata() == pytest.approx(
        np.stack([np.linspace(-1, 1, 5), np.linspace(1, -1, 5)], axis=1)
    )
    dots = figure.axes[0].collections[0]
    assert np.abs(places(dots)[:, 0]) == pytest.approx(np.abs(places(dots)[:, 1]))
    assert to_hex(dots.get_facecolor()[0]) == FAINT.lower()
    assert figure.texts[1].get_text() == "up: any number of training examples, 9 test examples"


def test_numeric_targets_have_a_panel_for_each_domain_and_output():
    generator = np.random.default_rng(0)
    x, other_x = generator.normal(size=(2500, 16)), generator.normal(size=(90, 16))
    y, other_y = 100 * generator.random((2500, 2)), 100 * generator.random((90, 2)) + 50
    figure = draw_sheet(make_set((x, y), (other_x, other_y)))
    panels = [axes for axes in figure.axes if axes.collections and axes.get_label() != "<colorbar>"]
    dots = [panel.collections[0] for panel in panels]
    assert [panel.get_title(loc="left") for panel in panels] == ["shape", "paint", "", ""]
    assert [len(places(dot)) for dot in dots] == [2000, 90, 2000, 90]
    assert sorted(dots[1].get_array()) == pytest.approx(sorted(other_y[:, 0]))
    assert sorted(dots[3].get_array()) == pytest.approx(sorted(other_y[:, 1]))
    # The panels of a row share the colour scale and the axes.
    assert dots[0].get_clim() == dots[1].get_clim() != dots[2].get_clim()
    assert panels[0].get_xlim() == panels[1].get_xlim()


def test_projected_points_keep_their_targets():
    x = np.random.default_rng(0).normal(size=(300, 2))
    figure = draw_sheet(make_set((x, np.stack([np.arange(300.0), -np.arange(300.0)], axis=1))))
    first, second = (axes.collections[0] for axes in figure.axes[:2])
    assert places(first) == pytest.approx(places(second))
    rows = np.asarray(first.get_array()).astype(int)
    assert np.asarray(second.get_array()) == pytest.approx(-rows)
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    # Two inputs are only rotated.
    lengths = np.linalg.norm(standard, axis=1)[rows]
    assert np.linalg.norm(places(first), axis=1) == pytest.approx(lengths)


def test_few_labels_are_named_and_many_are_counted():
    x, row = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60)
    figure = draw_sheet(
        make_set(
            (x, row % 3), (x, 3 + row % 20), classes=tuple(f"class {label}" for label in range(23))
        )
    )
    few, many = figure.axes
    assert [text.get_text() for text in few.get_legend().texts] == ["class 0", "class 1", "class 2"]
    assert many.get_legend() is None
    assert many.get_xlabel() == "20 labels, each of its own colour"
    # The same examples.
    assert places(few.collections[0]) == pytest.approx(places(many.collections[0]))


def test_points_have_the_colour_of_their_label_in_the_legend():
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    axes = draw_sheet(
        make_set((x, (np.abs(x[:, 0]) > 0.5).astype(int)), classes=("inside", "outside"))
    ).axes[0]
    dots, *named = axes.collections
    assert [text.get_text() for text in axes.get_legend().texts] == ["inside", "outside"]
    is_inside = np.abs(places(dots)[:, 0]) < np.median(np.abs(places(dots)[:, 0]))
    assert dots.get_facecolor() == pytest.approx(
        np.where(is_inside[:, None], *(name.get_facecolor() for name in named))
    )


def test_a_single_input_with_labels_can_be_projected():
    figure = draw_sheet(
        make_set((np.arange(6.0)[:, None], np.arange(6) % 2), classes=("even", "odd"))
    )
    assert figure.axes[0].collections[0].get_offsets().shape == (6, 2)


def test_fonts_are_readable_and_user_settings_are_kept(images, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 7.0)
    figure = draw_sheet(images)
    assert min(text.get_size() for axes in figure.axes for text in axes.texts) >= 12
    assert matplotlib.rcParams["font.size"] == 7.0
