"""Blame: who wrote each line of a file, or a pasted diff, words or a digest; and the chain up to the human's words."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup
from msgspec import Struct

from batonpass.accounts.blame.blame_text import Blame, render_blame
from batonpass.accounts.blame.blame_values import BlamedLine, HowKnown, Maker
from batonpass.accounts.blame.blame_words import (
    BlameRow,
    LineEdit,
    approval_notes,
    called,
    header_of,
    hearsay_words,
    hunks_of,
    proof_notes,
    task_words,
)
from batonpass.accounts.blame.hunk_blame import BlamedHunk, hunk_row
from batonpass.accounts.blame.other_blame import blame_digest, blame_text
from batonpass.accounts.blamed_lines.line_author import AuthorKind, LineAuthor, author_of
from batonpass.accounts.trail.receipt_lines import TrailNote
from batonpass.attribution.changes.change import lines_of
from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.model.base.checks import shorten
from batonpass.server.page.request import PageMoved, PageRequest, Shown
from batonpass.server.page.shown_files import EarlierFile, ShownFile, ShownFiles
from batonpass.server.page.source_code import coloured
from batonpass.store.port import LedgerView, ReceiptQuery

WAYS: Final = (
    ("file", "File", "/blame"),
    ("diff", "Diff", "/blame/diff"),
    ("words", "Words", "/blame?as=words"),
    ("digest", "Digest", "/blame?as=digest"),
)
MOST_LINES: Final = 300  # of a file on one page
MOST_HUNKS: Final = 200
_PLACES: Final = 40
_WORDS_IN: Final = 2_000  # receipts whose words are read for one page; whoever looks further goes on with the next
_DIGEST_IN: Final = 10_000
_DIGITS: Final = 16  # of a position
_PLACE: Final = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})")
_DIGEST: Final = re.compile(r"(?:sha256:)?[0-9a-f]{64}", re.IGNORECASE)
_OLDER: Final = "older"


class LineRow(Struct, frozen=True, kw_only=True):
    """One line: its author, said once for lines that follow each other, and its text."""

    number: int
    text: Markup
    author: LineAuthor
    kind: str  # agent, outside, doubt, older or broken
    words: str  # who, or why it is not known
    is_first: bool
    is_chosen: bool


class BlameSource(Struct, frozen=True, kw_only=True):
    """One call that wrote the chosen lines, or may have: the links of the chain from it up to the human."""

    maker: Maker
    call: str
    edit: LineEdit | None
    header: str
    leave: tuple[TrailNote, ...]
    proof: tuple[TrailNote, ...]
    task: str  # from a note without the words, what is known of them
    is_outside: bool


class ChosenLines(Struct, frozen=True, kw_only=True):
    """The lines that somebody asks about: those around one that have the same author."""

    first: int
    last: int
    author: LineAuthor
    kind: str
    sources: tuple[BlameSource, ...]
    told: tuple[BlameRow, ...]  # as the command line tells it
    heard: tuple[tuple[str, str], ...]  # what other tools say
    before: EarlierFile | None
    line: BlamedLine


def show_blame(asked: PageRequest) -> Shown:
    """Return a directory, a file, or where words or a digest are; whatever the address asks about."""
    way = asked.asked("as") or "file"
    given = asked.asked("what")
    if given:
        raise PageMoved(address_of_code(asked, given) or f"/blame?{urlencode({'text': given})}")
    if asked.asked("text") or asked.asked("digest") or way in {"words", "digest"}:
        return _show_places(asked, way)
    files = _files(asked)
    shown: Shown = {**_frame(asked, "file", files), "entries": None, "file": None}
    if files is None:
        return shown
    path = asked.asked("path").strip("/")
    with asked.looking() as view:
        if not asked.asked("at") and files.is_directory(path):
            entries = files.entries(view, path)
            return {**shown, "entries": entries, "path": path, "crumbs": _crumbs(path), "linked": _is_linked}
        return {**shown, **_show_file(asked, view, files, path)}


def show_diff(asked: PageRequest) -> Shown:
    """Return who wrote the added lines of a diff that somebody pasted."""
    files = _files(asked)
    shown: Shown = {**_frame(asked, "diff", files), "patch": asked.fields.get("patch", ""), "hunks": None}
    if files is None or not shown["patch"].strip():
        return shown
    with asked.looking() as view:
        try:
            found: Sequence[BlamedHunk] = files.hunks(view, shown["patch"])
        except InvalidValueError as error:
            return {**shown, "problem": str(error)}
    rows = [(hunk, hunk_row(hunk)) for hunk in found[:MOST_HUNKS]]
    return {**shown, "hunks": rows, "more": max(0, len(found) - MOST_HUNKS), "linked": _is_linked}


def _frame(asked: PageRequest, way: str, files: ShownFiles | None) -> Shown:
    names = [one.name for one in asked.files]
    return {
        "way": way,
        "ways": WAYS,
        "repository": None if files is None else files.name,
        "repositories": names if len(names) > 1 else [],
        "link": lambda **given: _link(asked, files, given),
        "problem": None,
    }


def _link(asked: PageRequest, files: ShownFiles | None, given: dict[str, object]) -> str:
    kept = {name: str(text) for name, text in given.items() if text}
    if files is not None and len(asked.files) > 1:
        kept = {"repository": files.name, **kept}
    return "/blame" + (f"?{urlencode(kept)}" if kept else "")


def _files(asked: PageRequest) -> ShownFiles | None:
    wanted = asked.asked("repository")
    if not wanted:
        return asked.files[0] if asked.files else None
    found = next((one for one in asked.files if one.name == wanted), None)
    if found is None:
        raise NotFoundError("repository", shorten(wanted), where="server")
    return found


def address_of_code(asked: PageRequest, given: str) -> str | None:
    """Return where a digest, or a path with or without a line, is shown; None if it is neither."""
    if _DIGEST.fullmatch(given):
        return f"/blame?{urlencode({'digest': given.lower()})}"
    files = _files(asked)
    if files is None or "\n" in given:
        return None
    place = _PLACE.fullmatch(given)
    path, line = (given, "") if place is None else (place["path"], place["line"])
    with asked.looking() as view:
        if not _is_there(view, files, path):
            return None
    return _link(asked, files, {"path": path, "line": line}) + (f"#L{line}" if line else "")


def _is_there(view: LedgerView, files: ShownFiles, path: str) -> bool:
    try:
        return files.is_directory(path) or bool(files.blame(view, path, 1, 1, None))
    except InvalidValueError:
        return False


def _is_linked(path: str) -> bool:
    """Return whether an address can name a path: one with bytes that are no text has none."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _crumbs(path: str) -> list[tuple[str, str]]:
    parts = path.split("/") if path else []
    return [(part, "/".join(parts[: number + 1])) for number, part in enumerate(parts)]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else 0


def _show_file(asked: PageRequest, view: LedgerView, files: ShownFiles, path: str) -> Shown:
    line, at = _number(asked.asked("line")), asked.asked("at") or None
    first = _number(asked.asked("from")) or (max(1, line - MOST_LINES // 2) if line > MOST_LINES else 1)
    file = files.blame(view, path, first, MOST_LINES, at)
    blame = file.blame
    rows = _rows(file, line)
    last = rows[-1].number if rows else 0
    chosen = _chosen(asked, files, file, line)
    return {
        "file": file,
        "path": file.path,
        "crumbs": _crumbs(file.path),
        "rows": rows,
        "first": rows[0].number if rows else 0,
        "last": last,
        "counts": Counter(row.kind for row in rows),
        "chosen": chosen,
        "at": file.at,
        "given_at": at,
        "earlier": max(1, first - MOST_LINES) if rows and first > 1 else None,
        "later": last + 1 if last < blame.total else None,
        "whole": [_source(blame, blame.makers[one], ()) for one in blame.calls if one in blame.makers],
        "not_trusted": not blame.holds,
    }


def _rows(file: ShownFile, line: int) -> list[LineRow]:
    blame, rows = file.blame, list[LineRow]()
    if not blame.lines:
        return rows
    lines = lines_of((file.data or b"").decode("utf-8", "surrogateescape"))
    texts = coloured(file.path, lines, blame.lines[0].number, blame.lines[-1].number)
    for group in blame.groups():
        author = author_of(blame, group[0])
        kind, words = _kind(blame, group[0], author)
        is_chosen = group[0].number <= line <= group[-1].number
        for one in group:
            rows.append(
                LineRow(
                    number=one.number,
                    text=texts[one.number - blame.lines[0].number],
                    author=author,
                    kind=kind,
                    words=words,
                    is_first=one is group[0],
                    is_chosen=is_chosen,
                )
            )
    return rows


def _kind(blame: Blame, line: BlamedLine, author: LineAuthor) -> tuple[str, str]:
    """Return how a line looks, and who wrote it in a few words; of an unexplained one, that it is."""
    if author.kind is AuthorKind.BROKEN:
        return "broken", author.label
    if author.kind in {AuthorKind.COMMITTED, AuthorKind.UNEXPLAINED}:
        if line.known is HowKnown.UNEXPLAINED and line.since is None:
            by = f"{author.names[0]} (git)" if author.names else "in no commit"
            return _OLDER, by if not blame.recorded else f"before the record: {by}"
        return "doubt", "unexplained"
    if author.kind is AuthorKind.AGENT:
        return ("outside" if any(_is_outside(one) for one in author.makers) else "agent"), author.label
    return "doubt", author.label


def _is_outside(maker: Maker) -> bool:
    label = None if maker.record is None else maker.record.label
    return label is not None and label.is_external


def _chosen(asked: PageRequest, files: ShownFiles, file: ShownFile, line: int) -> ChosenLines | None:
    group = next((one for one in file.blame.groups() if one[0].number <= line <= one[-1].number), None)
    if group is None:
        return None
    author, blame = author_of(file.blame, group[0]), file.blame
    alone = Blame(
        asked=blame.asked,
        path=blame.path,
        total=blame.total,
        recorded=blame.recorded,
        lines=group,
        makers=blame.makers,
        from_notes=blame.from_notes,
    )
    return ChosenLines(
        first=group[0].number,
        last=group[-1].number,
        author=author,
        kind=_kind(blame, group[0], author)[0],
        sources=tuple(_source(blame, maker, group) for maker in author.makers[:5]),
        told=tuple(render_blame(alone, now=asked.now)),
        heard=tuple(hearsay_words(one) for one in group[0].said),
        before=files.before(file, line),
        line=group[0],
    )


def _source(blame: Blame, maker: Maker, group: Sequence[BlamedLine]) -> BlameSource:
    edit = next((edit for _, edit in hunks_of(maker, group)), None)
    return BlameSource(
        maker=maker,
        call=called(maker, transcripts=blame.is_heard),
        edit=edit,
        header="" if edit is None else header_of(edit),
        leave=tuple(approval_notes(maker)),
        proof=tuple(proof_notes(maker, heard=blame.is_heard)),
        task=task_words(maker),
        is_outside=_is_outside(maker),
    )


def _show_places(asked: PageRequest, way: str) -> Shown:
    """Return where words or a digest are in the latest receipts, and how to look further back."""
    text, digest = asked.asked("text"), asked.asked("digest")
    way = "digest" if digest else "words" if text else way
    shown: Shown = {**_frame(asked, way, _files(asked)), "entries": None, "file": None, "text": text, "digest": digest}
    if not text and not digest:
        return {**shown, "places": None}
    with asked.looking() as view:
        last = view.last_position()
        before = _number(asked.asked("before"))
        last = min(last, before - 1) if before else last
        first = max(1, last - (_WORDS_IN if text else _DIGEST_IN) + 1)
        within = ReceiptQuery(first=first, last=last)
        found = blame_text(view, text, within=within) if text else blame_digest(view, digest, within)
    places = sorted(found.places, key=lambda place: place.at, reverse=True)
    query = {"text": text} if text else {"digest": digest}
    return {
        **shown,
        "places": places[:_PLACES],
        "more": max(0, len(places) - _PLACES),
        "looked_at": max(0, last - first + 1),
        "is_first": not before,
        "next": f"/blame?{urlencode({**query, 'before': first})}" if first > 1 else None,
    }
