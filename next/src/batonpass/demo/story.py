"""What is done to the analysis, and what the record says of it. Each step has happened when it is yielded.

All of it goes through the public face and through real processes; what is shown is read from the ledger.
"""

import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, closing
from pathlib import Path
from subprocess import PIPE, Popen
from subprocess import run as run_process
from typing import Final

from msgspec import Struct

from batonpass import Handoff, Relay, Run
from batonpass.api.opening import open_store
from batonpass.demo.analysis import DRAFT_TASK, OUTSIDE, SUMMARY, begin, draft
from batonpass.errors import BatonpassError, VerificationError
from batonpass.model.ids import short
from batonpass.model.items import AnyItem
from batonpass.narrate.tokens import Line, Token, Tone, line, quoted
from batonpass.narrate.work import call_tokens, narrate_retry, narrate_tree
from batonpass.place import find_place
from batonpass.reading.handoffs import HandoffView, read_handoff, read_tree
from batonpass.reports.blame_words import narrate_blame
from batonpass.system import RealSystem
from batonpass.verify.verifier import verify
from batonpass.verify.words import narrate_evidence

FLIPPED: Final = "flipped.db"
BLAMED_LINE: Final = 3
_FLIPPED_AT: Final = len("Draft the summary for ")


class Step(Struct, frozen=True):
    """One step: its title, and what is shown of it."""

    title: str
    lines: tuple[Line, ...]


def play(folder: Path) -> Iterator[Step]:
    """Play the story in a folder, which is its work tree. Raises `BatonpassError` if an answer is not true."""
    with Relay.open(work_tree=folder) as relay:
        lead, drafting = begin(relay)
        yield Step("Ana asks; a lead hands the work on, with what was agreed", (*_tree(lead.root), *_carried(drafting)))
        pid = _kill_at_half(drafting)
        yield Step(
            "The drafter works in a process of its own, and is killed in its second call", _killed(drafting, pid)
        )
        yield Step("Only the drafter is tried again", tuple(_retry(drafting)))
        _go_on(drafting)
        yield Step(
            "It goes on where it was killed; compiler and analyst are not asked again", tuple(_compare(lead, folder))
        )
        yield Step("Who did what, and for whom", tuple(_tree(lead.root)))
        yield Step(f"Who wrote line {BLAMED_LINE} of the summary, and who allowed it?", tuple(_blame(relay)))
        evidence = relay.verify()
        yield Step("Every receipt, signature and text is verified", tuple(narrate_evidence(evidence)))
    yield Step("One byte is changed in a copy: the summary for Ana becomes one for Ena", tuple(_flip()))


def _tree(root: str) -> Sequence[Line]:
    with closing(open_store(find_place(create=False), RealSystem())) as store:
        return narrate_tree(read_tree(store, root))


def _read(handoff: Handoff) -> HandoffView:
    with closing(open_store(find_place(create=False), RealSystem())) as store:
        return read_handoff(store, handoff.id)


def _carried(handoff: Handoff) -> Iterator[Line]:
    baton = handoff.baton()
    yield line(f"what the {_read(handoff).to} will be handed, beside its task and Ana's words:")
    for item in baton.items:
        yield line(_words_of(item), lead="  ")


def _words_of(item: AnyItem) -> Iterator[Token]:
    tag = str(type(item).__struct_config__.tag)
    why, value = getattr(item, "why", ""), getattr(item, "value", None)
    yield Token(f"{tag}: ", Tone.QUIET)
    yield quoted(item.text)
    if value is not None:
        yield Token(f" = {value}")
    if why:
        yield Token(", because ")
        yield quoted(why)


def _start_drafter(handoff: Handoff) -> Popen[str]:
    """Start the drafter and return when it is in the middle of its second call."""
    command = [sys.executable, "-m", "batonpass.demo.drafter", handoff.id]
    process = Popen(command, stdin=PIPE, stdout=PIPE, text=True)  # noqa: S603 - our own program
    if process.stdout is None or process.stdout.readline() != "half\n":
        process.kill()
        raise _untrue("the drafter ended before it was half done")
    return process


def _kill_at_half(handoff: Handoff) -> int:
    with _start_drafter(handoff) as process:
        process.send_signal(signal.SIGKILL)
    return process.pid


def _go_on(handoff: Handoff) -> None:
    with _start_drafter(handoff) as process:
        process.communicate("go on\n")
    if process.returncode:
        raise _untrue("the drafter could not go on")


def _killed(handoff: Handoff, pid: int) -> tuple[Line, ...]:
    view = _read(handoff)
    kept = [line("finished: ", call_tokens(call), lead="  ") for call in view.kept]
    doubt = [
        line(Token("in doubt: ", Tone.WARN), call_tokens(call), Token(f" {short(call.id)}", Tone.QUIET), lead="  ")
        for call in view.in_doubt
    ]
    head = line("process ", Token(str(pid)), " got ", Token("SIGKILL", Tone.BAD), "; the record knows how far it was:")
    return (head, *kept, *doubt)


def _retry(handoff: Handoff) -> Iterator[Line]:
    before = _read(handoff)
    (call,) = before.in_doubt
    words = ["handoff", "retry", before.to, "--repeat", call.tool, "--by", "user:ana", "--yes"]
    yield line(Token(f"$ batonpass {' '.join(words)}", Tone.ACCENT))
    program = [sys.executable, "-c", "from batonpass.cli.main import main; main()"]
    run_process([*program, *words, "--quiet"], check=True)  # noqa: S603 - our own program
    yield from narrate_retry(before, _read(handoff))


def _compare(lead: Run, folder: Path) -> Iterator[Line]:
    """Close the lead, and compare with the world and with a run that nothing disturbed."""
    lead.report(f"the summary is in {SUMMARY}")
    lead.close()
    acts = (folder / OUTSIDE).read_text(encoding="utf-8").splitlines()
    for act in acts:
        if acts.count(act) > 1:
            raise _untrue(f"{act!r} was done {acts.count(act)} times")
        yield line(Token("done exactly once: ", Tone.GOOD), act)
    undisturbed = folder / "undisturbed"
    undisturbed.mkdir()
    with chdir(undisturbed), Relay.open("memory:") as relay:
        other, drafting = begin(relay)
        with other, drafting as drafter:
            draft(drafter)
    if (folder / SUMMARY).read_bytes() != (undisturbed / SUMMARY).read_bytes():
        raise _untrue("the summary differs from that of an undisturbed run")
    yield line(Token("the summary equals that of an undisturbed run, byte for byte", Tone.GOOD))


def _blame(relay: Relay) -> Iterator[Line]:
    yield line(Token(f"$ batonpass blame {SUMMARY}:{BLAMED_LINE}", Tone.ACCENT))
    answer = relay.blame(SUMMARY, BLAMED_LINE)
    yield line(quoted(answer.lines[0].text))
    yield from narrate_blame(answer)


def _flip() -> Iterator[Line]:
    """Change a byte of a copy, as an intruder with a shell would, and verify the copy."""
    place = find_place(create=False)
    copy = place.work_tree / FLIPPED
    shutil.copyfile(place.sqlite_path or copy, copy)
    data = bytearray(copy.read_bytes())
    at = data.index(DRAFT_TASK.encode()) + _FLIPPED_AT
    data[at : at + 1] = b"E"
    copy.write_bytes(data)
    yield line(Token(f"byte {at:,} of {FLIPPED}: 'A' is now 'E'", Tone.QUIET))
    with closing(open_store(find_place(copy, create=False), RealSystem())) as store:
        try:
            verify(store)
        except VerificationError as fault:
            yield line(Token("found: ", Tone.BAD), str(fault), Token(f" [{fault.code}]", Tone.QUIET))
            return
    raise _untrue("the change was not found")


def _untrue(what: str) -> BatonpassError:
    return BatonpassError(f"the demonstration promised otherwise: {what}; please report this")
