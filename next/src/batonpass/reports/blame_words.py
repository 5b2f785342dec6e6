"""Blame in words: three lines for a line, a row a line for a file."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from batonpass.model.ids import short
from batonpass.narrate.tokens import Line, Token, Tone, cut, line, moment, name, named, quoted, visible
from batonpass.reports.blame import Blame, BlamedLine, BlamedWrite, DoubtfulWrite

_DOT: Final = Token(" · ", Tone.QUIET)
_FROM: Final = Token(" ← ", Tone.QUIET)
_MATCHED: Final = "recognised by its words: the file was changed outside of the record since"
_WIDEST: Final = 40
_USER: Final = "user:"
_UNEXPLAINED: Final = {
    "older": ("older than the record", "it was there before the first recorded write of this file"),
    "not_recorded": ("not in the record", "no recorded call is known to have written this line"),
    "unknown": (
        "not known",
        "recorded calls wrote at once, or their lines were not kept (no text, too large, or erased)",
    ),
}


def narrate_blame(blame: Blame) -> tuple[Line, ...]:
    """Return an answer in words: of one line everything, of several a row each."""
    if len(blame.lines) == 1:
        return tuple(_narrate_line(blame, blame.lines[0]))
    return (*_rows(blame), *_narrate_state(blame))


def _narrate_state(blame: Blame) -> Iterator[Line]:
    """Yield what has to be known of the file as a whole; nothing if it is as its last write left it."""
    last = blame.last_write
    if last is None:
        yield line(name(blame.path), ": no recorded call wrote this file")
    elif not blame.is_text:
        yield line(name(blame.path), " is no text and has no lines; last written by ", _writer(last, last.at))
    elif blame.state == "changed":
        yield line(Token("the file was changed since ", Tone.WARN), _writer(last, last.at), ", outside of the record")
    elif blame.state == "earlier":
        undone = ": that was undone, or done in another work tree"
        yield line(Token("the file is as it was before ", Tone.WARN), _writer(last, last.at), undone)
    for call in blame.in_doubt:
        yield line(
            _writer(call, call.requested_at),
            Token(" left no outcome: what has no writer here may be its", Tone.WARN),
        )


def _narrate_write(write: BlamedWrite, found: BlamedLine) -> Iterator[Line]:
    """Yield who made a write, what allowed it, and the call."""
    head = [name(write.agent, Tone.ACCENT), Token(f" {short(write.run)}", Tone.QUIET), _DOT, Token(_clock(write.at))]
    if write.handoff is not None:
        head += [_DOT, quoted(write.task)]
    for link in reversed(write.chain):
        head += [_FROM, *_agent(link.agent, write.principal)]
    head += [_FROM, _person(write.principal), Token(": "), quoted(write.intent)]
    allowed = [Token(write.verdict), _DOT, *_grant(write), _DOT, Token("approval: none needed")]
    call = list(named(write.tool, write.call))
    if found.hunk is not None:
        call += [_DOT, Token(found.hunk, Tone.QUIET)]
    if write.outcome == "failed":
        call += [_DOT, Token("the call failed, and had written before", Tone.WARN)]
    if write.outcome == "late":
        call += [_DOT, Token("delivered after its attempt was over", Tone.WARN)]
    if found.is_matched:
        call += [_DOT, Token(_MATCHED, Tone.WARN)]
    yield from (line(head), line(allowed), line(call))


def _narrate_line(blame: Blame, found: BlamedLine) -> Iterator[Line]:
    write = blame.write_of(found)
    if write is not None:
        yield from _narrate_write(write, found)
        return
    if found.calls:
        yield line(Token(f"one of {len(found.calls)} calls that may have run at once:", Tone.WARN))
        yield from _candidates(blame, found)
        return
    label, why = _UNEXPLAINED[found.origin]
    yield line(Token(f"{label}: {why}", Tone.WARN))
    yield from _narrate_state(blame)


def _candidates(blame: Blame, found: BlamedLine) -> Iterator[Line]:
    """Yield a row for each call that may have written a line."""
    for write in blame.writes:
        if write.call in found.calls:
            yield line(_writer(write, write.at), lead="  ")
    for call in blame.in_doubt:
        if call.call in found.calls:
            yield line(_writer(call, call.requested_at), Token(" left no outcome", Tone.WARN), lead="  ")
    if found.is_matched:
        yield line(Token(_MATCHED, Tone.WARN))


def _rows(blame: Blame) -> Iterator[Line]:
    labels = [_label(blame, found) for found in blame.lines]
    width = max((len(text) for text, _ in labels), default=0)
    digits = len(str(blame.lines[-1].number)) if blame.lines else 0
    for found, (text, tone) in zip(blame.lines, labels, strict=True):
        yield line(Token(f"{text:<{width}}", tone), f"  {found.number:>{digits}}  ", visible(found.text.rstrip("\r")))


def _label(blame: Blame, found: BlamedLine) -> tuple[str, Tone]:
    write = blame.write_of(found)
    if write is not None:
        sign = "~" if found.is_matched else " " if write.outcome == "completed" else "!"
        return f"{cut(name(write.agent).text, _WIDEST)} {short(write.run)}{sign} {_clock(write.at)}", Tone.PLAIN
    return _UNEXPLAINED[found.origin][0], Tone.QUIET


def _writer(call: BlamedWrite | DoubtfulWrite, at: datetime) -> Iterator[Token]:
    yield from (*named(call.tool, call.call), Token(" of "))
    yield from (*named(call.agent, call.run), Token(f" ({_clock(at)})"))


def _grant(write: BlamedWrite) -> Iterator[Token]:
    if write.grant is None:
        yield Token("grant: none set")
        return
    may = write.permit if write.permit is not None and not write.is_beyond_grant else ", ".join(write.grant)
    if write.is_beyond_grant:
        yield Token("beyond its grant", Tone.BAD)
        yield Token(": ")
    yield Token(f"may {visible(may) or 'nothing'} (granted by ")
    yield from _agent(write.chain[-1].agent, write.principal) if write.chain else [_person(write.principal)]
    yield Token(", revoked since)" if write.is_revoked else ")")


def _person(principal: str) -> Token:
    """Return a principal by name: a user is known without saying so."""
    return name(principal.removeprefix(_USER))


def _agent(agent: str, principal: str) -> Iterator[Token]:
    """Yield an agent by name; it is said to be one where it has the name of a person."""
    if agent.startswith(_USER) or agent in {principal, principal.removeprefix(_USER)}:
        yield Token("agent ")
    yield name(agent)


def _clock(at: datetime) -> str:
    """Return a time of today without its date."""
    shown = moment(at)
    today = moment(datetime.now().astimezone()).partition(" ")[0]
    return shown.removeprefix(f"{today} ")
