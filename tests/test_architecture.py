"""docs/architecture.md names the modules, functions and layers that the source has."""

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "leaflearn"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

FILE = r"[\w./-]+\.(?:py|toml|html|css|js)"
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))


def code_block(heading):
    return re.search(rf"^## {heading}\n.*?^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]


def listed_paths():
    folders, paths = [], []
    for line in code_block("The house").splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders = [*folders[:depth], name]
        paths.append("".join(folders))
    return paths


def find_file(path):
    return next((base / path for base in (PACKAGE, ROOT) if (base / path).exists()), None)


def names_in(file):
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{part.name}" for part in node.body if hasattr(part, "name")}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_the_tree_lists_every_module():
    paths = listed_paths()
    assert len(paths) == len(set(paths))
    listed = {path for path in paths if path.startswith("src/") and path.endswith(".py")}
    modules = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py")}
    missing = {path for path in modules - listed if not path.endswith("__init__.py")}
    assert not missing, f"not in the tree: {sorted(missing)}"
    assert not listed - modules, f"in the tree, but not in the source: {sorted(listed - modules)}"


def test_the_tree_lists_every_package_and_no_other_folder():
    listed = {path for path in listed_paths() if path.endswith("/")}
    packages = {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in PACKAGE.rglob("*.py")}
    assert not packages - listed, f"not in the tree: {sorted(packages - listed)}"
    missing = sorted(path for path in listed if not (ROOT / path).is_dir())
    assert not missing, f"in the tree, but not in the repository: {missing}"


def test_every_file_and_folder_that_the_page_names_exists():
    files = [path for text in QUOTED for path in re.findall(rf"^{FILE}(?=$|: )", text)]
    folders = [text for text in QUOTED if re.fullmatch(r"[\w/]+/", text)]
    assert len(files) > 50
    missing = [path for path in files if find_file(path) is None and path != "settings.py"]
    missing += [path for path in folders if find_file(path) is None]
    assert not missing, f"the page names files that do not exist: {missing}"


def test_every_name_after_a_file_is_defined_there():
    pairs = [re.fullmatch(rf"({FILE}): (.+)", text) for text in QUOTED]
    named = [(pair[1], name) for pair in pairs if pair for name in pair[2].split(", ")]
    assert len(named) > 50
    missing = [
        f"{path}: {name}"
        for path, name in named
        if (file := find_file(path)) is not None and name not in names_in(file)
    ]
    assert not missing, f"the page names what is not defined there: {missing}"


def test_the_layers_are_those_of_the_import_contract():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]
    layers = [layer.replace("leaflearn.", "") for layer in contract["layers"]]
    assert code_block("The layers").splitlines() == layers
