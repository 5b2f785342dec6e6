"""SQL by name: each statement stands in a `.sql` file under a `-- name:` line."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Queries(Mapping[str, str]):
    """The statements of one file, by name."""

    def __init__(self, package: str, file: str = "queries.sql") -> None:
        text = files(package).joinpath(file).read_text(encoding="utf-8")
        _, *parts = _NAME.split(text)
        # What follows the last semicolon is a comment about the statement after it.
        self._statements = {
            name: statement.rpartition(";")[0].strip() for name, statement in zip(parts[::2], parts[1::2], strict=True)
        }

    def __getitem__(self, name: str) -> str:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)
