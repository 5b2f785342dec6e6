"""Clients of the protocol, and where each of them says which servers it starts."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.adapters.mcp.clients.wrapped_servers import Keys, ServerEntry, Wrapper, find_entries, unwrap, wrap
from batonpass.adapters.settings_edit import Edit, read_settings
from batonpass.errors import InvalidValueError

BACKUPS: Final = "mcp"  # in the ledger's home: settings as they were before us
_SERVERS: Final = ("mcpServers",)
_OF_VSCODE: Final = ("servers",)


class Client(StrEnum):
    """A program that starts servers."""

    CLAUDE_CODE = "claude-code"
    CURSOR = "cursor"
    VSCODE = "vscode"


class Config(Struct, frozen=True):
    """A file of a client's, and the keys under which it has its servers."""

    path: Path
    places: tuple[Keys, ...]

    def read(self) -> str | None:
        """Return what is in it; None if there is no such file. Raises `InvalidValueError` if it cannot be read."""
        return read_settings(self.path)

    def entries(self, text: str) -> list[ServerEntry]:
        """Return the servers in it. Raises `InvalidValueError` for what is no JSON."""
        try:
            return list(find_entries(text, self.places))
        except (ValueError, RecursionError) as error:
            raise InvalidValueError(
                str(self.path), f"is not JSON that can be edited: {error}; correct it first"
            ) from None


def config_of(path: Path) -> Config:
    """Return a file that somebody named."""
    return Config(path, (_SERVERS, _OF_VSCODE))


def find_configs(project: Path, home: Path, client: Client | None = None, *, user: bool = False) -> Iterator[Config]:
    """Yield the files of one client, or of all: those of a project, or those of a person."""
    of_project = {
        Client.CLAUDE_CODE: Config(project / ".mcp.json", (_SERVERS,)),
        Client.CURSOR: Config(project / ".cursor" / "mcp.json", (_SERVERS,)),
        Client.VSCODE: Config(project / ".vscode" / "mcp.json", (_OF_VSCODE,)),
    }
    of_person = {
        Client.CLAUDE_CODE: Config(home / ".claude.json", (_SERVERS, ("projects", str(project), *_SERVERS))),
        Client.CURSOR: Config(home / ".cursor" / "mcp.json", (_SERVERS,)),
    }
    for name, config in (of_person if user else of_project).items():
        if client in {None, name}:
            yield config


class Backup(Struct, frozen=True, kw_only=True):
    """Settings as they were, and what became of them when we changed them."""

    path: Path
    before: str = ""
    after: str = ""

    def edit(self, directory: Path) -> Edit:
        """Return the edit that writes it down, for nobody but its owner: settings hold secrets."""
        place = _place(directory, self.path)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = json.dumps({"before": self.before, "after": self.after})
        return Edit(path=place, before=read_settings(place), after=kept, private=True)


def find_backup(directory: Path | None, path: Path) -> Backup:
    """Return what was kept of a file; nothing, if nothing was."""
    if directory is not None:
        try:
            found = json.loads(_place(directory, path).read_text(encoding="utf-8"))
            return Backup(path=path, before=str(found["before"]), after=str(found["after"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass  # then each server says itself what it was
    return Backup(path=path)


def plan(config: Config, backup: Backup, wrapper: Wrapper | None) -> tuple[Edit, Backup]:
    """Return the edit after which servers are behind the proxy, or none is, and what to keep of the file.

    Raises `InvalidValueError` for a file that we do not understand.
    """
    text = config.read() or ""
    config.entries(text)
    before = unwrap(text, config.places, backup.before, backup.after)
    after = before if wrapper is None else wrap(before, config.places, wrapper)
    return Edit(path=config.path, before=text, after=after), Backup(path=config.path, before=before, after=after)


def _place(directory: Path, path: Path) -> Path:
    return directory / BACKUPS / f"{sha256(str(path.absolute()).encode()).hexdigest()[:16]}.json"


def find_wrapped(configs: Sequence[Config]) -> Iterator[tuple[Config, int, int]]:
    """Yield for each file that there is how many of its servers are behind the proxy, and how many there are."""
    for config in configs:
        try:
            text = config.read()
            entries = [] if text is None else config.entries(text)
        except InvalidValueError:
            continue
        if entries:
            yield config, sum(entry.is_wrapped for entry in entries), len(entries)
