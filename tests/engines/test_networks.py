from torch import nn

from leaflearn.engines.networks import mlp


def test_an_mlp_has_relus_between_its_linear_layers():
    layers = list(mlp(3, 2, hidden=(8, 4)))
    assert [type(layer) for layer in layers] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    assert [(layer.in_features, layer.out_features) for layer in layers[::2]] == [
        (3, 8),
        (8, 4),
        (4, 2),
    ]


def test_no_hidden_layer_makes_it_linear():
    assert [type(layer) for layer in mlp(3, 2, hidden=())] == [nn.Linear]
