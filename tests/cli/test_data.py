"""`leaflearn data`: what it prints and writes and how it fails, on small test data sets."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from leaflearn.benchmark.datasets import (
    DATASETS,
    DataError,
    DataSet,
    fetching,
    gas_simulator,
    store,
)
from leaflearn.benchmark.datasets.domains import Domain, DomainSet
from leaflearn.benchmark.datasets.sources import Examples
from leaflearn.benchmark.datasets.store import VARIABLE, Files, locate
from leaflearn.benchmark.figures import sheet
from leaflearn.cli.main import run

CATS = b"Tom"
PETS = Files(
    "house/pets",
    "Pets, by A. Nimal",
    "CC [0]",
    contents={
        "cats.csv": f"md5:{hashlib.md5(CATS).hexdigest()}",
        "dogs.csv": None,
        "photographs/": None,
    },
    by_hand="Ask A. Nimal.",
)


def pets(inputs="features"):
    """Cats [bold] or dogs.

    More of them.
    """
    locate(PETS)
    x = np.zeros((30, 3, 4, 4) if inputs == "images" else (30, 5), dtype=np.float32)
    y = np.arange(30) % 2
    return DomainSet(
        "pets (simulated)",
        (Domain("owner", Examples(x, y), Examples(x, y)),),
        4,
        2,
        classes=("cat", "dog"),
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty data folder, three data sets, and nothing else."""
    for name in set(DATASETS) - {"functions", "colored-digits"}:
        monkeypatch.delitem(DATASETS, name)
    monkeypatch.setitem(DATASETS, "pets", DataSet("pets", pets, PETS))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("LEAFLEARN_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def put(folder):
    """Put files into the folder of the pets."""

    def write(**contents):
        for name, content in contents.items():
            path = folder / "house" / "pets" / name.replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    return write


@pytest.fixture
def all_files(folder, put):
    put(cats_csv=CATS, dogs_csv=b"Rex")
    (folder / "house" / "pets" / "photographs").mkdir()
    (folder / "house" / "pets" / "photographs" / "1.jpg").touch()


@pytest.fixture
def leaflearn(capsys):
    """Run the command; its exit code, what it printed, and its error."""

    def call(*arguments):
        code = run(["data", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def gas(monkeypatch):
    """The data set that can be simulated, with a fast simulator."""
    files = Files("gas", "Gas, by F.", "CC BY", contents={"a.txt": None}, by_hand="Breathe.")
    monkeypatch.setitem(DATASETS, "gas-mixtures", DataSet("gas-mixtures", pets, files))

    def simulate(folder):
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("Time (simulated)\n")

    monkeypatch.setattr(gas_simulator, "simulate_gas_mixtures", simulate)


# All commands: names and help


@pytest.mark.parametrize("arguments", [["data"], ["data", "--help"]])
def test_help_imports_no_heavy_package_and_lists_the_commands(arguments):
    heavy = "{'torch', 'sklearn', 'matplotlib', 'numpy', 'leaflearn.benchmark.datasets'}"
    program = (
        f"import sys; from leaflearn.cli.main import run; code = run({arguments}); "
        f"sys.exit(code or bool({heavy} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.partition("Commands:\n")[2].splitlines()] == [
        "get",
        "list",
        "show",
        "verify",
        "where",
    ]


@pytest.mark.parametrize(
    "arguments", [["data", "list"], ["data", "where"], ["data", "where", "cifar100-hierarchy"]]
)
def test_list_and_where_need_no_torch(arguments):
    program = (
        f"import sys; from leaflearn.cli.main import run; code = run({arguments}); "
        "sys.exit(code or 'torch' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.parametrize("command", ["get", "show", "verify", "where"])
def test_an_unknown_name_suggests_the_nearest_and_lists_all(leaflearn, command):
    names = "There are: colored-digits, functions, pets."
    near = (
        "leaflearn: There is no data set called 'colored-digit'; did you mean "
        f"colored-digits? {names}\n"
    )
    assert leaflearn(command, "colored-digit") == (2, "", near)
    assert leaflearn(command, "xyzzy") == (
        2,
        "",
        f"leaflearn: There is no data set called 'xyzzy'. {names}\n",
    )


# list


def test_list_shows_the_state_of_the_files(leaflearn, folder):
    code, out, err = leaflearn("list")
    assert (code, err) == (0, "")
    cells = [
        [cell.strip() for cell in line.split("│")[1:-1]]
        for line in out.splitlines()
        if line.startswith("│")
    ]
    assert ["pets", "missing", "Cats [bold] or dogs.", "Pets, by A. Nimal"] in cells
    assert ["", "", "", "Terms: CC [0]"] in cells
    assert ["functions", "built in"] in [row[:2] for row in cells]
    assert out.endswith(f"The data folder is {folder}\n")


@pytest.mark.usefixtures("all_files")
def test_list_as_json_with_the_files_there(leaflearn, folder):
    code, out, err = leaflearn("list", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["folder"] == str(folder)
    rows = {row["name"]: row for row in answer["data_sets"]}
    assert rows["pets"] == {
        "name": "pets",
        "summary": "Cats [bold] or dogs.",
        "title": "Pets, by A. Nimal",
        "terms": "CC [0]",
        "folder": str(folder / "house" / "pets"),
        "files": "ready",
    }
    assert (
        rows["functions"]["files"],
        rows["functions"]["title"],
        rows["functions"]["folder"],
    ) == ("built in", None, None)


def test_a_folder_that_cannot_be_read_does_not_hide_the_others(leaflearn, monkeypatch):
    def refuse(files):
        raise PermissionError(13, "Permission denied", files.folder)

    monkeypatch.setattr(store, "missing", refuse)
    code, out, err = leaflearn("list", "--json")
    assert (code, err) == (0, "")
    states = {row["name"]: row["files"] for row in json.loads(out)["data_sets"]}
    assert states == {"colored-digits": "built in", "functions": "built in", "pets": "unreadable"}


def test_the_table_fits_a_narrow_terminal(leaflearn, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = leaflearn("list")
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert "colored-digits" in out


# get


def test_get_prints_the_folder_of_the_files(leaflearn, monkeypatch, tmp_path):
    fetched = []
    monkeypatch.setattr(fetching, "get", lambda files: fetched.append(files) or tmp_path / "there")
    assert leaflearn("get", "pets") == (0, f"The files of pets are in {tmp_path / 'there'}\n", "")
    assert fetched == [PETS]


def test_get_fails_as_fetching_fails(leaflearn, monkeypatch):
    def fail(files):
        raise DataError("There is no network. Ask A. Nimal.")

    monkeypatch.setattr(fetching, "get", fail)
    assert leaflearn("get", "pets") == (2, "", "leaflearn: There is no network. Ask A. Nimal.\n")


def test_a_built_in_data_set_has_nothing_to_get(leaflearn, folder):
    assert leaflearn("get", "functions") == (
        0,
        "functions is built in: there is nothing to get.\n",
        "",
    )
    assert not folder.exists()


@pytest.mark.parametrize("name", ["pets", "functions"])
def test_only_one_data_set_can_be_simulated(leaflearn, name):
    sentence = (
        f"leaflearn: Only gas-mixtures can be simulated, not {name}; leave out --simulated.\n"
    )
    assert leaflearn("get", name, "--simulated") == (2, "", sentence)


@pytest.mark.usefixtures("gas")
def test_simulated_files_are_not_mistaken_for_the_publishers(leaflearn, folder):
    assert leaflearn("get", "gas-mixtures", "--simulated") == (
        0,
        f"The simulated files of gas-mixtures are in {folder / 'gas'}\n",
        "",
    )
    refusal = (
        f"leaflearn: The files in '{folder / 'gas'}' are simulated; delete them first, "
        "then get the publisher's.\n"
    )
    assert leaflearn("get", "gas-mixtures") == (2, "", refusal)
    assert leaflearn("verify", "gas-mixtures") == (0, "simulated a.txt\n", "")
    (row,) = (
        row
        for row in json.loads(leaflearn("list", "--json")[1])["data_sets"]
        if row["name"] == "gas-mixtures"
    )
    assert row["files"] == "simulated"


# verify


@pytest.mark.usefixtures("all_files")
def test_verify_accepts_files_that_are_right_or_there(leaflearn, folder):
    assert leaflearn("verify", "pets") == (
        0,
        "right     cats.csv\nthere     dogs.csv\nthere     photographs/\n",
        "",
    )
    code, out, _ = leaflearn("verify", "pets", "--json")
    states = {"cats.csv": "right", "dogs.csv": "there", "photographs/": "there"}
    assert (code, json.loads(out)) == (
        0,
        {"name": "pets", "folder": str(folder / "house" / "pets"), "files": states},
    )


def test_verify_lists_missing_files_and_how_to_get_them(leaflearn, folder, put):
    put(cats_csv=CATS)
    advice = (
        f"leaflearn: In '{folder / 'house' / 'pets'}', missing: 'dogs.csv', 'photographs/'. "
        "Get them with: leaflearn data get pets\n"
    )
    assert leaflearn("verify", "pets") == (
        2,
        "right     cats.csv\nmissing   dogs.csv\nmissing   photographs/\n",
        advice,
    )


def test_verify_reports_wrong_files_also_with_json(leaflearn, folder, put):
    put(cats_csv=b"Jerry", dogs_csv=b"Rex")
    code, out, err = leaflearn("verify", "pets", "--json")
    assert code == 2
    assert json.loads(out)["files"] == {
        "cats.csv": "wrong",
        "dogs.csv": "there",
        "photographs/": "missing",
    }
    assert err == (
        f"leaflearn: In '{folder / 'house' / 'pets'}', not the publisher's: "
        "'cats.csv'; missing: 'photographs/'. "
        "Delete the wrong files, then get them again with: leaflearn data get pets\n"
    )


def test_a_built_in_data_set_has_nothing_to_verify(leaflearn):
    assert leaflearn("verify", "functions") == (
        0,
        "functions is built in: there is nothing to verify.\n",
        "",
    )
    code, out, _ = leaflearn("verify", "functions", "--json")
    assert (code, json.loads(out)) == (0, {"name": "functions", "folder": None, "files": {}})


def test_a_zip_file_that_the_loader_reads_is_not_missing(leaflearn, folder, monkeypatch):
    files = replace(PETS, archives=("pets.zip",))
    monkeypatch.setitem(DATASETS, "pets", DataSet("pets", pets, files))
    folder.mkdir()
    zipfile.ZipFile(folder / "pets.zip", "w").close()
    assert leaflearn("verify", "pets") == (0, "there     pets.zip\n", "")
    assert leaflearn("get", "pets") == (0, f"The files of pets are in {folder / 'pets.zip'}\n", "")
    rows = {row["name"]: row for row in json.loads(leaflearn("list", "--json")[1])["data_sets"]}
    assert rows["pets"]["files"] == "ready"
    assert (folder / "pets.zip").is_file()


# where


def test_where_prints_a_path_and_nothing_else(leaflearn, folder):
    assert leaflearn("where") == (0, f"{folder}\n", "")
    assert leaflearn("where", "pets") == (0, f"{folder / 'house' / 'pets'}\n", "")
    assert json.loads(leaflearn("where", "pets", "--json")[1]) == {
        "folder": str(folder / "house" / "pets")
    }
    assert leaflearn("where", "functions") == (
        2,
        "",
        "leaflearn: functions is built in: it has no folder.\n",
    )


# show


def test_show_writes_only_the_image(leaflearn, tmp_path):
    path = tmp_path / "new" / "folder" / "cross.PNG"
    assert leaflearn("show", "functions", "-o", path) == (
        0,
        f"The examples of functions are drawn in {path}\n",
        "",
    )
    assert path.read_bytes().startswith(b"\x89PNG")
    assert os.listdir(path.parent) == ["cross.PNG"]


def test_show_overwrites_and_is_the_same_every_time(leaflearn, tmp_path):
    path = tmp_path / "functions.png"
    path.write_text("old")
    assert leaflearn("show", "functions") == (
        0,
        "The examples of functions are drawn in functions.png\n",
        "",
    )
    first = path.read_bytes()
    leaflearn("show", "functions", "--seed", 1)
    other = path.read_bytes()
    leaflearn("show", "functions", "--seed", 0)
    assert path.read_bytes() == first != other


@pytest.mark.usefixtures("all_files")
def test_show_loads_images_where_there_is_a_choice(leaflearn, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        sheet, "draw_sheet", lambda data, seed: drawn.append(data) or Figure(figsize=(1, 1))
    )
    assert leaflearn("show", "pets")[0] == 0
    assert leaflearn("show", "functions")[0] == 0
    assert [data.input_shape for data in drawn] == [(3, 4, 4), (1,)]


def test_show_can_write_every_format_that_it_lists(leaflearn, monkeypatch, tmp_path):
    monkeypatch.setattr(sheet, "draw_sheet", lambda data, seed: Figure(figsize=(1, 1)))
    _, _, refusal = leaflearn("show", "functions", "-o", "image.xyz")
    kinds = refusal.partition("one of ")[2].rstrip(".\n").split(", ")
    assert {".png", ".svg", ".pdf", ".jpg"} <= set(kinds)
    for kind in kinds:
        assert leaflearn("show", "functions", "-o", f"image{kind}") == (
            0,
            f"The examples of functions are drawn in image{kind}\n",
            "",
        )
        assert (tmp_path / f"image{kind}").stat().st_size > 0


@pytest.mark.parametrize("name", ["image.xyz", "image", "folder/image.csv"])
def test_show_rejects_unknown_formats(leaflearn, tmp_path, name):
    code, out, err = leaflearn("show", "functions", "-o", name)
    assert (code, out) == (2, "")
    assert err.startswith(f"leaflearn: Cannot draw into '{name}': its name must end in one of .")
    assert os.listdir(tmp_path) == []


def test_show_rejects_folders_and_paths_below_files(leaflearn, tmp_path):
    (tmp_path / "here.png").mkdir()
    (tmp_path / "file").write_text("mine")
    code, _, err = leaflearn("show", "functions", "-o", "here.png")
    assert (code, err) == (
        2,
        "leaflearn: Invalid value for '-o' / '--output': File 'here.png' is a "
        "directory. See 'leaflearn data show --help'.\n",
    )
    code, _, err = leaflearn("show", "functions", "-o", tmp_path / "file" / "a.png")
    assert (code, err) == (
        2,
        f"leaflearn: Cannot write into '{tmp_path / 'file'}': it is a file, and a "
        "folder is needed.\n",
    )


def test_show_rejects_a_read_only_folder_before_drawing(leaflearn, monkeypatch, tmp_path):
    monkeypatch.setattr(sheet, "draw_sheet", None)
    # Replaced because root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path / "shut")
    sentence = (
        f"Cannot write '{tmp_path / 'shut' / 'a.png'}': its folder is read-only; choose "
        "another one with --output."
    )
    assert leaflearn("show", "functions", "-o", tmp_path / "shut" / "a.png") == (
        2,
        "",
        f"leaflearn: {sentence}\n",
    )


def test_show_without_the_files_explains_how_to_get_them(leaflearn, tmp_path, folder):
    sentence = (
        "Pets, by A. Nimal: 'cats.csv' and 2 more are not in "
        f"'{folder / 'house' / 'pets'}'. Ask A. Nimal."
    )
    assert leaflearn("show", "pets") == (
        2,
        "",
        f"leaflearn: {sentence} Try: leaflearn data get pets\n",
    )
    assert not (tmp_path / "pets.png").exists()


def test_how_to_get_them_is_not_repeated(leaflearn, monkeypatch, folder):
    said = Files(
        "pets",
        "Pets",
        "CC0",
        contents={"cats.csv": None},
        by_hand="Or fetch them with: leaflearn data get pets",
    )
    monkeypatch.setitem(DATASETS, "pets", DataSet("pets", lambda: locate(said), said))
    sentence = (
        f"leaflearn: Pets: 'cats.csv' is not in '{folder / 'pets'}'. Or fetch them with: "
        "leaflearn data get pets\n"
    )
    assert leaflearn("show", "pets") == (2, "", sentence)


def test_a_failed_drawing_keeps_the_old_image(leaflearn, monkeypatch, tmp_path):
    def fail(data, seed):
        raise ValueError("No ink.")

    monkeypatch.setattr(sheet, "draw_sheet", fail)
    (tmp_path / "functions.png").write_text("old")
    assert leaflearn("show", "functions") == (2, "", "leaflearn: No ink.\n")
    assert (tmp_path / "functions.png").read_text() == "old"
