"""Write `docs/reference/json-lines.md` from the table of acts: each with its fields, and the values in them.

python tools/describe_acts.py            write it
python tools/describe_acts.py --check    exit 1 if it is not what would be written
"""

import sys
from collections.abc import Iterator
from inspect import getdoc
from pathlib import Path
from typing import Any, Final

from msgspec import NODEFAULT, UNSET, Struct, inspect, json

from batonpass.api import calls, handoffs, ledgers, reports, runs  # noqa: F401 - each fills the table
from batonpass.api.acts import ACTS
from batonpass.api.json_lines import Line
from batonpass.api.problems import Problem
from batonpass.model.bodies import Body

TARGET: Final = Path(__file__).parents[1] / "docs" / "reference" / "json-lines.md"
HEAD: Final = """# Acts as JSON lines

`batonpass serve --json-lines` reads a request a line from stdin and writes an answer a line to stdout, in the order of
the lines. It records in the ledger of the folder that it is started in. The tool runs in your program, between the
request of a call and its outcome:

```json
{"id": 1, "act": "start", "request": {"intent": "Fix rounding", "by": "user:ana"}}
{"id": 2, "act": "hand_off", "request": {"run": "run_…", "to": "editor", "task": "Fix total()", "accept": true}}
{"id": 3, "act": "begin_call", "request": {"run": "run_…", "tool": "write_file", "action": "write", "target": "a.py"}}
{"id": 4, "act": "finish_call", "request": {"run": "run_…", "call": "call_…", "result": "written"}}
{"id": 5, "act": "close", "request": {"run": "run_…", "report": {"result": "done"}}}
```

With `key`, which you choose, the same line again has the same answer, also from another process. An answer that has a
`result` to `begin_call` means: do not make the call, it was finished before. A field that no table names
is refused, and one without a default must be there; a field of an answer that is not there has its default.
`expires` is a text: `30m`, `24h`, `7d`, or a time such as `2026-01-31T12:00:00Z`.

This page is made from the table of acts by `tools/describe_acts.py`.

## Lines

"""
_REPLY: Final = """### Answer

The `id` of the request, and either `answer` or `error`. An `error` is a problem:

### Problem
"""
_BODY: Final = "[body](../spec/receipts.md)"
_NAMES: Final[dict[type, str]] = {
    inspect.StrType: "text",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "true or false",
    inspect.NoneType: "null",
    inspect.DateTimeType: "time, as 2026-01-31T12:00:00Z",
    inspect.RawType: "any JSON",
    inspect.AnyType: "any JSON",
}


def spell(kind: Any, found: list[type]) -> str:  # noqa: ANN401 - msgspec has a type for each kind of type
    """Return a type as people read it, and note the structs in it."""
    match kind:
        case inspect.UnionType(types=types):
            names = dict.fromkeys(spell(each, found) for each in types if _is_shown(each))
            return f"{next(iter(names))} or another item" if "[Claim](#claim)" in names else " or ".join(names)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return f"list of {spell(item, found)}"
        case inspect.DictType(key_type=key, value_type=value):
            return f"object of {spell(key, found)} to {spell(value, found)}"
        case inspect.LiteralType(values=values):
            return " or ".join(f"`{each}`" for each in values)
        case inspect.EnumType(cls=enum):
            return " or ".join(f"`{each.value}`" for each in enum)
        case inspect.StructType(cls=struct):
            return _link(struct, found)
        case _:
            return _NAMES[type(kind)]


def _link(struct: type[Struct], found: list[type]) -> str:
    if issubclass(struct, Body):
        return _BODY
    if struct not in found:
        found.append(struct)
    return f"[{struct.__name__}](#{struct.__name__.lower()})"


def _is_shown(kind: object) -> bool:
    """Return whether JSON can hold a type: what is unset is left out."""
    return not (isinstance(kind, inspect.CustomType) and kind.cls is type(UNSET))


def describe(struct: type[Struct], found: list[type]) -> Iterator[str]:
    """Yield the words of a struct and the table of its fields."""
    yield f"{getdoc(struct)}\n"
    kind = inspect.type_info(struct)
    if not isinstance(kind, inspect.StructType):
        raise TypeError(struct)
    if not (kind.fields or kind.tag):
        return
    yield "| field | type | default |\n|---|---|---|"
    if kind.tag:
        yield f"| `{kind.tag_field}` | `{kind.tag}` | |"
    for field in kind.fields:
        yield f"| `{field.encode_name}` | {spell(field.type, found)} | {_default(field)} |"
    yield ""


def _default(field: inspect.Field) -> str:
    if field.required:
        return ""
    value = field.default if field.default_factory is NODEFAULT else field.default_factory()
    return "left out" if value in (NODEFAULT, UNSET) else f"`{json.encode(value).decode()}`"


def generate() -> str:
    """Return the page."""
    found: list[type] = []
    lines = ["### Request\n", *describe(Line, found), _REPLY, *describe(Problem, found), "## Acts\n"]
    for name, act in ACTS.items():
        lines += [f"### `{name}`\n", f"{act.summary}\n", *describe(act.request, found)]
        lines.append(f"Answer: {spell(inspect.type_info(act.answer), found)}\n")
    lines.append("## Values\n")
    for struct in found:  # it grows on the way
        lines += [f"### {struct.__name__}\n", *describe(struct, found)]
    return HEAD + "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """Write the page, or compare it."""
    text = generate()
    if "--check" not in sys.argv:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    return int(not TARGET.exists() or text != TARGET.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
