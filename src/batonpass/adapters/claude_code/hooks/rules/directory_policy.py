"""What `batonpass.toml` says about one directory, as it is now: a recorder stays for days, and the file changes."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from batonpass.adapters.claude_code.hooks.rules.agent_rules import Rules, rules_of
from batonpass.adapters.claude_code.hooks.rules.refusal import Refusal
from batonpass.adapters.mcp.server_declaration import Server, read_servers
from batonpass.errors import PolicyFileError
from batonpass.model.policy.policy_rules import Policy
from batonpass.policy.document import read_document
from batonpass.policy.file_place import FILE_NAME, find_file
from batonpass.policy.policy_table import policy_of


class Ruled(Struct, frozen=True, kw_only=True):
    """All that holds in a directory: gates and grants, rules for agents, and what is declared about MCP servers."""

    policy: Policy | None = None  # None: there is no file, and what the relay was opened with holds
    rules: Rules = field(default_factory=Rules)  # for agents of Claude Code, by type
    servers: Mapping[str, Server] = field(default_factory=lambda: MappingProxyType({}))


class DirectoryPolicy:
    """The policy of a directory. Its file is read again when it changes, and looked for again when there is none."""

    def __init__(self, project: Path, file: Path | None = None) -> None:
        self._project = project
        self._given = file
        self._read: tuple[object, Ruled | PolicyFileError] | None = None

    def __call__(self) -> Ruled:
        """Return what holds now. Raises `PolicyFileError` for a wrong file: a rule passed over protects nobody."""
        file = self._given or find_file(self._project)
        stamp = (file, _stamp(file))
        if self._read is None or self._read[0] != stamp:
            try:
                self._read = (stamp, _ruled(file))
            except PolicyFileError as error:
                self._read = (stamp, error)
        found = self._read[1]
        if isinstance(found, PolicyFileError):
            raise found
        return found


def _ruled(file: Path | None) -> Ruled:
    if file is None:
        return Ruled()
    document = read_document(file)
    return Ruled(policy=policy_of(document), rules=rules_of(document), servers=read_servers(document))


def _stamp(file: Path | None) -> object:
    if file is None:
        return None
    try:
        found = file.stat()
    except OSError as error:
        return error.errno
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def wrong_file(error: PolicyFileError) -> Refusal:
    """Return why no call may be made while nobody can read what holds."""
    return Refusal(
        "claude-code.rules", f"no call can be judged, because {FILE_NAME} is wrong: {error}; ask the user to correct it"
    )
