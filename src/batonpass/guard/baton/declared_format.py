"""Parses artifacts that are declared as JSON or CSV, and tells whether they have the form that they promise."""

import csv
import json
from typing import Final

from batonpass.model.base.value import Value
from batonpass.model.baton.items import Artifact

MOST_PARSED: Final = 4 << 20  # bytes; larger files are not parsed
_BEGINNING: Final = 200
_JSON: Final = "application/json"
_CSV: Final = ("text/csv", "text/tab-separated-values")


class Parsed(Value, frozen=True):
    """The result of parsing a file: the first fault, or the number of its rows."""

    fault: str | None = None
    rows: int | None = None


_UNPARSED: Final = Parsed()


def is_declared(artifact: Artifact) -> bool:
    """Return whether an artifact is declared as JSON or as a table, by its type or by its name."""
    return artifact.media_type in {_JSON, *_CSV} or artifact.name.lower().endswith((".json", ".jsonl", ".csv", ".tsv"))


def parse_declared(artifact: Artifact, body: bytes) -> Parsed:
    """Return the problem with a declared file, in words that quote nothing of it."""
    if not body or len(body) > MOST_PARSED or not is_declared(artifact):
        return _UNPARSED  # that it has no bytes is another problem
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Parsed("is not UTF-8")
    name = artifact.name.lower()
    if text[:_BEGINNING].lstrip().lower().startswith(("<!doctype html", "<html")):
        return Parsed("is a web page")  # such as the answer of a server that wants a login
    if artifact.media_type == _JSON or name.endswith((".json", ".jsonl")):
        return Parsed(_json_fault(text, by_line=name.endswith(".jsonl")))
    return _read_table(text, "\t" if name.endswith(".tsv") or artifact.media_type == _CSV[1] else None)


def _json_fault(text: str, *, by_line: bool) -> str | None:
    for number, document in enumerate(text.splitlines() if by_line else [text], 1):
        if by_line and not document.strip():
            continue
        try:
            json.loads(document)
        except ValueError as error:
            line = number if by_line else getattr(error, "lineno", number)
            return f"is no JSON in line {line}"
        except RecursionError:
            return "is nested too deeply"
    return None


def _read_table(text: str, delimiter: str | None) -> Parsed:
    first = text.partition("\n")[0]
    chosen = delimiter or max(",;\t|", key=first.count)
    columns, rows = 0, 0
    try:
        reader = csv.reader(text.splitlines(keepends=True), delimiter=chosen, strict=True)
        for row in reader:
            if not row or not any(row):
                continue
            if not columns:
                columns = len(row)
            elif len(row) != columns:
                return Parsed(f"has {len(row)} cells in line {reader.line_num} and {columns} in its first", rows)
            else:
                rows += 1
    except csv.Error:
        return Parsed("is no table: a quotation mark or a line end is wrong", rows)
    return Parsed(None, rows)
