"""Blame: for a line of a file the recorded call that wrote it, its grant, and the chain up to the person's words.

What is not known is said to be so: a line that no recorded call wrote has no writer, however probable one may be.
"""

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

from batonpass.attribution.replay import Line, Origin, Write, replay
from batonpass.authority.grants import covers, find_refusal
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.bodies import ToolEnded, ToolFailed, ToolLateResult, ToolRequested
from batonpass.model.grants import Held
from batonpass.model.receipt import Signed
from batonpass.model.values import Mode
from batonpass.reading.batons import principal_of, read_hops, read_lineage
from batonpass.reading.handoffs import Hop, Shown, as_moment
from batonpass.reading.history import attempts_at, find_text, read_hunks, read_part
from batonpass.runtime.effects import name_of_target, target_digest
from batonpass.store.port import Store
from batonpass.wire.canonical import digest

WriteOutcome: TypeAlias = Literal["completed", "failed", "late"]
FileState: TypeAlias = Literal["recorded", "earlier", "changed", "not_recorded"]

_LARGEST_FILE: Final = 256 * 1024 * 1024
_MOST_OPEN_CALLS: Final = 256


class BlamedWrite(Shown, frozen=True):
    """A recorded call that changed the file: who made it, for whom, and what allowed it."""

    id: str  # of the receipt of its outcome
    call: str
    tool: str
    outcome: WriteOutcome  # failed: it wrote before it failed; late: its attempt was over when it wrote
    at: datetime
    before: str | None
    after: str | None
    run: str
    agent: str
    attempt: int
    handoff: str | None
    task: str | None
    chain: tuple[Hop, ...]  # from the root to the one that handed the task on; empty: the root itself wrote
    root: str
    principal: str
    intent: str | None
    mode: Mode
    grant: tuple[str, ...] | None  # what it may; None: no grant was set
    permit: str | None  # the pattern of the grant that covers this file
    granted_by: str | None
    is_beyond_grant: bool
    is_revoked: bool
    verdict: Literal["unverified"] = "unverified"
    approval: Literal["none_needed"] = "none_needed"


class BlamedLine(Shown, frozen=True):
    """A line of the file as it is now."""

    number: int
    text: str
    origin: Origin
    write: str | None = None  # the id of a `BlamedWrite`, if it is recorded
    hunk: str | None = None  # where that write placed it
    is_matched: bool = False  # recognised by its words, after the file was changed outside of the record


class DoubtfulWrite(Shown, frozen=True):
    """A call that was to write the file and left no outcome: what it wrote, if anything, is in no record."""

    call: str
    tool: str
    run: str
    agent: str
    requested_at: datetime


class Blame(Shown, frozen=True):
    """Who wrote the lines of a file. As text it is the answer in words."""

    path: str
    digest: str
    state: FileState  # recorded: as the last write left it; earlier: as an earlier one did, or found it
    is_text: bool
    lines: tuple[BlamedLine, ...]  # all, or those that were asked for
    writes: tuple[BlamedWrite, ...]  # those that are named, and the last one
    in_doubt: tuple[DoubtfulWrite, ...] = ()  # if a line has no writer: calls that may be it

    def write_of(self, line: BlamedLine) -> BlamedWrite | None:
        """Return what wrote a line; None if that is not known."""
        return next((write for write in self.writes if write.id == line.write), None)

    @property
    def last_write(self) -> BlamedWrite | None:
        """The latest recorded write of the file."""
        return self.writes[-1] if self.writes else None

    def __str__(self) -> str:
        from batonpass.reports.blame_words import narrate_blame  # noqa: PLC0415 - the words need the values

        return "\n".join(line.text for line in narrate_blame(self))


def read_blame(store: Store, work_tree: Path, path: Path, number: int | None) -> Blame:
    """Return who wrote a file, or one line of it, as far as the record proves it.

    Raises `NotFoundError` if there is no such file, and `InvalidValueError` if it has no such line.
    """
    name = name_of_target(work_tree, str(path))
    target = target_digest(_secret_of(store), name)
    file = _Touched(store, work_tree, name, target)
    data = _read_file(path, name, file)
    lines = _split(data)
    shown = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if number is not None:
        _require_line(shown, number, None if lines is None else len(lines), file)
    replayed = replay(file.writes, digest(data), lines or ())
    if not file.writes:
        state: FileState = "not_recorded"
    elif not replayed.is_known:
        state = "changed"
    else:
        state = "recorded" if replayed.state == len(file.writes) - 1 else "earlier"
    every = replayed.lines if file.writes else [Line("not_recorded", text) for text in lines or ()]
    first = 0 if number is None else number - 1
    chosen = list(enumerate(every[first:number], first + 1))
    named = {line.write for _, line in chosen if line.write is not None}
    last = {len(file.writes) - 1} if file.writes else set()
    return Blame(
        path=shown,
        digest=digest(data),
        state=state,
        is_text=lines is not None,
        lines=tuple(file.line(place, line) for place, line in chosen),
        writes=tuple(file.describe(index) for index in sorted(named | last)),
        in_doubt=() if all(line.origin == "recorded" for _, line in chosen) else tuple(file.in_doubt()),
    )


def _secret_of(store: Store) -> bytes:
    first = store.first_receipt()
    secret = None if first is None else read_part(first, "secret")
    if secret is None:
        raise NotFoundError("the secret of this ledger was erased: which file a call wrote is in it no more")
    return secret


def _read_file(path: Path, name: str, file: "_Touched") -> bytes:
    try:
        if path.is_dir():
            raise InvalidValueError(f"{name!r} is a folder: blame one of its files")
        if not path.is_file():
            raise NotFoundError(_missing(name, file))
        if path.stat().st_size > _LARGEST_FILE:
            raise InvalidValueError(f"{name!r} has more than {_LARGEST_FILE:,} bytes: nothing of it is recorded")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise NotFoundError(f"{name!r} cannot be read: {error}") from None


def _missing(name: str, file: "_Touched") -> str:
    if not file.writes:
        return f"there is no file {name!r}, and no recorded call wrote one"
    last = file.describe(len(file.writes) - 1)
    did = "deleted by" if last.after is None else "last written by"
    gone = "" if last.after is None else "; what took it away is not in the record"
    return f"there is no file {name!r} now: {did} {last.tool} of {last.agent} at {last.at:%Y-%m-%d %H:%M} UTC{gone}"


def _split(data: bytes) -> list[str] | None:
    """Return the lines of a text; None if it is none."""
    if b"\0" in data:
        return None
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":  # the end of the last line, not a line
        lines.pop()
    return lines


def _require_line(name: str, number: int, count: int | None, file: "_Touched") -> None:
    if count is None:
        last = file.describe(len(file.writes) - 1) if file.writes else None
        written = "no recorded call wrote it" if last is None else f"last written by {last.tool} of {last.agent}"
        raise InvalidValueError(f"{name!r} is no text and has no lines; {written}")
    if not 1 <= number <= count:
        lines = f"{count:,} line{'' if count == 1 else 's'}"
        raise InvalidValueError(f"{name!r} has {lines}: there is no line {number}")


class _Touched:
    """The recorded writes of one file. What is asked of few of them is read for these alone."""

    def __init__(self, store: Store, work_tree: Path, name: str, target: str) -> None:
        self._store = store
        self._tree = work_tree
        self._name = name
        self._receipts: list[Signed] = []
        self.writes: list[Write] = []
        for signed in store.touching(target):
            for write in _writes_in(signed, target):
                self._receipts.append(signed)
                self.writes.append(write)

    def line(self, number: int, line: Line) -> BlamedLine:
        """Return a line with the ids of what wrote it."""
        return BlamedLine(
            number=number,
            text=line.text or "",
            origin=line.origin,
            write=None if line.write is None else self._receipts[line.write].receipt.id,
            hunk=line.hunk or None,
            is_matched=line.is_matched,
        )

    def describe(self, index: int) -> BlamedWrite:
        """Return everything about a write."""
        signed, write = self._receipts[index], self.writes[index]
        body = signed.body
        if not isinstance(body, ToolEnded | ToolLateResult):
            raise NotFoundError(f"receipt {signed.receipt.seq} of {signed.stream} changed no file")
        request = self._request(signed, body)
        asked = request.body
        hops = read_hops(self._store, body.run)
        *above, own = hops
        row = self._store.find_stream(body.run)
        lineage = read_lineage(hops)
        held = lineage[-1] if lineage else None
        permission = f"{find_text(request, 'action') or 'write'}:{self._name}"
        return BlamedWrite(
            id=signed.receipt.id,
            call=body.call,
            tool=asked.tool if isinstance(asked, ToolRequested) else "",
            outcome=_outcome(body),
            at=as_moment(signed.receipt.at),
            before=write.before,
            after=write.after,
            run=body.run,
            agent=own.agent,
            attempt=1 if row is None else row.attempt or 1,
            handoff=None if row is None else row.handoff,
            task=find_text(own.first, "intent") if own.offer is None else find_text(own.offer, "task"),
            chain=tuple(Hop(run=hop.run, agent=hop.agent) for hop in above),
            root=hops[0].run,
            principal=principal_of(hops),
            intent=find_text(hops[0].first, "intent"),
            mode=signed.receipt.mode,
            grant=None if held is None else held.terms.may,
            permit=None if held is None else _permit(held, permission),
            granted_by=None if held is None else above[-1].agent if above else principal_of(hops),
            is_beyond_grant=bool(lineage)
            and self._went_elsewhere(find_text(request, "target"))
            and find_refusal(lineage, permission, request.receipt.at) is not None,
            is_revoked=any(self._store.is_revoked(each.account) for each in lineage),
        )

    def _went_elsewhere(self, target: str | None) -> bool:
        """Return whether a call changed another file than it asked for: one behind a link.

        What it asked for was judged when it was made, and patterns are from the folder that its program worked in.
        """
        return target is None or os.path.normpath(self._tree / target) != os.path.normpath(self._tree / self._name)

    def in_doubt(self) -> Iterator[DoubtfulWrite]:
        """Yield the calls that were to write this file and left no outcome.

        Looked through are the runs with open calls, and the attempts beside those that wrote it: a call that a person
        has decided about is open no more, and may have written all the same.
        """
        with self._store.view() as view:
            runs = dict.fromkeys(str(row[1]) for row in islice(view.rows("open_calls"), _MOST_OPEN_CALLS))
        for signed in self._receipts:
            runs |= dict.fromkeys(self._attempts_beside(signed))
        ended = {signed.body.call for signed in self._receipts if isinstance(signed.body, ToolLateResult)}
        for run in runs:
            receipts = self._store.receipts(run)
            ended |= {each.body.call for each in receipts if isinstance(each.body, ToolEnded)}
            agent = next((hop.agent for hop in reversed(read_hops(self._store, run))), "")
            for each in receipts:
                body = each.body
                if not isinstance(body, ToolRequested) or body.call in ended or find_text(each, "action") != "write":
                    continue
                if name_of_target(self._tree, find_text(each, "target") or "") == self._name:
                    at = as_moment(each.receipt.at)
                    yield DoubtfulWrite(call=body.call, tool=body.tool, run=run, agent=agent, requested_at=at)

    def _attempts_beside(self, signed: Signed) -> list[str]:
        body = signed.body
        run = body.run if isinstance(body, ToolEnded | ToolLateResult) else signed.stream
        row = self._store.find_stream(run)
        handoff = None if row is None or row.handoff is None else self._store.find_handoff(row.handoff)
        return [run] if handoff is None else attempts_at(handoff, self._store.receipts(handoff.id))

    def _request(self, signed: Signed, body: ToolEnded | ToolLateResult) -> Signed:
        """Return the request of a call: mostly the receipt before its outcome, so that is where the search begins."""
        run, call = body.run, body.call
        if isinstance(body, ToolEnded):
            before = (self._store.receipt(run, seq) for seq in range(signed.receipt.seq - 1, 0, -1))
        else:
            before = (each for each in self._store.receipts(run))
        for each in before:
            if each is not None and isinstance(each.body, ToolRequested) and each.body.call == call:
                return each
        raise NotFoundError(f"the ledger has an outcome of {call}, and no request")


def _writes_in(signed: Signed, target: str) -> Iterator[Write]:
    body = signed.body
    if not isinstance(body, ToolEnded | ToolLateResult):
        return
    for effect in body.effects:
        if effect.target == target:
            at = signed.receipt.at
            hunks = read_hunks(signed)
            yield Write(before=effect.before, after=effect.after, hunks=hunks, began_at=at - body.took_us, ended_at=at)


def _outcome(body: ToolEnded | ToolLateResult) -> WriteOutcome:
    if isinstance(body, ToolLateResult):
        return "late"
    return "failed" if isinstance(body, ToolFailed) else "completed"


def _permit(held: Held, permission: str) -> str | None:
    return next((pattern for pattern in held.terms.may if covers(pattern, permission)), None)
