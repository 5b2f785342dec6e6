"""Write `batonpass/api/aio.py` from `batonpass/api/handles.py`: the same names and words, awaited.

A method becomes `async` if it reaches the port, itself or through another method. Nothing is marked by hand, and every
comment stays, because the text is edited where the syntax tree says.

    python tools/generate_async.py            write it
    python tools/generate_async.py --check    exit 1 if it is not what would be written
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "batonpass" / "api" / "handles.py"
TARGET: Final = SOURCE.with_name("aio.py")
HEADER: Final = '"""The handles, awaited. Made by `tools/generate_async.py` from `handles.py`: change that one."""'

NAMES: Final = {
    "BegunCall": "AsyncBegunCall",
    "Handoff": "AsyncHandoff",
    "Relay": "AsyncRelay",
    "Run": "AsyncRun",
    "Port": "AsyncPort",
    "open_port": "open_async_port",
    "call_function": "await_function",
}
# What waits, whatever it is a method of, and in whose hands: other owners have methods of the same names that do not.
WAITING: Final = {"do", "open_port", "call_function", "__enter__", "__exit__"}
OWNERS: Final = {"", "self", "self._port", "self.run", "begun", "run"}
_TOOL: Final = "Callable[P, T]"
IMPORTS: Final = """
from collections.abc import AsyncIterator, Awaitable
from batonpass.api.async_port import AsyncPort, await_function, open_async_port
"""


def generate(source: str) -> str:
    """Return the asynchronous source."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    waiting = set(WAITING)
    while more := {node.name for node in functions if any(_waits(node, waiting))} - waiting:
        waiting |= more
    lines = [line.encode() for line in source.splitlines()]  # the tree counts bytes
    for line, column, end, text in sorted(_edits(tree, waiting), reverse=True):
        lines[line - 1] = lines[line - 1][:column] + text.encode() + lines[line - 1][end:]
    for node in reversed(tree.body):
        if isinstance(node, ast.ImportFrom) and node.module in {"batonpass.api.port", "batonpass.api.opening"}:
            lines[node.lineno - 1 : node.end_lineno] = []
    lines[0] = HEADER.encode()
    text = re.sub(
        r"(?<![\w.])(?:" + "|".join(map(re.escape, NAMES)) + r")\b",
        lambda match: NAMES[match[0]],
        b"\n".join(lines).decode().replace("    call_function,\n", "") + "\n",  # its own is imported below
    )
    text = text.replace("__enter__", "__aenter__").replace("__exit__", "__aexit__")
    text = re.sub(r"  # noqa: UP028.*", "", text)  # that rule knows that `yield from` has no awaited form
    first = text.index("\nfrom ")
    return _formatted(text[:first] + IMPORTS + text[first:])


def _edits(tree: ast.Module, waiting: set[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield what is put in place of which columns of a line."""
    # In `(await x).y` the brackets are needed, elsewhere they are noise.
    bracketed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name not in waiting:
            continue
        yield function.lineno, function.col_offset, function.col_offset, "async "
        for call in _waits(function, waiting):
            before, after = ("(await ", ")") if id(call) in bracketed else ("await ", "")
            yield call.lineno, call.col_offset, call.col_offset, before
            yield call.end_lineno or 0, call.end_col_offset or 0, call.end_col_offset or 0, after
        yield from _annotation_edits(function)


def _annotation_edits(function: ast.FunctionDef) -> Iterator[tuple[int, int, int, str]]:
    """Yield the types that are others when awaited: of a generator, and of a tool, which may be a coroutine."""
    returns = function.returns
    if isinstance(returns, ast.Subscript) and ast.unparse(returns.value) == "Iterator":
        yield returns.lineno, returns.col_offset, returns.col_offset, "Async"
    if returns is None or _TOOL not in ast.unparse(function.args):
        return
    signature = f"async def {function.name}({ast.unparse(function.args)}) -> {ast.unparse(returns)}"
    either = (
        f"@overload\n    {signature.replace(_TOOL, 'Callable[P, Awaitable[T]]')}: ...\n\n    "
        f"@overload\n    {signature}: ...\n\n    "
    )
    yield function.lineno, function.col_offset, function.col_offset, either
    yield returns.lineno, returns.col_offset, returns.end_col_offset or 0, "Any"
    # The first signature cannot tell what the body holds: a result, or what is awaited for it.
    for node in ast.walk(function):
        annotation = node.annotation if isinstance(node, ast.arg | ast.AnnAssign) else None
        wider = annotation and {_TOOL: "Callable[P, Any]", "T": "Any"}.get(ast.unparse(annotation))
        if annotation and wider:
            yield annotation.lineno, annotation.col_offset, annotation.end_col_offset or 0, wider


def _waits(function: ast.FunctionDef, waiting: set[str]) -> Iterator[ast.Call]:
    """Yield the calls in a function that wait: of itself, of its port or run, or of what the module imports."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            target = node.func
            owner = ast.unparse(target.value) if isinstance(target, ast.Attribute) else ""
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if name in waiting and owner in OWNERS:
                yield node


def _formatted(text: str) -> str:
    """Return the text as the repository formats it, with its imports in order and without those that nothing uses."""
    rules = ["check", "--fix-only", "--unsafe-fixes", "--select", "I,F401,TC003"]
    for arguments in (rules, ["format"], rules):
        command = [
            str(Path(sys.executable).with_name("ruff")),
            *arguments,
            "--quiet",
            "--stdin-filename",
            str(TARGET),
            "-",
        ]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603 - our own formatter
        text = done.stdout
    return text


def main() -> int:
    """Write the file, or compare it."""
    text = generate(SOURCE.read_text(encoding="utf-8"))
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    return int(not TARGET.exists() or text != TARGET.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
