"""Blame: for a line of a file the recorded call that wrote it, its grant, and the chain up to the person's words.

What is not known is said to be so: a line that no recorded call wrote has no writer, however probable one may be.
"""

import os
from collections.abc import Container, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from batonpass.attribution.replay import Line, Origin, Write, replay
from batonpass.authority.grants import covers, find_refusal
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.bodies import (
    HandoffCancelled,
    HandoffEnded,
    HandoffRetried,
    RunClosed,
    RunRekeyed,
    ToolEnded,
    ToolFailed,
    ToolLateResult,
    ToolRequested,
    ToolSettled,
)
from batonpass.model.grants import Held
from batonpass.model.receipt import Signed
from batonpass.model.values import Mode
from batonpass.reading.batons import principal_of, read_hops, read_lineage
from batonpass.reading.handoffs import Hop, Shown, as_moment
from batonpass.reading.history import find_text, read_hunks, read_part
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
    calls: tuple[str, ...] = ()  # of an unknown origin: the calls of which one wrote it, if that much is known


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
    writes: tuple[BlamedWrite, ...]  # those that are named, or may be meant, and the last one
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
    named |= file.numbers_of({call for _, line in chosen for call in line.calls})
    last = {len(file.writes) - 1} if file.writes else set()
    return Blame(
        path=shown,
        digest=digest(data),
        state=state,
        is_text=lines is not None,
        lines=tuple(file.line(place, line) for place, line in chosen),
        writes=tuple(file.describe(index) for index in sorted(named | last)),
        in_doubt=() if chosen and all(line.origin == "recorded" for _, line in chosen) else file.in_doubt,
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
        doubtful = [each for run in self._doubtful_runs() for each in self._doubtful_in(run)]
        self.in_doubt = tuple(call for call, _, _ in doubtful)
        for index, write in enumerate(self.writes) if doubtful else ():
            began_at = min(write.began_at, self._request(self._receipts[index]).receipt.at)
            rivals = tuple(
                call.call
                for call, requested_at, over_at in doubtful
                if requested_at <= write.ended_at and (over_at is None or over_at > began_at)
            )
            self.writes[index] = replace(write, rivals=rivals)

    def numbers_of(self, calls: Container[str]) -> set[int]:
        """Return which writes some calls made."""
        return {index for index, write in enumerate(self.writes) if write.call in calls}

    def line(self, number: int, line: Line) -> BlamedLine:
        """Return a line with the ids of what wrote it."""
        return BlamedLine(
            number=number,
            text=line.text or "",
            origin=line.origin,
            write=None if line.write is None else self._receipts[line.write].receipt.id,
            hunk=line.hunk or None,
            is_matched=line.is_matched,
            calls=line.calls,
        )

    def describe(self, index: int) -> BlamedWrite:
        """Return everything about a write."""
        signed, write = self._receipts[index], self.writes[index]
        body = signed.body
        if not isinstance(body, ToolEnded | ToolLateResult):
            raise NotFoundError(f"receipt {signed.receipt.seq} of {signed.stream} changed no file")
        request = self._request(signed)
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

    def _doubtful_runs(self) -> Iterator[str]:
        """Yield the runs that may have a call without an outcome.

        Those with open calls; and, because a call that a person has decided about is open no more and may have written
        all the same, those in the trees of the writers about which there was something to decide.
        """
        with self._store.view() as view:
            runs = dict.fromkeys(str(row[1]) for row in islice(view.rows("open_calls"), _MOST_OPEN_CALLS))
        writers = (self._store.find_stream(_run_of(signed)) for signed in self._receipts)
        for root in dict.fromkeys(row.root or row.id for row in writers if row is not None):
            for row in self._store.runs_of_tree(root):
                if row.handoff is None or self._store.find_stream(row.handoff) is not None:
                    runs[row.id] = None
        yield from runs

    def _doubtful_in(self, run: str) -> Iterator[tuple[DoubtfulWrite, int, int | None]]:
        """Yield the calls of a run that were to write this file and left no outcome: when each began, and was over."""
        row = self._store.find_stream(run)
        acts = [] if row is None or row.handoff is None else self._store.receipts(row.handoff)
        receipts = [*self._store.receipts(run), *acts]
        ended = {each.body.call for each in receipts if isinstance(each.body, ToolEnded | ToolLateResult)}
        for each in receipts:
            body = each.body
            if not isinstance(body, ToolRequested) or body.call in ended or find_text(each, "action") != "write":
                continue
            if name_of_target(self._tree, find_text(each, "target") or "") == self._name:
                agent = "" if row is None else row.agent or ""
                at = each.receipt.at
                call = DoubtfulWrite(call=body.call, tool=body.tool, run=run, agent=agent, requested_at=as_moment(at))
                yield call, at, _over_at(each, body.call, receipts)

    def _request(self, signed: Signed) -> Signed:
        """Return the request of a call: mostly the receipt before its outcome, so that is where the search begins."""
        body = signed.body
        call = body.call if isinstance(body, ToolEnded | ToolLateResult) else ""
        run = _run_of(signed)
        if isinstance(body, ToolEnded):
            before = (self._store.receipt(run, seq) for seq in range(signed.receipt.seq - 1, 0, -1))
        else:
            before = (each for each in self._store.receipts(run))
        for each in before:
            if each is not None and isinstance(each.body, ToolRequested) and each.body.call == call:
                return each
        raise NotFoundError(f"the ledger has an outcome of {call}, and no request")


def _run_of(signed: Signed) -> str:
    body = signed.body
    return body.run if isinstance(body, ToolEnded | ToolLateResult) else signed.stream


def _over_at(request: Signed, call: str, receipts: Iterable[Signed]) -> int | None:
    """Return when a call without an outcome was over: a person decided about it, or its run ended or changed hands.

    None: nothing says that it is. A process that seems dead may still write.
    """
    run, ends = request.stream, []
    for each in receipts:
        body = each.body
        if isinstance(body, ToolSettled):
            is_end = body.call == call
        elif isinstance(body, HandoffRetried | HandoffCancelled):
            is_end = body.ended_run is not None and body.ended_run.run == run
        else:
            is_end = isinstance(body, RunClosed | RunRekeyed | HandoffEnded) and (
                each.stream == run and each.receipt.seq > request.receipt.seq
            )
        if is_end:
            ends.append(each.receipt.at)
    return min(ends, default=None)


def _writes_in(signed: Signed, target: str) -> Iterator[Write]:
    body = signed.body
    if not isinstance(body, ToolEnded | ToolLateResult):
        return
    for effect in body.effects:
        if effect.target == target:
            at = signed.receipt.at
            hunks = read_hunks(signed)
            yield Write(
                before=effect.before,
                after=effect.after,
                hunks=hunks,
                began_at=at - body.took_us,
                ended_at=at,
                call=body.call,
            )


def _outcome(body: ToolEnded | ToolLateResult) -> WriteOutcome:
    if isinstance(body, ToolLateResult):
        return "late"
    return "failed" if isinstance(body, ToolFailed) else "completed"


def _permit(held: Held, permission: str) -> str | None:
    return next((pattern for pattern in held.terms.may if covers(pattern, permission)), None)
