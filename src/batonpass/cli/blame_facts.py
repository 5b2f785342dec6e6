"""Blame for programs: whole ids, whole words, exact times."""

from batonpass.accounts.blame_values import Blame, Hop, Line, Maker, Place
from batonpass.accounts.why_values import Fact
from batonpass.attribution.change import FileChange
from batonpass.audit.lookup import Text
from batonpass.cli.showing import text_facts
from batonpass.cli.words import exact


def blame_facts(blame: Blame) -> dict[str, object]:
    """Return an answer for programs. Lines name calls, and each call is told once."""
    return {
        "asked": blame.asked,
        "path": blame.path,
        "from": "transcripts" if blame.is_heard else "ledger",
        "sessions": blame.transcripts,
        "gone": blame.gone,
        "total_lines": blame.total,
        "recorded_changes": blame.recorded,
        "lines": [_line(line) for line in blame.lines],
        "places": [_place(place) for place in blame.places],
        "made_by": list(blame.calls),
        "makers": {name: _maker(maker) for name, maker in blame.makers.items()},
        "notes": list(blame.notes),
    }


def _line(line: Line) -> dict[str, object]:
    commit = line.commit
    return {
        "line": line.number,
        "text": line.text.encode(errors="replace").decode(),  # bytes that are no UTF-8 have no place in JSON
        "known": line.known,
        "run": line.run,
        "calls": list(line.calls),
        "unexplained_since": exact(line.since),
        "or_nobody": line.or_nobody,
        "reformatted_by": line.reformatted_by,
        "commit": None if commit is None else {"id": commit.id, "author": commit.author, "at": exact(commit.at)},
    }


def _maker(maker: Maker) -> dict[str, object]:
    source = maker.source
    return {
        "call": maker.call,
        "tool": maker.tool,
        "in_doubt": maker.in_doubt,
        "at": exact(maker.at),
        "receipt": maker.receipt,
        "run": maker.run.id,
        "agent": maker.run.agent,
        "attempt": maker.run.attempt,
        "principal": maker.principal,
        "mode": maker.mode,
        "task": _words(maker.task),
        "chain": [_hop(hop) for hop in maker.hops],
        "said": _words(maker.said),
        "said_at": exact(maker.said_at),
        "grant": None if maker.may is None else list(maker.may),
        "granted_by": maker.granted_by if maker.may else None,
        "approvals": [_fact(fact) for fact in maker.approvals],
        "standing": maker.standing,
        "judgements": [_fact(fact) for fact in maker.judgements],
        "changes": [_change(change) for change in maker.changes],
        "hearsay": maker.is_hearsay,
        "source": None
        if source is None
        else {
            "program": source.program,
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
    }


def _hop(hop: Hop) -> dict[str, object]:
    return {
        "run": hop.run,
        "agent": hop.agent,
        "handoff": hop.handoff,
        "from": hop.sender,
        "offer": hop.offer,
        "task": _words(hop.task),
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
    }


def _place(place: Place) -> dict[str, object]:
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


def _fact(fact: Fact) -> dict[str, object]:
    return {"label": fact.label, "text": fact.text, "receipt": fact.receipt, "at": exact(fact.at)}


def _words(text: Text | None) -> dict[str, object] | None:
    return None if text is None else text_facts(text)
