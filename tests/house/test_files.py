"""What every file looks like."""

import ast
import re
from collections.abc import Iterator

from tests.house.tree import PACKAGE, ROOT, SOURCES, TESTS, files, nodes, parsed, shown

SQL = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE FROM|CREATE (?:TABLE|INDEX)|ALTER TABLE|DROP TABLE)\s")
SENTENCE = re.compile(r"\S+\s.*[.!?]", re.DOTALL)

# In pieces, because this file is searched as well. A registry's name binds the project to one network;
# a path that leads out of the repository binds it to one machine.
OUTSIDE = tuple(
    "".join(pieces)
    for pieces in (
        ("py", "pi.org"),
        ("python", "hosted.org"),
        ("npm", "js.org"),
        ("npm", "js.com"),
        ("deb.", "debian.org"),
        ("crates", ".io"),
        ("..", "/shared"),
        ("/work", "/"),
        (".lib", "rary"),
    )
)


def documentation(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings of a file, which may talk about SQL."""
    for node in nodes(tree, ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        match node:
            case (
                ast.Module(body=[ast.Expr(value=ast.Constant() as text), *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant() as text), *_])
                | ast.FunctionDef(body=[ast.Expr(value=ast.Constant() as text), *_])
                | ast.AsyncFunctionDef(body=[ast.Expr(value=ast.Constant() as text), *_])
            ):
                yield text


def sql_in(tree: ast.AST) -> list[int]:
    """Return the lines of the strings that are SQL, parts of f-strings included."""
    spoken = set(documentation(tree))
    return [
        node.lineno
        for node in nodes(tree, ast.Constant)
        if isinstance(node.value, str) and SQL.search(node.value) and node not in spoken
    ]


def every_test_in(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the test functions of a file, those inside classes too."""
    functions: Iterator[ast.FunctionDef | ast.AsyncFunctionDef] = nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef)
    yield from (function for function in functions if function.name.startswith("test_"))


def test_every_module_says_what_it_is() -> None:
    """Each Python file begins with a docstring."""
    folders = (SOURCES, TESTS, ROOT / "bench", ROOT / "examples")

    assert [] == [name for name, tree in parsed(*folders) if not ast.get_docstring(tree)]


def test_every_test_says_what_holds() -> None:
    """The docstring of a test is a sentence."""
    dumb = [
        f"{name}:{test.lineno} {test.name}"
        for name, tree in parsed(TESTS, PACKAGE / "testing")
        for test in every_test_in(tree)
        if not SENTENCE.fullmatch(ast.get_docstring(test) or "")
    ]

    assert [] == dumb


def test_sql_lives_in_sql_files() -> None:
    """No string in our Python is a query: queries are named, in a file for each dialect."""
    assert {} == {name: lines for name, tree in parsed(SOURCES) if (lines := sql_in(tree))}


def test_sql_is_found_in_strings_and_not_in_docstrings() -> None:
    """A query is recognised in a plain string and in an f-string; PRAGMA, BEGIN and prose are not queries."""
    text = (
        '"""Like SELECT a FROM b."""\n'
        'a = "SELECT a FROM b"\n'
        'b = f"INSERT INTO {a}"\n'
        'c = "PRAGMA journal_mode=WAL"\n'
        'd = "BEGIN IMMEDIATE"\n'
        'e = "select one of these"\n'
    )

    assert [2, 3] == sql_in(ast.parse(text))


def test_the_repository_names_nothing_outside_itself() -> None:
    """No file names a package registry's host or a path beyond the repository, so it works behind any mirror."""
    named = [
        f"{shown(path)}: {outside}"
        for path in files(ROOT)
        for text in (path.read_bytes().lower(),)
        for outside in OUTSIDE
        if outside.encode() in text
    ]

    assert [] == named


def kept_private(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module keeps to itself. What a decorator hands to somebody else is not among them."""
    for statement in tree.body:
        match statement:
            case (
                ast.FunctionDef(name=name, decorator_list=[])
                | ast.ClassDef(name=name, decorator_list=[])
                | ast.AnnAssign(target=ast.Name(id=name))
                | ast.Assign(targets=[ast.Name(id=name)])
            ) if name.startswith("_") and not name.startswith("__"):
                yield name


def read_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that a module reads, also in types that are written as texts."""
    texts = " ".join(node.value for node in nodes(tree, ast.Constant) if isinstance(node.value, str))
    names = (node.id for node in nodes(tree, ast.Name) if isinstance(node.ctx, ast.Load))
    return frozenset((*names, *re.findall(r"\w+", texts)))


def test_what_a_module_keeps_to_itself_it_uses() -> None:
    """A private name that its own module never reads is left over from a change, and misleads whoever reads it."""
    left_over = [
        f"{name}: {one}" for name, tree in parsed(SOURCES) for one in set(kept_private(tree)) - read_names(tree)
    ]

    assert [] == left_over
