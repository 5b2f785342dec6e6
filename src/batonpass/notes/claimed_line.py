"""The claims of notes about one line: which call wrote it, for certain or perhaps, and who says so."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from batonpass.notes.note_record import NotedCall, NotedRun, NoteRecord
from batonpass.notes.trusted_keys import KeyVerdict


class LineClaim(Struct, frozen=True, kw_only=True):
    """The claim of one record: this call wrote the line."""

    run: NotedRun
    call: NotedCall
    record: NoteRecord
    verdict: KeyVerdict
    commit: str  # that the record was written about
    matched: bool  # the line was recognised by its text and its neighbours
    doubtful: bool = False  # it may have
    or_nobody: bool = False  # or somebody who is not recorded

    @property
    def key(self) -> tuple[str, str]:
        """Return the call, for a reader with several claims about it."""
        return self.run.run, self.call.call


class ClaimedLine(Struct, frozen=True, kw_only=True):
    """All that notes say about one line: one call for certain, or candidates."""

    claims: tuple[LineClaim, ...]
    or_nobody: bool = False
    reformatted: bool = False  # somebody changed its white space since

    @property
    def is_certain(self) -> bool:
        """Return whether one call wrote it, and nothing says otherwise."""
        return len({claim.key for claim in self.claims}) == 1 and not self.claims[0].doubtful and not self.or_nobody


class FileClaims(Struct, frozen=True, kw_only=True):
    """The claims about lines of a file, by number, and remarks on notes that were left out."""

    lines: Mapping[int, ClaimedLine]
    records: int  # how many records speak of the file
    remarks: tuple[str, ...] = ()


class FoundRecord(Struct, frozen=True):
    """A record, and the commit whose note it is in."""

    commit: str
    record: NoteRecord
    leads_here: bool = False  # it is in the history of the commit that is asked about


def claims_in(
    found: Iterable[FoundRecord], line: int, *, matched: bool, judge: Callable[[NoteRecord], KeyVerdict]
) -> Iterator[LineClaim]:
    """Yield the claims of records about a line of the file that they describe."""
    for one in found:
        verdict = None
        for run, call in one.record.claims(line):
            verdict = verdict or judge(one.record)
            known = matched or call.matched
            yield LineClaim(run=run, call=call, record=one.record, verdict=verdict, commit=one.commit, matched=known)
        for perhaps, calls in one.record.doubts(line):
            verdict = verdict or judge(one.record)
            for run, call in calls:
                yield LineClaim(
                    run=run,
                    call=call,
                    record=one.record,
                    verdict=verdict,
                    commit=one.commit,
                    matched=True,
                    doubtful=True,
                    or_nobody=perhaps.nobody,
                )


def doubted(claim: LineClaim) -> LineClaim:
    """Return a claim as one candidate of several, or of nobody."""
    return replace(claim, matched=True, doubtful=True, or_nobody=True)


def joined(claims: Sequence[LineClaim]) -> ClaimedLine | None:
    """Return the claims about one line that count: those of trusted keys, else all of them."""
    trusted = [claim for claim in claims if claim.verdict.counts]
    known: dict[tuple[str, str, str], LineClaim] = {}
    for claim in trusted or claims:
        key = (*claim.key, claim.record.key)
        if key not in known or (known[key].doubtful and not claim.doubtful) or known[key].matched > claim.matched:
            known[key] = claim
    if not known:
        return None
    found = tuple(known.values())
    sure = tuple(claim for claim in found if not claim.doubtful)
    if sure:
        return ClaimedLine(claims=sure)
    return ClaimedLine(claims=found, or_nobody=any(claim.or_nobody for claim in found))
