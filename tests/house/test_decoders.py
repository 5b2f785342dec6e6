"""When it is worked out how a type is read: while its module is imported, where one thread does it once."""

import ast
from collections.abc import Iterator
from typing import Final

from tests.house.tree import PACKAGE, nodes, parsed

READER: Final = "src/batonpass/wire/documents.py"


def worked_out_late(tree: ast.Module) -> Iterator[str]:
    """Yield what a file says inside of functions that makes msgspec work out how a type is read."""
    working_out = {id(call): said for call in nodes(tree, ast.Call) if (said := _works_out(call))}
    if not working_out:
        return
    functions = nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef)
    inside = {id(node) for function in functions for node in ast.walk(function)}
    yield from (said for call, said in working_out.items() if call in inside)


def _works_out(call: ast.Call) -> str | None:
    match call.func:
        case ast.Name(id="DocumentReader"):
            return "DocumentReader"
        case ast.Attribute(attr="decode") if any(keyword.arg == "type" for keyword in call.keywords):
            said = ast.unparse(call.func)
        case ast.Attribute(attr="Decoder" | "convert"):
            said = ast.unparse(call.func)
        case _:
            return None
    return said if said.startswith("msgspec.") else None


def test_no_decoder_is_made_by_whoever_reads_first() -> None:
    """Two threads that read the first of a type at once would crash the process."""
    late = {name: [*worked_out_late(tree)] for name, tree in parsed(PACKAGE) if name != READER}

    assert {} == {name: said for name, said in late.items() if said}


def test_late_decoders_are_found_in_all_their_forms() -> None:
    """A decoder, a conversion and a typed decoding count inside of a function, and only there."""
    late = "msgspec.json.Decoder(A)", "msgspec.convert(b, A)", "msgspec.json.decode(b, type=A)", "DocumentReader(A)"
    fine = "msgspec.json.decode(b)", "DECODER.decode(b)"
    text = "\n".join((*late, "def f():", *(f"    {line}" for line in (*late, *fine))))

    assert [line.partition("(")[0] for line in late] == [*worked_out_late(ast.parse(text))]
