"""Blame for programs: whole ids, whole texts, exact times."""

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import BlamedLine, BlameHop, LedgerPlace, Maker, NotedBy, RunWork
from batonpass.accounts.blame.hunk_blame import BlamedHunk
from batonpass.attribution.changes.change import FileChange
from batonpass.cli.taint.taint_facts import way_facts
from batonpass.notes.foreign.hearsay import Hearsay
from batonpass.records.grant import UsedCredential
from batonpass.records.json_shapes import exact, hold_shape, label_shape, leave_shape, text_shape


def blame_facts(blame: Blame) -> dict[str, object]:
    """Return an answer for programs. Lines name calls, and each call is described once."""
    return {
        "asked": blame.asked,
        "path": blame.path,
        "from": "transcripts" if blame.is_heard else "notes" if blame.from_notes else "ledger",
        "sessions": blame.transcripts,
        "gone": blame.gone,
        "total_lines": blame.total,
        "recorded_changes": blame.recorded,
        "lines": [_line(line) for line in blame.lines],
        "places": [_place(place) for place in blame.places],
        "made_by": blame.calls,
        "makers": {name: _maker(maker) for name, maker in blame.makers.items()},
        "notes": blame.notes,
        "ways": None
        if blame.ways is None
        else {name: [way_facts(way) for way in ways] for name, ways in blame.ways.items()},
    }


def hunk_facts(hunk: BlamedHunk) -> dict[str, object]:
    """Return one hunk of a diff for programs, and who wrote its added lines."""
    place = hunk.place
    return {
        "path": place.path,
        "first": place.first,
        "added": place.added,
        "removed": place.removed,
        "instead": place.instead,
        "blame": None if hunk.blame is None else blame_facts(hunk.blame),
    }


def _line(line: BlamedLine) -> dict[str, object]:
    commit = line.commit
    return {
        "line": line.number,
        "text": line.text.encode(errors="replace").decode(),  # JSON cannot hold bytes that are not UTF-8
        "known": line.known,
        "run": line.run,
        "calls": list(line.calls),
        "unexplained_since": exact(line.since),
        "or_nobody": line.or_nobody,
        "reformatted_by": line.reformatted_by,
        "said": [_said(one) for one in line.said],
        "commit": None if commit is None else {"id": commit.id, "author": commit.author, "at": exact(commit.at)},
    }


def _said(said: Hearsay) -> dict[str, object]:
    return {
        "source": said.source,
        "about": said.reach,
        "by": said.by,
        "is_human": said.is_human,
        "model": said.model,
        "for": said.human,
        "session": said.session,
    }


def _maker(maker: Maker) -> dict[str, object]:
    source = maker.source
    return {
        "call": maker.call,
        "tool": maker.tool,
        "in_doubt": maker.in_doubt,
        "command": maker.command,
        "at": exact(maker.at),
        "receipt": maker.receipt,
        "run": maker.run.id,
        "agent": maker.run.agent,
        "attempt": maker.run.attempt,
        "principal": maker.principal,
        "mode": maker.mode,
        "task": text_shape(maker.task),
        "chain": [_hop(hop) for hop in maker.hops],
        "said": text_shape(maker.said),
        "said_at": exact(maker.said_at),
        "grant": None if maker.may is None else list(maker.may),
        "granted_by": maker.granted_by if maker.may else None,
        "permits": [{"agent": one.agent, "permit": one.permit} for one in maker.permits],
        "approval": None if maker.leave is None else leave_shape(maker.leave),
        "handoff_approvals": [hold_shape(hold) for hold in maker.handed],
        "credential": None if maker.credential is None else _credential(maker.credential),
        "work": None if maker.work is None else _work(maker.work),
        "label": None if maker.record is None else label_shape(maker.record.label),
        "untrusted": [] if maker.record is None else list(maker.record.untrusted),
        "standing": maker.standing,
        "judgements": maker.judgements,
        "changes": [_change(change) for change in maker.changes],
        "hearsay": maker.is_hearsay,
        "source": None
        if source is None
        else {
            "program": source.program,
            "model": source.model,
            "session": source.session,
            "key": source.key,
            "at": exact(source.at),
            "imported": source.imported,
        },
        "proof": {
            "holds": maker.proof.holds,
            "receipts": maker.proof.receipts,
            "problem": maker.proof.problem,
            "code": maker.proof.code,
        },
        "noted": None if maker.noted is None else _noted(maker.noted),
    }


def _noted(noted: NotedBy) -> dict[str, object]:
    return {
        "signed_by": noted.signer if noted.counts else None,
        "key": noted.key,
        "problem": noted.problem,
        "commit": noted.commit,
        "opened": noted.opened,
        "task_digest": noted.task,
        "approval": noted.approval,
        "approved_by": list(noted.approved_by),
        "proven_by": list(noted.proven_by),
        "program": noted.program,
        "model": noted.model,
    }


def _credential(credential: UsedCredential) -> dict[str, object]:
    return {"name": credential.name, "identity": credential.identity, "key": credential.key}


def _work(work: RunWork) -> dict[str, object]:
    """Return a summary of a run's work; calls that needed no approval are only counted."""
    return {
        "calls": dict(work.outcomes),
        "files": dict(work.files),
        "credentials": [{**_credential(one), "calls": count} for one, count in work.credentials],
        "approvals": [{"call": call.id, "tool": call.tool, **leave_shape(leave)} for call, leave in work.leaves],
    }


def _hop(hop: BlameHop) -> dict[str, object]:
    return {
        "run": hop.run,
        "agent": hop.agent,
        "handoff": hop.handoff,
        "from": hop.sender,
        "offer": hop.offer,
        "task": text_shape(hop.task),
        "link": hop.link,
        "subagent": hop.subagent,
    }


def _change(change: FileChange) -> dict[str, object]:
    return {
        "path": change.path,
        "before": change.before,
        "after": change.after,
        "hunks": None
        if change.hunks is None
        else [
            {
                "old": hunk.old_start,
                "new": hunk.new_start,
                "removed": list(hunk.removed),
                "added": list(hunk.added),
            }
            for hunk in change.hunks
        ],
        "renamed_from": change.renamed_from,
        "certainty": change.certainty,
    }


def _place(place: LedgerPlace) -> dict[str, object]:
    return {
        "what": place.what,
        "receipt": place.receipt,
        "at": exact(place.at),
        "agent": place.agent,
        "run": place.run,
        "handoff": place.handoff,
        "call": place.call,
        "detail": place.detail,
    }
