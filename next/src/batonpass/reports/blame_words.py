"""Blame in words: three lines for a line, a row a line for a file."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from batonpass.narrate.tokens import Line, Token, Tone, cut, line, moment, name, quoted, short, visible
from batonpass.reports.blame import Blame, BlamedLine, BlamedWrite, DoubtfulWrite

_DOT: Final = Token(" · ", Tone.QUIET)
_FROM: Final = Token(" ← ", Tone.QUIET)
_MATCHED: Final = "recognised by its words: the file was changed outside of the record since"
_WIDEST: Final = 40


def narrate_blame(blame: Blame) -> tuple[Line, ...]:
    """Return an answer in words: of one line everything, of several a row each."""
    if len(blame.lines) == 1:
        return tuple(_narrate_line(blame, blame.lines[0]))
    return (*_rows(blame), *narrate_state(blame))


def narrate_state(blame: Blame) -> tuple[Line, ...]:
    """Return what has to be known of the file as a whole; nothing if it is as its last write left it."""
    return (*_state(blame), *map(_doubt, blame.in_doubt))


def _doubt(call: DoubtfulWrite) -> Line:
    who = (name(call.agent), Token(f" {short(call.run)}", Tone.QUIET), f" ({_clock(call.requested_at)})")
    asked = (name(call.tool), Token(f" {short(call.call)}", Tone.QUIET), " of ", *who)
    return line(*asked, Token(" left no outcome: what has no writer here may be its", Tone.WARN))


def _state(blame: Blame) -> tuple[Line, ...]:
    last = blame.last_write
    if last is None:
        return (line(name(blame.path), ": no recorded call wrote this file"),)
    if not blame.is_text:
        return (line(name(blame.path), " is no text and has no lines; last written by ", _writer(last)),)
    if blame.state == "changed":
        return (line(Token("the file was changed since ", Tone.WARN), _writer(last), ", outside of the record"),)
    if blame.state == "earlier":
        undone = ": that was undone, or done in another work tree"
        return (line(Token("the file is as it was before ", Tone.WARN), _writer(last), undone),)
    return ()


def narrate_write(write: BlamedWrite, found: BlamedLine | None = None) -> tuple[Line, ...]:
    """Return who made a write, what allowed it, and the call."""
    head = [name(write.agent, Tone.ACCENT), Token(f" {short(write.run)}", Tone.QUIET), _DOT, Token(_clock(write.at))]
    if write.handoff is not None:
        head += [_DOT, quoted(write.task)]
    for link in reversed(write.chain):
        head += [_FROM, name(link.agent)]
    head += [_FROM, _person(write.principal), Token(": "), quoted(write.intent)]
    allowed = [Token(write.verdict), _DOT, *_grant(write), _DOT, Token("approval: none needed")]
    call = [name(write.tool), Token(f" {short(write.call)}", Tone.QUIET)]
    if found is not None and found.hunk is not None:
        call += [_DOT, Token(found.hunk, Tone.QUIET)]
    if write.outcome == "failed":
        call += [_DOT, Token("the call failed, and had written before", Tone.WARN)]
    if write.outcome == "late":
        call += [_DOT, Token("delivered after its attempt was over", Tone.WARN)]
    if found is not None and found.is_matched:
        call += [_DOT, Token(_MATCHED, Tone.WARN)]
    return (line(head), line(allowed), line(call))


def _narrate_line(blame: Blame, found: BlamedLine) -> Iterator[Line]:
    write = blame.write_of(found)
    if write is not None:
        yield from narrate_write(write, found)
        return
    yield line(Token(_unexplained(found), Tone.WARN))
    if found.candidates:
        for each in blame.writes:
            if each.id in found.candidates:
                yield Line((*narrate_write(each)[0].tokens, _DOT, *narrate_write(each)[2].tokens), "  ", "  ")
    else:
        yield from narrate_state(blame)


def _unexplained(found: BlamedLine) -> str:
    if found.candidates:
        return f"one of {len(found.candidates)} calls that may have run at once wrote this line:"
    if found.origin == "unknown":
        return "not known: a recorded call wrote the file, and its lines were not kept (no text, too large, or erased)"
    if found.origin == "older":
        return "older than the record: it was there before the first recorded write of this file"
    return "not in the record: no recorded call is known to have written this line"


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
    if found.candidates:
        return f"one of {len(found.candidates)}", Tone.WARN
    words = {"older": "older than the record", "unknown": "not known"}
    return words.get(found.origin, "not in the record"), Tone.QUIET


def _writer(write: BlamedWrite) -> list[Token]:
    return [
        name(write.tool),
        Token(f" {short(write.call)}", Tone.QUIET),
        Token(" of "),
        name(write.agent),
        Token(f" {short(write.run)}", Tone.QUIET),
        Token(f" ({_clock(write.at)})"),
    ]


def _grant(write: BlamedWrite) -> Iterator[Token]:
    if write.grant is None:
        yield Token("grant: none set")
        return
    may = write.permit if write.permit is not None and not write.is_beyond_grant else ", ".join(write.grant)
    if write.is_beyond_grant:
        yield Token("beyond its grant", Tone.BAD)
        yield Token(": ")
    yield Token(f"may {visible(may) or 'nothing'} (granted by ")
    yield _person(write.granted_by or "")
    yield Token(", revoked since)" if write.is_revoked else ")")


def _person(principal: str) -> Token:
    """Return a principal by name: a user is known without saying so."""
    return name(principal.removeprefix("user:"))


def _clock(at: datetime) -> str:
    """Return a time of today without its date."""
    shown = moment(at)
    today = moment(datetime.now().astimezone()).partition(" ")[0]
    return shown.removeprefix(f"{today} ")
