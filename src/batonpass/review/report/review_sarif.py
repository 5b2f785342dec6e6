"""A review as SARIF 2.1.0, so that GitHub and editors show findings on the lines that agents changed."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from batonpass.attribution.changes.change_document import read_file_changes
from batonpass.errors import BatonpassError
from batonpass.model.base.ids import CallId, HandoffId, RunId
from batonpass.model.base.visible import visible
from batonpass.records.call import CallRecord, find_call, read_calls
from batonpass.review.catalogue import KINDS
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.review import Review
from batonpass.store.port import LedgerView

_LEVELS: Final = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
# GitHub orders its list by this figure, from 0 to 10.
_RANKS: Final = {Severity.HIGH: "8.0", Severity.MEDIUM: "5.0", Severity.LOW: "2.0"}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_PLACES: Final = 10  # GitHub shows no more of one result
_NOWHERE: Final = "batonpass.toml"  # what is about no file is about the policy


def render_sarif(view: LedgerView, review: Review, version: str) -> dict[str, Any]:
    """Return a review as a SARIF document. `version` is that of this program."""
    codes = list(KINDS)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "batonpass review",
                        "version": version,
                        "rules": [_rule(kind) for kind in KINDS.values()],
                    }
                },
                "results": [_result(view, finding, codes.index(finding.kind.code)) for finding in review.findings],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rule(kind: FindingKind) -> dict[str, Any]:
    tags = [f"MAST-{kind.mast}"] if kind.mast else []
    tags += [f"OWASP-{kind.owasp}"] if kind.owasp else []
    return {
        "id": kind.code,
        "name": "".join(word.capitalize() for word in kind.code.split("-")),
        "shortDescription": {"text": kind.title},
        "fullDescription": {"text": kind.matters},
        "defaultConfiguration": {"level": _LEVELS[kind.severity]},
        "properties": {"tags": tags, "security-severity": _RANKS[kind.severity]},
    }


def _result(view: LedgerView, finding: Finding, index: int) -> dict[str, Any]:
    said = " ".join((finding.sentence, *(f"Next: {command}" for command in finding.go_on)))
    return {
        "ruleId": finding.kind.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        # A message may contain links in a Markdown-like form; brackets are escaped so that none of these is one.
        "message": {"text": visible(said).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")},
        # GitHub refuses a whole file of which one result has no location.
        "locations": [*islice(_places(view, finding), _PLACES)] or [_place(_NOWHERE, 1)],
        "partialFingerprints": {"batonpassFinding/v1": finding.key},
        "properties": {"agent": finding.agent, "subject": finding.subject, "receipts": list(finding.receipts)},
    }


def _places(view: LedgerView, finding: Finding) -> Iterator[dict[str, Any]]:
    """Yield the lines that the calls of a finding changed; if there are none, those of the work that it is about."""
    own = [call for one in finding.calls if (call := find_call(view, one)) is not None]
    found = [*_changed(view, own)]
    yield from found or _changed(view, _work(view, finding))


def _work(view: LedgerView, finding: Finding) -> Iterator[CallRecord]:
    """Yield the calls of the handoff or the run that a finding is about."""
    call = find_call(view, CallId(finding.subject)) if finding.subject.startswith("call_") else None
    if finding.subject.startswith("handoff_"):
        runs = [*view.find_attempts(view.get_handoff(HandoffId(finding.subject)))]
    else:
        runs = [view.get_run(RunId(finding.subject) if call is None else call.run)]
    yield from (one for run in runs for one in read_calls(view, run).values())


def _changed(view: LedgerView, calls: Iterable[CallRecord]) -> Iterator[dict[str, Any]]:
    for call in calls:
        try:
            changes = read_file_changes(view, call)
        except BatonpassError:
            continue  # the words about its files are gone
        for change in changes:
            first = change.hunks[0] if change.hunks else None
            yield _place(change.path, 1 if first is None else max(1, first.new_start))


def _place(path: str, line: int) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(path), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        }
    }


def _uri(path: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - loads a lot, and few people want this form

    return quote(path, safe="/")
