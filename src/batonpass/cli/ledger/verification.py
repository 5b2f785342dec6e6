"""`batonpass ledger verify`: whether a ledger is whole, and the evidence."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from batonpass.audit.verification.evidence import Evidence
from batonpass.cli.input.ledger_access import opened_relay, viewed
from batonpass.cli.input.options import checked, ledger_and_json, read_lines, read_text
from batonpass.cli.output.exits import INTERRUPTED
from batonpass.cli.output.progress import Told, progress_bar
from batonpass.cli.output.terminal import paint, say, say_json, tell
from batonpass.cli.output.units import counted
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.ledger.note import parse_note
from batonpass.model.base.checks import require_digest
from batonpass.model.base.ids import LedgerId, PublicKey
from batonpass.model.ledger.projection import key_id
from batonpass.store.port import LedgerView

if TYPE_CHECKING:
    from batonpass.cli.git.repository import Seals

_GIT = "git"
_LATEST = "last"


@click.command()
@click.option(
    "--seal", "seals", metavar="FILE|git", multiple=True, help="Also compare with this seal; may be repeated."
)
@click.option(
    "--bundle", metavar="FILE", type=click.Path(path_type=Path), help="Verify an exported bundle instead of a ledger."
)
@click.option(
    "--root-key",
    metavar="HEX",
    callback=checked(lambda given: require_digest("root_key", given)),
    help="The root key that the ledger must have, or its id.",
)
@click.option(
    "--since-seal",
    "since",
    metavar="[N|FILE]",
    is_flag=False,
    flag_value=_LATEST,
    help="Verify only trees that changed since a seal.",
)
@ledger_and_json
def verify(
    seals: tuple[str, ...], bundle: Path | None, root_key: str | None, since: str | None, *, as_json: bool
) -> None:
    """Verify everything, or name the first damage.

    Checks bytes, signatures, chains, links, contents, derived rows, positions and seals, and prints a list of the
    checks. If something is wrong, prints the first finding and exits with 1. `--seal git` uses the seals in the commits
    of this repository.

    With `--since-seal`, trees that have not changed since a seal are only compared with it: their bytes, order and
    contents. Without a value this is the ledger's latest seal; otherwise the seal of N receipts, or the seal in FILE.
    """
    found: Seals | None = None
    notes = [read_seal(Path(given)) for given in seals if given != _GIT]
    if bundle is not None:
        if seals or since is not None:
            raise click.UsageError("a seal covers a whole ledger and a bundle is a part of one; give only one of them")
        from batonpass.audit.bundle import verify_bundle  # noqa: PLC0415 - most verify a ledger

        lines = list(read_lines(bundle))
        with _interruptible() as progress:
            evidence = verify_bundle(lines, root_key=pinned(root_key, lines), progress=progress)
    else:
        with opened_relay() as relay, _interruptible() as progress:
            with viewed(relay.store) as view:
                info = view.info()
                begin = None if since is None else _find_since(view, since)
            if _GIT in seals:
                from batonpass.cli.git.repository import find_seals  # noqa: PLC0415 - all that asks git

                found = find_seals(LedgerId(info.id))
                notes += found.notes
            key = _pin(root_key, info.root_key)
            evidence = relay.verify(seals=notes, root_key=key, progress=progress, since=begin)
    if as_json:
        say_json({"evidence": asdict(evidence)})
        return
    say_evidence(evidence, seals=len(notes), pinned=root_key is not None)
    if bundle is not None:
        tell(paint("a bundle proves what it contains, and not that there is nothing else", dim=True))
    elif not notes:
        tell(paint("only a seal kept elsewhere (--seal) can show that a whole tree was deleted", dim=True))
    if found is not None and found.foreign + found.unreadable:
        tell(f"left out: {found.foreign} seals of other ledgers and {found.unreadable} that cannot be read")


def say_evidence(evidence: Evidence, *, seals: int = 0, pinned: bool = False) -> None:
    """Print the counts of the checks, and the limits of the proof."""
    signers = counted(evidence.relays, "relay")
    part = f", {evidence.receipts - evidence.sealed:,} of them verified in full" if evidence.sealed else ""
    say(
        paint("whole", "green", bold=True),
        f": {counted(evidence.receipts, 'receipt')}{part} in {counted(evidence.streams, 'stream')}, "
        f"{counted(evidence.signatures, 'signature')} by {signers} and their runs",
    )
    say(f"  {counted(evidence.runs, 'run')}, {counted(evidence.handoffs, 'handoff')}, {_contents(evidence)}")
    if evidence.sealed:
        say(
            f"  {counted(evidence.sealed, 'receipt')} in trees that have not changed since the seal: "
            "bytes, order and contents are as sealed; signatures, links and rows were not verified again"
        )
    if evidence.unjudged:
        say(
            f"  {counted(evidence.unjudged, 'call')} not checked against their grant again: "
            "their arguments were erased, redacted or left out"
        )
    if evidence.unknown_kinds:
        say(f"  {counted(evidence.unknown_kinds, 'receipt')} of kinds that only a newer batonpass understands")
    if seals:
        say("  1 seal matches" if seals == 1 else f"  {seals:,} seals match", ": nothing that was sealed is gone")
    say(f"  ledger    {evidence.ledger}")
    say(
        f"  root key  {evidence.root_key}",
        "" if pinned else paint("  compare it with the one that you noted elsewhere", dim=True),
    )


@contextmanager
def _interruptible() -> Iterator[Told]:
    """Show the progress of a verification; an interrupt explains that nothing is proven."""
    seen = (0, 0)
    with progress_bar("verifying") as bar:

        def tell_both(done: int, total: int) -> None:
            nonlocal seen
            seen = (done, total)
            if bar is not None:
                bar(done, total)

        try:
            yield tell_both
        except KeyboardInterrupt:
            stopped = seen
        else:
            return
    done, total = stopped
    tell(f"batonpass: stopped after {done:,} of {total:,} receipts: no damage found so far, and nothing is proven")
    raise click.exceptions.Exit(INTERRUPTED)


def _find_since(view: LedgerView, given: str) -> str:
    """Return the seal to start from. Raises `NotFoundError`."""
    if given != _LATEST and not given.isdecimal():
        return read_seal(Path(given))
    kept = {seal.size: seal.note for seal in view.find_seals()}
    size = max(kept, default=0) if given == _LATEST else int(given)
    if size not in kept:
        raise NotFoundError("seal", given)
    return kept[size]


def pinned(given: str | None, lines: Sequence[str]) -> PublicKey | None:
    """Return the root key that a bundle must have; None if none was given. It may be given by its id."""
    try:
        stated = json.loads(lines[0])["root_key"]
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        stated = ""
    return _pin(given, stated if isinstance(stated, str) else "")


def _pin(given: str | None, stated: str) -> PublicKey | None:
    if given is None:
        return None
    try:
        # People note the id, because a verification prints it.
        return PublicKey(stated) if key_id(PublicKey(stated)) == given else PublicKey(given)
    except ValueError:
        return PublicKey(given)


def _contents(evidence: Evidence) -> str:
    parts = [f"{counted(evidence.contents, 'content')} as committed"]
    if evidence.erased:
        parts.append(f"{evidence.erased:,} erased")
    if evidence.withheld:
        parts.append(f"{evidence.withheld:,} left out of the bundle")
    return ", ".join(parts)


def read_seal(path: Path) -> str:
    """Return the seal in a file. A file without one is a usage error."""
    text = read_text(path)
    try:
        parse_note(text)
    except InvalidValueError as error:
        raise click.UsageError(f"{path} is not a seal: {error}") from None
    return text
