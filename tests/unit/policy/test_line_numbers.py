"""On which line each key of a TOML document stands."""

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batonpass.policy.line_numbers import Path, find_lines

DOCUMENT = '''# a comment with [brackets] and = signs
top = 1
[policy] # here
"quoted.key" = """
[not a table]
x = 1
"""
dotted.key = 'a # b'

[[rules]]
name = "one"
list = [
  "a", # ]
  { inner = 2, other = "}" },
]
[[rules]]
name = "two"
[rules.deep]
er = 1979-05-27T07:32:00Z
'''


def paths(value: Any, path: Path = ()) -> Iterator[Path]:  # noqa: ANN401 - whatever TOML holds
    if path:
        yield path
    parts: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from paths(inner, (*path, key))


def test_every_kind_of_line_is_found() -> None:
    """Comments, strings of every kind, dotted keys, inline tables and arrays of tables do not lead astray."""
    lines = find_lines(DOCUMENT)
    wanted: list[Path] = [
        ("top",),
        ("policy",),
        ("policy", "quoted.key"),
        ("policy", "dotted", "key"),
        ("rules", 0),
        ("rules", 0, "list", 0),
        ("rules", 0, "list", 1, "other"),
        ("rules", 1, "name"),
        ("rules", 1, "deep", "er"),
    ]

    assert [2, 3, 4, 8, 10, 13, 14, 17, 19] == [lines[path] for path in wanted]


KEYS = st.text("ab.-_ \"'#=[]{}", min_size=1, max_size=4)
SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.text("a\"'\\\n#=[]{}, ", max_size=5))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def spelled(value: Any, newline: str) -> str:  # noqa: ANN401 - whatever TOML holds
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            return f'"{escaped}"'
        case list():
            return "[" + newline + f",{newline}".join(spelled(each, newline) for each in value) + newline + "]"
        case _:
            pairs = (f"{spelled(key, '')} = {spelled(inner, '')}" for key, inner in value.items())
            return "{ " + ", ".join(pairs) + " }"


@st.composite
def documents(draw: st.DrawFn) -> str:
    written = [f"{spelled(key, '')} = {spelled(draw(VALUES), chr(10))}" for key in draw(st.lists(KEYS, unique=True))]
    for number, inner in enumerate(draw(st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=3))):
        header = draw(st.sampled_from(["[[tables]]", f"[table{number}]"]))
        written += [header, *(f"{spelled(key, '')} = {spelled(value, chr(10))}" for key, value in inner.items())]
    return draw(st.sampled_from(["\n", "\n# comment [x] = 'y'\n\n"])).join(written)


@given(documents())
def test_every_key_of_any_document_has_its_line(text: str) -> None:
    """Exactly the keys that the parser finds are found, and each on a line that spells it."""
    parsed = tomllib.loads(text)
    lines = find_lines(text)
    written = text.split("\n")

    assert set(paths(parsed)) == set(lines)
    assert [] == [
        path
        for path, line in lines.items()
        if isinstance(path[-1], str) and not path[-1].startswith("table")
        if spelled(path[-1], "") not in written[line - 1]
    ]


@given(st.text("[]{}=.,\"'#\n ab1\\", max_size=40))
def test_no_text_leads_it_astray(text: str) -> None:
    """It ends, whatever it is given; what is not TOML is somebody else's to say."""
    assert all(1 <= line <= text.count("\n") + 1 for line in find_lines(text).values())
