"""Pickles of data are read, and whatever else a pickle can ask for is refused before anything runs."""

import copyreg
import functools
import os
import pickle
import random
import subprocess
import tracemalloc

import numpy as np
import pytest

from leaflearn.benchmark.datasets.safe_pickle import load_pickle
from leaflearn.benchmark.datasets.store import DataError

CONTENT = {
    "text": ["ä", b"\xff\x00", "", "long" * 100, b"long" * 100],
    "numbers": [0, 255, 256, 65536, -1, 2**40, -(2**70), 0.5, True, False, None],
    b"nested": {1: [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)], 2.5: {}},
}
COMMAND = "touch $CANARY"
SYSTEM = f"{os.system.__module__}.system"
OLD_ARRAY = (  # a dictionary with an array (2, 2) of bytes, as Python 2 and its numpy wrote it
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05(K\x01"
    b"K\x02K\x02\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    b"\x89T\x04\x00\x00\x00\x01\x02\x03\x04tbu."
)


class Call:
    """Pickled, it asks for a call when it is read."""

    def __init__(self, function, *arguments):
        self.asked = function, arguments

    def __reduce__(self):
        return self.asked


@pytest.fixture
def save(tmp_path):
    def save_as(content):
        path = tmp_path / "data"
        path.write_bytes(content)
        return path

    return save_as


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that COMMAND makes."""
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    return tmp_path / "canary"


def refused(path, thing):
    with pytest.raises(DataError) as error:
        load_pickle(path)
    assert str(error.value) == (
        f"'{path}' is refused and nothing of it ran, because it asks for {thing}, which data have no use for; "
        "fetch it again from its publisher."
    )


def damaged(path, reason="its parts do not fit together"):
    with pytest.raises(DataError) as error:
        load_pickle(path)
    assert (
        str(error.value)
        == f"'{path}' is not a whole pickle of numbers, text and arrays: {reason}; fetch it again from its publisher."
    )


# What is read


@pytest.mark.parametrize("protocol", [3, 4])
def test_plain_values_come_back_as_they_were(save, protocol):
    assert load_pickle(save(pickle.dumps(CONTENT, protocol))) == CONTENT


@pytest.mark.parametrize("protocol", [2, 3, 4])
@pytest.mark.parametrize("kind", ["?", "u1", "<i2", ">i4", "i8", "f4", ">f8", "c16"])
def test_arrays_of_every_kind_of_number_come_back(save, protocol, kind):
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    given = [array, np.asfortranarray(array[0]), array[0, 0, 1], array]
    made = load_pickle(save(pickle.dumps(given, protocol)))
    for one, expected in zip(made, given, strict=True):
        assert np.array_equal(one, expected)
        assert one.dtype == expected.dtype
    assert made[3] is made[0]  # a second mention is the same array, as it was


def test_arrays_without_rows_come_back(save):
    assert load_pickle(save(pickle.dumps(np.empty((0, 3)), protocol=4))).shape == (0, 3)


def test_text_of_python_2_comes_as_bytes(save):
    made = load_pickle(save(OLD_ARRAY))
    assert list(made) == [b"data"]
    assert np.array_equal(made[b"data"], np.array([[1, 2], [3, 4]], dtype=np.uint8))
    assert made[b"data"].dtype == np.uint8


def test_a_list_that_holds_itself_comes_back(save):
    circle = []
    circle.append(circle)
    made = load_pickle(save(pickle.dumps(circle, protocol=4)))
    assert made[0] is made


# What is refused

HARMFUL = {
    SYSTEM: Call(os.system, COMMAND),
    "builtins.eval": Call(eval, f"__import__('os').system('{COMMAND}')"),
    "builtins.exec": Call(exec, f"import os; os.system('{COMMAND}')"),
    "subprocess.getoutput": Call(subprocess.getoutput, COMMAND),
    "functools.partial": Call(functools.partial(os.system, COMMAND)),
}


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize("name", HARMFUL)
def test_functions_are_refused_by_name(save, canary, name, protocol):
    content = pickle.dumps({"data": [1, HARMFUL[name]]}, protocol)
    pickle.loads(content)
    assert canary.exists()  # Python's own reader runs it
    canary.unlink()
    refused(save(content), repr(name))
    assert not canary.exists()


BY_HAND = {
    "text protocol": (b"cos\nsystem\n(S'touch $CANARY'\ntR.", "'os.system'"),
    "instance": (b"(U\rtouch $CANARYios\nsystem\n.", "the instruction INST"),
    "object": (b"(cos\nsystem\nU\rtouch $CANARYo.", "'os.system'"),
    "function of a submodule": (
        b"\x80\x04\x8c\x05numpy\x8c\x11testing.os.system\x93\x8c\rtouch $CANARY\x85R.",
        "'numpy.testing.os.system'",
    ),
    "attribute of an admitted name": (
        b"\x80\x04\x8c\x05numpy\x8c\rdtype.__new__\x93.",
        "'numpy.dtype.__new__'",
    ),
    "admitted name of another module": (b"cos\ndtype\n.", "'os.dtype'"),
    "name that is no text": (b"\x80\x04K\x01K\x02\x93.", "a function without a name"),
    "name with control characters": (b"c\x1b[31mos\nsystem\n.", r"'\x1b[31mos.system'"),
    "persistent text": (b"Ptouch\n.", "the instruction PERSID"),
    "persistent object": (b"U\x05touchQ.", "the instruction BINPERSID"),
    "new object": (b"\x80\x02cnumpy\ndtype\n)\x81.", "the instruction NEWOBJ"),
    "change of a function": (
        b"\x80\x02cnumpy\ndtype\nN}U\x0c__defaults__)s\x86b.",
        "the instruction BUILD of something else than an array",
    ),
    "call of text": (b"\x80\x02U\x04exec)R.", "a call of something that is no function"),
    "compressed text": (
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00xX\x03\x00\x00\x00zip\x86R.",
        "a translation that bytes do not need",
    ),
    "import by a translation": (
        b"\x80\x02c_codecs\nlookup\nX\x03\x00\x00\x00zip\x85R.",
        "'_codecs.lookup'",
    ),
    "huge empty array": (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\x8a\x06\x00\x10\xa5\xd4\xe8\x00\x85U\x01b\x87R.",
        "an array that numpy would not ask for",
    ),
    "array of another class": (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nmemmap\nK\x00\x85U\x01b\x87R.",
        "'numpy.memmap'",
    ),
    "type of nothing": (b"\x80\x02cnumpy\ndtype\n)R.", "an array of a type without a name"),
    "array with a list as content": (
        OLD_ARRAY.replace(b"T\x04\x00\x00\x00\x01\x02\x03\x04", b"]"),
        "an array of other things than numbers",
    ),
    "type with fields": (
        OLD_ARRAY.replace(b"|NNN", b"|NN}"),
        "an array of other things than numbers",
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_written_by_hand_is_refused(save, canary, name):
    content, thing = BY_HAND[name]
    refused(save(content), thing)
    assert not canary.exists()


def test_numbered_extensions_are_refused_even_when_python_knows_them(save, canary):
    copyreg.add_extension(os.system.__module__, "system", 0xF0)
    try:
        content = pickle.dumps(Call(os.system, COMMAND), protocol=2)
        pickle.loads(content)
        assert canary.exists()
        canary.unlink()
        refused(save(content), "the instruction EXT1")
        assert not canary.exists()
    finally:
        copyreg.remove_extension(os.system.__module__, "system", 0xF0)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.array([Call(os.system, COMMAND)], dtype=object), "O8"),
        (np.zeros(2, dtype=[("a", "i4")]), "V4"),
        (np.array(["text"]), "U4"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "M8"),
    ],
    ids=["objects", "fields", "text", "dates"],
)
def test_arrays_of_other_things_than_numbers_are_refused(save, canary, array, kind):
    refused(save(pickle.dumps(array, protocol=4)), f"an array of type '{kind}'")
    assert not canary.exists()


# What is damaged

DAMAGED = {
    "empty": (b"", "it ends too early"),
    "page of the web": (b"<!DOCTYPE html>", "there is no instruction b'<'"),
    "no value": (b"\x80\x02.", None),
    "unknown place": (b"\x80\x02h\x07.", None),
    "text for a list": (b"\x80\x02U\x01xU\x01ya.", None),
    "list as a key": (b"\x80\x02}]Ns.", None),
    "key without value": (b"\x80\x02}(K\x01u.", None),
    "no mark": (b"\x80\x02]e.", None),
    "not the encoding": (b"\x80\x02X\x01\x00\x00\x00\xff.", None),
    "array without content": (
        OLD_ARRAY[: OLD_ARRAY.index(b"q\x05")] + b"u.",
        "an array in it was begun and not finished",
    ),
    "name for a value": (b"\x80\x02cnumpy\ndtype\n.", "an array in it was begun and not finished"),
    "larger than its content": (
        OLD_ARRAY.replace(b"K\x02K\x02\x86", b"K\x02K\x03\x86"),
        "an array in it has another size than its content",
    ),
    "negative": (
        OLD_ARRAY.replace(b"K\x02K\x02\x86", b"K\x02\x8a\x01\xfe\x86"),
        "an array in it has no proper shape",
    ),
    "text longer than the file": (b"\x80\x02T\xff\xff\xff\xff", "it ends too early"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_ends_in_a_sentence(save, name):
    content, reason = DAMAGED[name]
    damaged(save(content), *filter(None, [reason]))


def test_a_file_that_ends_anywhere_ends_in_a_sentence(save):
    for n in range(len(OLD_ARRAY)):
        damaged(save(OLD_ARRAY[:n]), "it ends too early")


def test_random_damage_is_survived(save):
    """Whatever is changed, the file is read or refused in a sentence."""
    generator, sentences = random.Random(0), 0
    for original in [
        OLD_ARRAY,
        *(pickle.dumps([CONTENT, np.float32(1), np.eye(2)], protocol) for protocol in (2, 3, 4)),
    ] * 100:
        content = bytearray(original)
        for _ in range(3):
            content[generator.randrange(len(content))] = generator.randrange(256)
        try:
            load_pickle(save(content))
        except DataError:
            sentences += 1
    assert 200 < sentences < 400


def test_keys_are_not_nested_so_deeply_that_python_breaks(save):
    damaged(save(b"\x80\x02})" + b"\x85" * 200_000 + b"Ns."))


BOMBS = {
    "a place far away in the memory": b"\x80\x02Nr\xff\xff\xff\xff.",
    "a long text again and again": b"\x80\x02X" + (100_000).to_bytes(4, "little") + b"x" * 100_000 + b"q\x01c_codecs\nencode\nq\x02"
    b"X\x06\x00\x00\x00latin1q\x03]" + b"h\x02h\x01h\x03\x86Ra" * 5000 + b".",
    "an array of a million rows": OLD_ARRAY.replace(b"K\x02K\x02\x86", b"J\x00\x00\x00\x40J\x00\x00\x00\x40\x86"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_memory_stays_near_the_size_of_the_file(save, name):
    path = save(BOMBS[name])
    tracemalloc.start()
    try:
        load_pickle(path)
    except DataError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 500_000


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        DataError, match=f"^Cannot read '{tmp_path / 'nothing'}': No such file or directory.$"
    ):
        load_pickle(tmp_path / "nothing")
