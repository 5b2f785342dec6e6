"""The policy of one directory, read again whenever its file changes: a recorder runs for days."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from batonpass.adapters.mcp.server_declaration import Server, read_servers
from batonpass.errors import PolicyFileError
from batonpass.guard.policy.gates import GateDecision
from batonpass.model.base.kinds import Gate
from batonpass.model.policy.policy_rules import Policy
from batonpass.policy.document import read_document
from batonpass.policy.file_place import FILE_NAME, find_file
from batonpass.policy.policy_table import policy_of


class Ruled(Struct, frozen=True, kw_only=True):
    """Everything in `batonpass.toml` that applies: rules, gates and grants, declarations of MCP servers."""

    policy: Policy | None = None  # None: there is no file, and the relay's own policy applies
    servers: Mapping[str, Server] = field(default_factory=lambda: MappingProxyType({}))


class DirectoryPolicy:
    """The policy of a directory. A changed or new file is read at the next call."""

    def __init__(self, project: Path, file: Path | None = None) -> None:
        self._project = project
        self._given = file
        self._read: tuple[object, Ruled | PolicyFileError] | None = None

    def __call__(self) -> Ruled:
        """Return the present policy. Raises `PolicyFileError` for an invalid file: an ignored rule protects nobody."""
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
    return Ruled(policy=policy_of(document), servers=read_servers(document))


def _stamp(file: Path | None) -> object:
    if file is None:
        return None
    try:
        found = file.stat()
    except OSError as error:
        return error.errno
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def wrong_file(error: PolicyFileError, coder: str) -> GateDecision:
    """Return the refusal of every call while the policy file is invalid."""
    sentence = f"no call can be checked because {FILE_NAME} is invalid: {error}; ask the user to correct it"
    return GateDecision(gate=Gate.DENY, rule=f"{coder}.rules", line=None, sentence=sentence, where=FILE_NAME)
