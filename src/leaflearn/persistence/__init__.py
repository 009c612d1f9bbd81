"""A model as a folder that is safe to share: JSON, safetensors and skops, never pickle."""

from leaflearn.persistence.arrays import pack_arrays, pack_tensors, unpack_arrays, unpack_tensors
from leaflearn.persistence.containers import table_from_json, table_to_json
from leaflearn.persistence.folder import Model, expecting, read_model, write_model
from leaflearn.persistence.objects import pack_objects, unpack_objects
from leaflearn.persistence.values import from_json, to_json

__all__ = [
    "Model",
    "expecting",
    "from_json",
    "pack_arrays",
    "pack_objects",
    "pack_tensors",
    "read_model",
    "table_from_json",
    "table_to_json",
    "to_json",
    "unpack_arrays",
    "unpack_objects",
    "unpack_tensors",
    "write_model",
]
