"""The project as a whole: its layout, the direction of its imports, its documents."""

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points, requires
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("helios", "indexing", "training", "serving")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
HEAVY = ("torch", "transformers", "spacy", "faiss", "openvino", "fastapi", "starlette", "uvicorn", "flask", "aiohttp")
MOST_LINES = 600
FORBIDDEN_NAMES = {"utils", "common", "manager", "helpers", "misc"}


def run_python(code: str, *, cwd: Path = ROOT) -> str:
    """Run code in a fresh interpreter, outside of the checkout's import path; its standard output."""
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["helios", "helios.types", "helios.errors", "helios.config", "helios.cli"])
def test_light_modules_load_no_heavy_library(module):
    code = f"import sys, {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    assert run_python(code).split() == []


def test_the_engine_is_found_on_first_use():
    import helios
    from helios.engine import Engine

    assert helios.Engine is Engine
    with pytest.raises(AttributeError, match="no attribute 'Motor'"):
        helios.Motor  # noqa: B018


def test_imports_go_one_way():
    """As `make test` checks it, so that `pytest` alone tells too; here import-linter would silence our loggers."""
    checked = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "Contracts: " in checked.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_a_noun_of_bearable_length(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES
    assert path.stem not in FORBIDDEN_NAMES
    assert path.name == "__init__.py" or text.startswith('"""'), "a module says what it is for"


def test_every_requirement_has_a_lower_bound():
    for requirement in requires("helios-retrieval") or ():
        name, _, _ = requirement.partition(";")
        assert ">=" in name or name.strip().startswith("helios-retrieval["), requirement


def test_locks_are_plain_pins():
    for name in ("requirements.lock", "requirements-dev.lock"):
        lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", line) for line in lines), name


def test_the_development_lock_contains_the_other():
    core, development = (
        set((ROOT / name).read_text().splitlines()[1:]) for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert core <= development


def test_every_command_of_the_siblings_exists():
    found = entry_points(group="helios.commands")
    for point in (point for point in found if point.dist and point.dist.name == "helios-retrieval"):
        assert callable(point.load()), point.name


def test_no_test_file_shadows_another():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
    assert not list((ROOT / "tests").rglob("__init__.py"))


def readme_blocks(language: str) -> list[str]:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)


def test_the_annotated_tree_is_true():
    """Every path that the README's tree names is there, and every package and module of helios is named."""
    (tree,) = [block for block in readme_blocks("text") if block.startswith("helios/")]
    folders: list[str] = []
    named = set()
    for line in tree.splitlines():
        indent, name = re.match(r"( *)(\S+) ", line).groups()
        folders = [*folders[: len(indent) // 2], name.rstrip("/")]
        named.add("/".join(folders))
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    parts = {path for path in (ROOT / "helios").iterdir() if path.is_dir() or path.suffix == ".py"}
    present = {f"helios/{path.name}" for path in parts if not path.name.startswith("__")}
    assert present - named == set()


def test_the_python_example_of_the_readme_runs(sample_index, tmp_path):
    (example,) = readme_blocks("python")
    (tmp_path / "demo-index").symlink_to(sample_index)
    assert "Danube" in run_python(example, cwd=tmp_path)


def test_links_in_the_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_modules_that_the_documents_name_exist():
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for path in re.findall(r"`((?:helios|indexing|training|serving|configs|tests|docs)/[\w/.-]*)`", text):
            assert (ROOT / path).exists(), f"{name}: {path}"
        for module in re.findall(r"`((?:helios|indexing|training)(?:\.[a-z_]+)+)`", text):
            assert _importable(module), f"{name}: {module}"


def _importable(dotted: str) -> bool:
    """Whether this is a module, or an attribute of one."""
    parent, _, attribute = dotted.rpartition(".")
    return find_spec(dotted) is not None or hasattr(import_module(parent), attribute)
