"""Commands as calls of a run: checked and recorded like any call, with every file that they changed."""

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from batonpass.attribution.changes.change import FileChange
from batonpass.errors import GrantDeniedError, InvalidValueError
from batonpass.handoff.calls.authority import authorise_here
from batonpass.handoff.history.written_files import OUTSIDE, SHELL, files_of
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.shell.command_reach import takes_names
from batonpass.handoff.shell.commands import KEPT, Command, decode_finished, encode_finished
from batonpass.handoff.shell.environment import find_unsound, read_variables
from batonpass.handoff.tools.actions import WRITE
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.tool_call import PLACE
from batonpass.model.base.checks import require_texts
from batonpass.model.base.durations import as_duration
from batonpass.model.grants.call import Call

RUN: Final = "run"
# Arguments that are not searched for paths: they stand in the line already, or name no file.
_TOLD_APART: Final = ("arguments", PLACE, "inherit")
NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


class Planned(Struct, frozen=True, kw_only=True):
    """A command before it is run: its declaration as a tool, and its arguments."""

    declared: Declared
    command: Command
    given: Mapping[str, Any]


def plan_command(
    desk: Desk,
    command: Sequence[str],
    *,
    cwd: str | PathLike[str] | None = None,
    env: Mapping[str, str] = NO_VARIABLES,
    inherit: Sequence[str] = (),
    stdin: str | None = None,
    timeout: timedelta | str | None = None,
    credential: tuple[str, str] | None = None,
    reads: bool = False,
    idempotent: bool = False,
    external: bool = False,
    kept: int = KEPT,
) -> Planned:
    """Return a command as a call. Raises `InvalidValueError` if it is not a list of a program and its arguments.

    Everything is read once and kept as plain texts, so that the command that is checked is the command that runs.
    """
    if isinstance(command, str) or not command:
        raise InvalidValueError("command", "is a list: a program and its arguments")
    program, *arguments = map(str.__str__, require_texts("command", command))
    given = read_variables(env)
    lasts = None if timeout is None else as_duration("timeout", timeout)
    if lasts is not None and lasts <= timedelta(0):
        raise InvalidValueError("timeout", "leaves it no time at all")
    name, variable = (None, None) if credential is None else credential
    place = desk.work_tree if cwd is None else desk.work_tree / fspath(cwd)
    named = _file_named(desk, str(place / program)) if "/" in program else program
    executable = str(place / program) if "/" in program else program
    # Guards and people read this line, and the list runs without a shell. Both are made of the same texts, so no
    # quoting can make them differ.
    line = shlex.join([program, *arguments])
    listens = takes_names([program, *arguments])
    return Planned(
        declared=Declared(
            name=SHELL,
            action=RUN,
            named=named,
            shown=line,
            any_file=True,
            place=str(place),
            content=(*_TOLD_APART, *(() if listens else ("stdin",))),
            scripts=("line", *(("stdin",) if listens else ())),
            reads=reads,
            idempotent=idempotent,
            external=external,
            credential=name,
            unsound=find_unsound((*given.items(), *(() if variable is None else ((variable, ""),)))),
            encode=encode_finished,
            decode=decode_finished,
        ),
        command=Command(executable, place=place, secret_in=variable, kept=kept),
        given={
            "line": line,
            "arguments": arguments,
            PLACE: desk.resolve(str(place)),
            "env": given,
            "inherit": list(map(str.__str__, require_texts("inherit", inherit))),
            "stdin": stdin,
            "timeout": None if lasts is None else lasts.total_seconds(),
        },
    )


def _file_named(desk: Desk, path: str) -> str:
    """Return the name in grants of a program that is given as a file: its resolved path, never a bare name.

    A bare name means a program on the PATH. An agent may have written `./make`, and that is not the program `make`.
    """
    inside = desk.resolve(path)
    return inside if "/" in inside else os.path.realpath(path)


def find_outside(desk: Desk, holding: Holding, changes: Iterable[FileChange]) -> tuple[str, ...]:
    """Return the files that a command changed although its run may not write them. All changes are noted as use."""
    if not holding.bounds.chain:
        return ()
    # Only afterwards, because the text of a command does not tell all that it will write.
    return tuple(path for path in files_of(changes) if not _may_write(desk, holding, desk.files.root / path))


def _may_write(desk: Desk, holding: Holding, path: Path) -> bool:
    place = desk.resolve(str(path))
    call = Call(SHELL, WRITE, place, {"path": place})
    try:
        authorise_here(desk, holding, call, holding.present(desk.clock))
    except (GrantDeniedError, InvalidValueError):
        holding.use.make(call, (OUTSIDE,))
        return False
    holding.use.make(call)
    return True
