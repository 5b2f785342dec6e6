"""Blame from git notes: one more source for lines that no ledger here explains, and the only one in a fresh clone."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import (
    BlamedLine,
    BlameHop,
    BlameProof,
    HowKnown,
    Maker,
    NotedBy,
    TaskLink,
)
from batonpass.accounts.blame.file_blame import AskedFile, Lines
from batonpass.attribution.changes.change import lines_of
from batonpass.attribution.changes.mark import UNRECORDED
from batonpass.attribution.git.file_git import blob_name, line_origin
from batonpass.attribution.git.file_history import read_origins
from batonpass.attribution.git.git_history import Commit, CommittedLine, History
from batonpass.attribution.git.git_process import GitSilentError
from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import shorten
from batonpass.model.base.content_names import TASK
from batonpass.model.base.ids import AgentId, CallId, HandoffId, KeyId, PrincipalId, PublicKey, ReceiptId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.projection import key_id
from batonpass.model.ledger.run import Run, RunState
from batonpass.notes.call_proof import ProvenCall, prove_call
from batonpass.notes.claimed_line import ClaimedLine, LineClaim
from batonpass.notes.line_claims import ClaimReader
from batonpass.notes.note_keys import proof_key, words_key
from batonpass.notes.note_record import NotedCall, NotedRun
from batonpass.notes.note_store import NoteKind, NoteRepository
from batonpass.notes.shared_words import find_words
from batonpass.notes.trusted_keys import find_trusted
from batonpass.records.handoff import Standing
from batonpass.records.hold import CallLeave, Leave
from batonpass.records.source import Source
from batonpass.records.text import Found, Text

_UNKNOWN: Final = ReceiptId("")


class NoteSource:
    """The notes of one repository, asked for any number of files."""

    def __init__(self, repository: NoteRepository) -> None:
        self._repository = repository
        self._reader = ClaimReader(repository, find_trusted(repository))
        self._like = repository.object_format()

    @classmethod
    def find(cls, asked: AskedFile) -> "NoteSource | None":
        """Return the notes of a file's repository; None if there are none, or git gives no answer."""
        known = asked.repository
        if known is None:
            return None
        repository = NoteRepository(known.root, known.environment, known.answer_within, known.at)
        try:
            return cls(repository) if repository.note_refs(NoteKind.LINES) else None
        except GitSilentError:
            return None

    def fill(self, blame: Blame, asked: AskedFile, names: History) -> Blame:
        """Return an answer in which notes explain lines that nothing else explains."""
        if not asked.data or b"\0" in asked.data:
            return blame
        wanted = [line.number for line in blame.lines if line.known is HowKnown.UNEXPLAINED]
        if not wanted:
            return blame
        try:
            return self._filled(blame, asked, names, frozenset(wanted))
        except GitSilentError as error:
            return replace(blame, notes=(*blame.notes, f"notes could not be read: {error}"))

    def _filled(self, blame: Blame, asked: AskedFile, names: History, wanted: frozenset[int]) -> Blame:
        # All of them, also if one line is asked for: equal lines beside each other may be taken for one another.
        known = names.origins if len(blame.lines) == blame.total else self._origins(asked)
        origins = known or self._as_committed(asked)
        head = names.checked_out or self._repository.head()
        if head is None:
            return blame
        paths = names.paths or (asked.place.path,)
        every = lines_of((asked.data or b"").decode("utf-8", "surrogateescape"))
        claims = self._reader.read(
            paths, origins, head, texts=every, by_words=lambda some: self._by_words(asked, head, some)
        )
        claims = replace(claims, lines={number: one for number, one in claims.lines.items() if number in wanted})
        texts = {line.number: line.text for line in blame.lines}
        proofs = self._proofs([claim for line in claims.lines.values() for claim in line.claims])
        words = self._words({claim.run.run for line in claims.lines.values() for claim in line.claims})
        makers: dict[CallId, Maker] = {}
        refused = 0
        told: dict[int, ClaimedLine] = {}
        for number, line in claims.lines.items():
            kept = tuple(one for one in line.claims if _holds(one, proofs[_said(one)], texts[number]))
            refused += len(line.claims) - len(kept)
            if kept:
                told[number] = replace(line, claims=kept)
        calls = self._calls(blame, [claim for line in told.values() for claim in line.claims], proofs)
        for number, line in told.items():
            for claim in line.claims:
                opened = proofs[_said(claim)].opens(claim.record.path, texts[number]) is True
                maker = self._with_words(_maker(claim, proofs[_said(claim)], opened=opened), words)
                call = calls[_said(claim)]
                makers[call] = _joined(makers.get(call), maker)
        lines = tuple(_line(line, told.get(line.number), calls) for line in blame.lines)
        remarks = claims.remarks
        if refused:
            remarks += (f"{refused} claims of notes were refused: the receipt that they name opens other lines",)
        return replace(
            blame,
            lines=lines,
            recorded=blame.recorded + claims.records,
            makers={**makers, **blame.makers},
            notes=(*blame.notes, *remarks),
        )

    def _calls(
        self, blame: Blame, claims: Sequence[LineClaim], proofs: Mapping["_Said", ProvenCall]
    ) -> dict["_Said", CallId]:
        """Return for each claim the name of its maker in the answer: the call's id, if one relay speaks of the call.

        Ids of calls are in notes that everybody can read. So a relay that names the call of another does not get its
        maker: the ledger here comes first, then who is trusted, who has receipts, and who was first.
        """
        found: dict[_Said, CallId] = {}
        speakers: dict[CallId, PrincipalId | PublicKey | None] = {}
        for claim in sorted(claims, key=lambda one: _standing_of(one, proofs[_said(one)])):
            call, owner = CallId(claim.call.call), claim.verdict.owner
            speaker = owner if owner is not None and claim.verdict.counts else claim.record.key
            own = blame.makers.get(call)
            if own is not None and own.record is not None and own.noted is None:
                is_ours = own.record.receipt.relay_key in self._keys(claim)
            else:
                is_ours = speakers.setdefault(call, speaker) == speaker
            found[_said(claim)] = call if is_ours else CallId(f"{call}@{key_id(claim.record.key)[:8]}")
        return found

    def _origins(self, asked: AskedFile) -> dict[int, CommittedLine]:
        path = asked.place.path
        found = read_origins(self._repository, path, asked.data or b"")
        return {number: line_origin(one, path) for number, one in enumerate(found.lines, 1) if one is not None}

    def _as_committed(self, asked: AskedFile) -> dict[int, CommittedLine]:
        """Return every line as one of the commit here, where git cannot say more: parts of its history are missing."""
        commit, blob = self._repository.head_with(asked.place.path)
        if commit is None or blob is None or asked.data is None or blob != blob_name(asked.data, blob):
            return {}
        lines = lines_of(asked.data.decode("utf-8", "surrogateescape"))
        told = Commit(id=commit, author="", at=self._repository.committed_at(commit))
        return {
            number: CommittedLine(commit=told, path=asked.place.path, line=number)
            for number in range(1, len(lines) + 1)
        }

    def _by_words(self, asked: AskedFile, head: str, numbers: Collection[int]) -> Mapping[int, CommittedLine]:
        """Return where the words of lines came from, for a file as it is committed."""
        path, data = asked.place.path, asked.data or b""
        blob = self._repository.blobs([(head, path)]).get((head, path))
        if blob is None or blob != blob_name(data, blob):
            return {}
        span = [(min(numbers), max(numbers))]
        found = self._repository.origins(head, path, span, by_words=True)
        return {number: line_origin(one, path) for number, one in found.items()}

    def _proofs(self, claims: Iterable[LineClaim]) -> Mapping["_Said", ProvenCall]:
        every = {_said(claim): claim for claim in claims}
        names = {name: proof_key(self._repository, name, self._like) for run, call, _ in every for name in (run, call)}
        notes = self._repository.read_notes(NoteKind.PROOFS, names.values())
        return {
            key: prove_call(
                CallId(claim.call.call),
                RunId(claim.run.run),
                notes.of(names[claim.call.call]),
                notes.of(names[claim.run.run]),
                keys=self._keys(claim),
                approvers=self._reader.trusted.approvers,
            )
            for key, claim in every.items()
        }

    def _words(self, runs: Iterable[str]) -> dict[str, tuple[str, ...]]:
        keys = {run: words_key(self._repository, run, self._like) for run in runs}
        notes = self._repository.read_notes(NoteKind.WORDS, keys.values())
        return {run: notes.of(key) for run, key in keys.items()}

    def _with_words(self, maker: Maker, shared: Mapping[str, Sequence[str]]) -> Maker:
        """Return a maker with the words of its task, if the relay that signed the note shares them."""
        noted = maker.noted
        if noted is None or noted.task is None or not noted.counts:
            return maker
        found = [one for one in find_words(shared.get(maker.run.id, ()), noted.task) if one.key == noted.key]
        # With a salt that does not fit, the receipt did not commit to them: somebody made them up.
        fitting = [one for one in found if one.salt is None or one.is_exact]
        if not fitting:
            return maker
        body = (fitting[0].words or "").encode("utf-8", "replace")
        ref = ContentRef(id=fitting[0].content, digest=fitting[0].digest, size=len(body), media_type="text/plain")
        text = Text(name=TASK, ref=ref, found=Found.KEPT, body=body)
        if maker.run.handoff is None:
            return replace(maker, said=text)
        return replace(maker, hops=(replace(maker.hops[0], task=text), *maker.hops[1:]))

    def _keys(self, claim: LineClaim) -> dict[KeyId, PublicKey]:
        """Return the keys whose receipts count beside this record: its own, and all of its ledger."""
        enrolled = self._reader.enrolment(claim.record.key).enrolled.values()
        every = (claim.record.key, *(key for keys in enrolled for key in keys))
        return {key_id(key): key for key in every}


_Said = tuple[str, str, PublicKey]  # run, call, and the key that speaks of them


def _said(claim: LineClaim) -> _Said:
    return (*claim.key, claim.record.key)


def _standing_of(claim: LineClaim, proven: ProvenCall) -> tuple[bool, bool, float, PublicKey]:
    """Return the sort key that decides between two relays that claim the same call; the smallest wins."""
    return (
        not claim.verdict.counts,
        proven.completed is None,
        claim.record.at.timestamp(),
        claim.record.key,
    )


def blank_blame(asked: AskedFile, lines: Lines | None, names: History) -> Blame:
    """Return the answer of somebody who knows nothing but git, for notes to fill. Raises `InvalidValueError`."""
    path = asked.place.path
    if asked.data is None:
        raise InvalidValueError("path", f"there is no {shorten(path)}")
    is_text = b"\0" not in asked.data
    texts = lines_of(asked.data.decode("utf-8", "surrogateescape")) if is_text else []
    if lines is not None and not texts:
        raise InvalidValueError("line", f"{shorten(path)} has no lines")
    wanted = range(1, len(texts) + 1) if lines is None else lines.within(len(texts), path)
    found = tuple(
        BlamedLine(number=number, text=texts[number - 1], known=HowKnown.UNEXPLAINED, commit=_commit(names, number))
        for number in wanted
    )
    notes = () if is_text else (f"{path} is not text; notes are about lines",)
    return Blame(
        asked=path if lines is None else f"{path}:{lines}",
        path=path,
        total=len(texts),
        lines=found,
        notes=(*notes, *names.notes),
        from_notes=True,
    )


def _commit(names: History, number: int) -> Commit | None:
    return names.blamed[number - 1] if number <= len(names.blamed) else None


def _holds(claim: LineClaim, proven: ProvenCall, text: str) -> bool:
    """Return whether nothing contradicts a claim: a receipt that is opened must have this line."""
    return proven.opens(claim.record.path, text) is not False


def _line(line: BlamedLine, claimed: ClaimedLine | None, names: Mapping[_Said, CallId]) -> BlamedLine:
    if claimed is None:
        return line
    calls = tuple(dict.fromkeys(names[_said(claim)] for claim in claimed.claims))
    runs = {claim.run.run for claim in claimed.claims}
    run = RunId(next(iter(runs))) if len(runs) == 1 and not claimed.or_nobody else None
    if claimed.is_certain:
        matched = all(claim.matched for claim in claimed.claims)
        known = HowKnown.MATCHED if matched else HowKnown.RECORDED
    else:
        known = HowKnown.CANDIDATES if run is None else HowKnown.MATCHED
    by = UNRECORDED if claimed.reformatted else None
    return replace(line, known=known, run=run, calls=calls, since=None, or_nobody=claimed.or_nobody, reformatted_by=by)


def _maker(claim: LineClaim, proven: ProvenCall, *, opened: bool) -> Maker:
    run, call, verdict = claim.run, claim.call, claim.verdict
    counts = verdict.counts
    completed = proven.completed if counts else None
    standing = Standing(proven.standing) if counts and not run.imported else Standing.UNVERIFIED
    return Maker(
        call=CallId(call.call),
        tool=call.tool,
        at=call.moment,
        receipt=_UNKNOWN if completed is None else completed.id,
        run=_run(run, call),
        mode=Mode.OBSERVED if completed is None else completed.mode,
        source=Source(program=run.program, model=run.model, subagent=run.subagent, imported=run.imported or not counts),
        changes=proven.changes,
        hops=_hops(run),
        said=None,
        said_at=None,
        may=None,
        standing=standing,
        judgements=(),
        proof=BlameProof(receipts=proven.receipts if counts else 0),
        leave=CallLeave(leave=Leave.NOT_NEEDED) if counts and call.approval is None else None,
        noted=NotedBy(
            signer=verdict.owner,
            key=claim.record.key,
            problem=verdict.problem,
            commit=claim.commit,
            opened=opened and counts,
            task=run.task,
            approval=call.approval,
            approved_by=tuple(map(PrincipalId, call.approved_by)),
            proven_by=proven.approved_by if counts else (),
            program=run.program,
            model=run.model,
        ),
    )


def _joined(known: Maker | None, maker: Maker) -> Maker:
    """Return one maker for several lines of a call: it is opened if each of its lines is."""
    if known is None or known.noted is None or maker.noted is None or known.noted.opened <= maker.noted.opened:
        return known or maker
    return replace(known, noted=replace(known.noted, opened=False))


def _run(run: NotedRun, call: NotedCall) -> Run:
    return Run(
        id=RunId(run.run),
        root=RunId(run.above[-1] if run.above else run.run),
        parent=RunId(run.above[0]) if run.above else None,
        handoff=None if run.handoff is None else HandoffId(run.handoff),
        attempt=1,
        agent=AgentId(run.agent),
        principal=PrincipalId(run.human),
        state=RunState.COMPLETED,
        started_at=call.moment,
        ended_at=call.moment,
    )


def _hops(run: NotedRun) -> tuple[BlameHop, ...]:
    agents: Sequence[str] = (run.agent, *run.via)
    runs: Sequence[str] = (run.run, *run.above)
    link = TaskLink.IMPORTED if run.imported else TaskLink.CERTAIN
    return tuple(
        BlameHop(
            run=RunId(one),
            agent=AgentId(agent),
            handoff=HandoffId(run.handoff) if index == 0 and run.handoff is not None else None,
            sender=AgentId(agents[index + 1]) if index + 1 < len(agents) else None,
            link=link if index + 1 < len(agents) else None,
            subagent=run.subagent if index == 0 else None,
        )
        for index, (one, agent) in enumerate(zip(runs, agents, strict=True))
    )
