"""What tests may import: a name that no test pins can be renamed or deleted."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "batonpass"
PUBLIC = {"batonpass", "batonpass.aio", "batonpass.errors", "batonpass.frameworks", "batonpass.testing"}


def is_module(name: str) -> bool:
    path = PACKAGE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def is_public(module: str) -> bool:
    return module in PUBLIC or module.startswith("batonpass.frameworks.")


def imports(source: str) -> Iterator[tuple[str, str | None]]:
    """Yield each module of the package that the source imports, with the name that it takes from it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.split(".")[0] == "batonpass")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "batonpass":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner, None) if is_module(inner) else (node.module, alias.name)


def faults(source: str, *, modules: int = 1) -> list[str]:
    """Return what the source imports and may not: it may import so many inner modules."""
    imported = list(imports(source))
    private = [
        f"imports the private name {'.'.join(filter(None, pair))}"
        for pair in imported
        if any(part.startswith("_") for part in [*pair[0].split("."), pair[1] or ""])
    ]
    inner = sorted({module for module, _ in imported if not is_public(module)})
    return private + ([f"imports {len(inner)} inner modules: {', '.join(inner)}"] if len(inner) > modules else [])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("from batonpass import start\nimport batonpass.testing", 0, id="the public face"),
        pytest.param("from batonpass.wire.canonical import encode, decode", 0, id="one module of an algorithm"),
        pytest.param("import batonpass.model.ids\nimport batonpass.wire.canonical", 1, id="two modules"),
        pytest.param("def test():\n    from batonpass.store import _rows", 1, id="a private name"),
        pytest.param("import batonpass._heart", 1, id="a private module"),
        pytest.param("from batonpass.frameworks.own_loop import recorded_agent", 0, id="a module of a framework"),
    ],
)
def test_the_rule_itself(source: str, expected: int) -> None:
    """The public names, or one public module, and nothing that begins with an underscore."""
    assert expected == len(faults(source))


def test_tests_import_the_public_face_or_one_module() -> None:
    """A behaviour is tested through the names that users import, an algorithm through one public module.

    Repository lint compares lists of many modules with documents, so it may import any public one.
    """
    found = {
        str(path.relative_to(ROOT)): why
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if (why := faults(path.read_text(encoding="utf-8"), modules=99 if path.parent.name == "lint" else 1))
    }

    assert {} == found
