"""The settings files of MCP clients, and their servers."""

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.adapters.mcp.clients.wrapped_servers import (
    JSON,
    TOML,
    Keys,
    ServerEntry,
    SettingsForm,
    Wrapper,
    find_entries,
    unwrap,
    wrap,
)
from batonpass.adapters.settings_edit import Edit, read_settings
from batonpass.errors import InvalidValueError

BACKUPS: Final = "mcp"  # in the ledger's home: settings before our change
_SERVERS: Final = ("mcpServers",)
_OF_VSCODE: Final = ("servers",)
_OF_OPENCODE: Final = ("mcp",)
_OF_CODEX: Final = ("mcp_servers",)


class Client(StrEnum):
    """A program that starts servers."""

    CLAUDE_CODE = "claude-code"
    CLINE = "cline"
    CODEX = "codex"
    COPILOT = "copilot"
    CURSOR = "cursor"
    DROID = "droid"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    QWEN = "qwen"
    VSCODE = "vscode"


class Config(Struct, frozen=True):
    """A settings file of a client, and the keys of its servers."""

    path: Path
    places: tuple[Keys, ...]
    bare_url: bool = True  # a URL without a type is one of HTTP, not of the older transport

    @property
    def form(self) -> SettingsForm:
        """Return how it is written."""
        return TOML if self.path.suffix == ".toml" else JSON

    def read(self) -> str | None:
        """Return the content; None if the file does not exist. Raises `InvalidValueError` if it cannot be read."""
        return read_settings(self.path)

    def entries(self, text: str) -> list[ServerEntry]:
        """Return the servers in the text. Raises `InvalidValueError` if it is not of its form."""
        try:
            return list(find_entries(text, self.places, bare_url=self.bare_url, form=self.form))
        except (ValueError, RecursionError) as error:
            name = "TOML" if self.form is TOML else "JSON"
            raise InvalidValueError(str(self.path), f"is not valid {name}: {error}; correct it first") from None


def config_of(path: Path) -> Config:
    """Return a settings file that the user named."""
    return Config(path, (_SERVERS, _OF_VSCODE, _OF_CODEX))


def find_configs(project: Path, home: Path, client: Client | None = None, *, user: bool = False) -> Iterator[Config]:
    """Yield the settings files of one client or of all: of a project, or of the user."""
    of_project = [
        (Client.CLAUDE_CODE, Config(project / ".mcp.json", (_SERVERS,))),
        (Client.CODEX, Config(project / ".codex" / "config.toml", (_OF_CODEX,))),
        (Client.COPILOT, Config(project / ".github" / "mcp.json", (_SERVERS,))),
        (Client.CURSOR, Config(project / ".cursor" / "mcp.json", (_SERVERS,))),
        (Client.DROID, Config(project / ".factory" / "mcp.json", (_SERVERS,))),
        (Client.GEMINI, Config(project / ".gemini" / "settings.json", (_SERVERS,), bare_url=False)),
        *_of_opencode(project, project / ".opencode"),
        (Client.QWEN, Config(project / ".qwen" / "settings.json", (_SERVERS,), bare_url=False)),
        (Client.VSCODE, Config(project / ".vscode" / "mcp.json", (_OF_VSCODE,))),
    ]
    of_cline = home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
    of_person = [
        (Client.CLAUDE_CODE, Config(home / ".claude.json", (_SERVERS, ("projects", str(project), *_SERVERS)))),
        (Client.CLINE, Config(of_cline, (_SERVERS,))),
        (Client.CODEX, Config(home / ".codex" / "config.toml", (_OF_CODEX,))),
        (Client.COPILOT, Config(home / ".copilot" / "mcp-config.json", (_SERVERS,))),
        (Client.CURSOR, Config(home / ".cursor" / "mcp.json", (_SERVERS,))),
        (Client.DROID, Config(home / ".factory" / "mcp.json", (_SERVERS,))),
        (Client.GEMINI, Config(home / ".gemini" / "settings.json", (_SERVERS,), bare_url=False)),
        *_of_opencode(home / ".config" / "opencode"),
        (Client.QWEN, Config(home / ".qwen" / "settings.json", (_SERVERS,), bare_url=False)),
    ]
    for name, config in of_person if user else of_project:
        if client in {None, name}:
            yield config


def _of_opencode(*folders: Path) -> Iterator[tuple[Client, Config]]:
    """Yield the files that OpenCode reads in these folders: its own command writes the one with comments."""
    for path in (folder / name for folder in folders for name in ("opencode.json", "opencode.jsonc")):
        yield Client.OPENCODE, Config(path, (_OF_OPENCODE,))


class Backup(Struct, frozen=True, kw_only=True):
    """A settings file before and after our change."""

    path: Path
    before: str = ""
    after: str = ""

    def edit(self, directory: Path) -> Edit:
        """Return the edit that stores the backup, readable only by its owner, because settings contain secrets."""
        place = _place(directory, self.path)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = json.dumps({"before": self.before, "after": self.after})
        return Edit(path=place, before=read_settings(place), after=kept, private=True)


def find_backup(directory: Path | None, path: Path) -> Backup:
    """Return the backup of a file; an empty one if there is none."""
    if directory is not None:
        try:
            found = json.loads(_place(directory, path).read_text(encoding="utf-8"))
            return Backup(path=path, before=str(found["before"]), after=str(found["after"]))
        except (OSError, ValueError, KeyError, TypeError):
            pass  # then each server is restored from its own command
    return Backup(path=path)


def plan(config: Config, backup: Backup, wrapper: Wrapper | None) -> tuple[Edit, Backup]:
    """Return the edit that puts the servers behind the proxy, or takes all out, and the backup to keep.

    Raises `InvalidValueError` for a file that cannot be understood.
    """
    text = config.read() or ""
    config.entries(text)
    form = config.form
    before = unwrap(text, config.places, backup.before, backup.after, form=form)
    after = before if wrapper is None else wrap(before, config.places, wrapper, bare_url=config.bare_url, form=form)
    config.entries(after)  # whatever else is in the file, it is still read as it was
    return Edit(path=config.path, before=text, after=after), Backup(path=config.path, before=before, after=after)


def _place(directory: Path, path: Path) -> Path:
    return directory / BACKUPS / f"{sha256(str(path.absolute()).encode()).hexdigest()[:16]}.json"


def find_wrapped(configs: Sequence[Config]) -> Iterator[tuple[Config, int, int]]:
    """Yield for each existing file how many of its servers are behind the proxy, and how many there are."""
    for config in configs:
        try:
            text = config.read()
            entries = [] if text is None else config.entries(text)
        except InvalidValueError:
            continue
        if entries:
            yield config, sum(entry.is_wrapped for entry in entries), len(entries)
