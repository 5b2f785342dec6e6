"""Words that point at something which is not there: earlier talk, a file, a section, a column; and texts cut short.

Like all checks of prose these ask and never block, and read a text in linear time.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.made_files import find_made
from batonpass.guard.baton.prose.prose import Prose, a_doubt, words_of
from batonpass.guard.baton.prose.signs import (
    AGREES,
    DAMAGED,
    DECISIONS,
    NUMBERED,
    POINTS,
    TALKS,
    UNFINISHED,
    TextForms,
    WordSign,
    mark_figures,
    words_before_numbers,
)
from batonpass.guard.baton.text_memory import remembered
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Artifact, Claim, Constraint, Decision

# What only somebody who was there understands. A clause that goes on ("as discussed with the team, the retry uses …")
# says it again, so it points at nothing.
_EARLIER_TALK: Final = re.compile(
    r"\b(?:as|like|what|which|that) (?:we |i |was |were )?(?:just |already |have )?"
    r"(?:discussed|agreed|talked about|mentioned|spoke about|decided earlier|said before|said earlier)\b"
    r"(?! (?:with|in|on|at|by) )"
    r"|\bwe (?:talked|spoke) about\b"
    r"|\b(?:mentioned|described|named|listed|shown|quoted) (?:above|before|earlier|previously)\b"
    r"|\babove-mentioned\b|\baforementioned\b"
    r"|\b(?:my|your|the|our) (?:previous|last|earlier|former) "
    r"(?:message|mail|e-mail|email|conversation|discussion|chat|answer|reply|note|call|prompt)s?\b"
    r"|\b(?:output|result|results|outcome|findings) of (?:the|my|your) "
    r"(?:previous|last|earlier|preceding) (?:step|task|agent|run|phase)\b"
    r"|\bthe other (?:one|approach|option|version|way|variant|solution|client|file)\b"
    r"|\bthe (?:latter|former)\b(?! (?:[a-z]{1,20} ){0,2}(?:is|are|was|were)\b)"
    r"|\bthe (?:first|second|third|last) (?:option|approach|variant|alternative|proposal|suggestion)\b"
    r"|\b(?:same|the usual) (?:way|thing|procedure|approach)? ?as "
    r"(?:last time|before|for the (?:last|other|previous))\b"
    r"|\blike last (?:time|year|month|week)\b"
    r"|\bas (?:always|usual|last time)\b(?=\s{0,2}(?:[.,;!?]|$)| (?:but|and|with|for|at)\b)"
    r"|\bthe same as (?:before|last time|always)\b|(?:^|(?<=[.!?] ))the same (?:customer|client|person|bug"
    r"|problem|error|file|place|team)\b"
    r"|\b(?:worked|works|did|was|went|done|used) (?:[a-z]{1,20} ){0,2}last time\b"
    r"|\bthat (?:function|file|class|method|module|page|ticket|bug|issue|table|document|mail|customer|person) "
    r"(?:everywhere|again|too|as well)\b"
    r"|\bsteps? \d{1,2}(?: to \d{1,2})? of (?:the|our|my) "
    r"[a-z ]{0,30}(?:plan|list|procedure|checklist|guide|runbook)\b",
    re.IGNORECASE,
)
# Signs of `_EARLIER_TALK`.
_TALKING: Final = WordSign(
    "discussed|agreed|mentioned|talked|spoke|earlier|previously|aforementioned|latter|former|previous|preceding|last",
    "before & said|mentioned|described|named|listed|shown|quoted|same|usual",
    "above & mentioned|described|named|listed|shown|quoted",
    "other & one|approach|option|version|way|variant|solution|client|file|same|usual",
    "first|second|third & option|approach|variant|alternative|proposal|suggestion",
    "as & always|usual",
    "same & customer|client|person|bug|problem|error|file|place|team",
    "that & everywhere|again|too|well",
    "step|steps & of",
)

# A value that only those know who agreed on it. A file that is carried does not say it; a decision or a claim may.
_AGREED: Final = re.compile(
    r"\bthe (?:[\w-]{1,30} ){1,3}(?:that |which )?(?:we|you|i|they|he|she) (?:have |had |all |both )?"
    r"(?:just |already |once |finally )?(?:discussed|agreed(?: on| upon)?|talked about|spoke about|settled on"
    r"|decided on"
    r"|chose|picked|mentioned|promised)\b(?! (?:with|in|on|at|by|as) )"
    r"|\b(?:that|which) the (?:[\w-]{1,30} ){0,2}(?:phase|step|stage|agent|worker|team|run|colleagues?) "
    r"(?:has |have |had )?(?:selected|chose|chosen|found|identified|picked|flagged|shortlisted|collected"
    r"|recommended)\b",
    re.IGNORECASE,
)
_AGREEING: Final = WordSign(
    "discussed|agreed|talked|spoke|settled|decided|chose|picked|mentioned|promised & we|you|i|they|he|she & the",
    "selected|chose|chosen|found|identified|picked|flagged|shortlisted|collected|recommended & that|which"
    "& phase|step|stage|agent|worker|team|run|colleague|colleagues",
)
_TABLES: Final = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".xls", ".parquet")

# "Tell them she agreed": a pronoun that nothing before it explains.
_LEADING_PRONOUN: Final = re.compile(
    r"\s{0,5}(?:please |kindly |now |then |just |can you |could you |would you ){0,2}"
    r"(?!(?:is|was|are|does|do|will|would|can|could|should|if|when|while|once|since|as|that|how|whether|because) )"
    r"[a-z]{2,15}(?: to| for| on| with| about)? "
    r"(?:it|them|him|he|she|they|both|either|neither|(?:this|that|these|those|her)(?=\s{0,2}(?:[.,;!?]|$)"
    r"| (?:and|or|to|before|by|until|again|now|of|about|that|how|why|when)\b))"
    r"(?![\w:'’-])(?!.{0,5}:)",
    re.IGNORECASE,
)
# The number of a thing, such as invoice 4410; and the thing without it.
_THING: Final = re.compile(
    r"\b(?P<what>[a-z]{3,20}) (?:no\.? |number |#)?(?P<id>#?[A-Z]{0,8}-?\d[\w/-]{0,20}"
    r"|[\w-]{2,20}/[\w./-]{1,40})(?![\w%.:])",
    re.IGNORECASE,
)
_NO_THINGS: Final = words_of(
    "week page line version step table figure section chapter clause day year level round phase port python release",
    "january february march april may june july august september october november december jan feb mar apr jun",
    "jul aug",
    "sep oct nov dec about than least most over under until since before after from with and for are was were the",
    "around above below have has total sum costs cost than only every another",
)

_FILE: Final = re.compile(
    r"(?<![\w/.@:~-])([\w-]{1,60}(?:\.[\w-]{1,30}){0,3}\.(?:csv|tsv|json|jsonl|xlsx?|docx?|pdf|txt|md|sql|xml"
    r"|ya?ml|parquet|log|html?))\b(?![/\w])"
)
_COMMAND: Final = re.compile(r"`[^`\n]{1,60} [^`\n]{1,200}`")
_SECTION: Final = re.compile(r"\b(?:section|chapter|clause|§) ?(\d{1,2}(?:\.\d{1,2}){0,3})\b", re.IGNORECASE)
_HEADING: Final = re.compile(
    r"^\s{0,3}#{0,6}\s*(?:section |chapter |clause |§ ?)?(\d{1,2}(?:\.\d{1,2}){0,3})\b", re.IGNORECASE
)
_NUMBERED: Final = re.compile(r"\b(Table|Figure|Fig\.|Exhibit|Appendix) ([0-9]{1,3}|[A-Z])\b")
_COLUMN: Final = re.compile(
    r"\b(?:columns?|fields?) [\"'“`]([^\"'”`\n]{1,60})[\"'”`]|[\"'“`]([^\"'”`\n]{1,60})[\"'”`] columns?\b",
    re.IGNORECASE,
)
_KEY: Final = re.compile(r"\b(?:value of|key|field|setting|entry) [\"'“`]([\w.-]{1,80})[\"'”`]", re.IGNORECASE)
_DECISION: Final = re.compile(r"\bdecision ([A-Z]{1,4}-?\d{1,4})\b", re.IGNORECASE)
_CODE: Final = re.compile(r"\b[A-Z]{1,4}-?\d{1,4}\b")
# UTF-8 that was read as Latin-1 or Windows-1252: two letters where there was one.
_MOJIBAKE: Final = re.compile(
    "\u00c3[\u0080-\u00bf\u0178\u201e\u2013\u0153]|\u00e2\u20ac[\u2122\u0153\u009d\u201c\u201d\u00a6\u2013\u2014]"
    "|\u00c2[\u00a0\u00b7\u00b0\u00a7]|\ufffd"
)
_DAMAGES: Final = ("\u00c3", "\u00e2\u20ac", "\u00c2", "\ufffd")  # signs of it
# Signs that a part of a file is named.
_PLACES: Final = (
    "section",
    "chapter",
    "clause",
    "§",
    "table",
    "figure",
    "fig.",
    "exhibit",
    "appendix",
    "column",
    "field",
    "value of",
    "key",
    "setting",
    "entry",
)
_POINTERS: Final = frozenset({b"the", b"this", b"that"})
SIGN_WORDS: Final = frozenset({b"decision"}).union(_POINTERS, _TALKING.words, _AGREEING.words)


def find_signs(forms: TextForms) -> int:
    """Return the signs of the checks below that a text has."""
    text, words = forms.text, forms.words
    signs = 0 if words.isdisjoint(_POINTERS) else POINTS
    if _TALKING.is_in(forms):
        signs |= TALKS
    if _AGREEING.is_in(forms):
        signs |= AGREES
    if b"decision" in words:
        signs |= DECISIONS
    if "/" in text or forms.figures is None or b"0" in forms.figures:
        signs |= NUMBERED
    if not text.isascii() and any(map(text.__contains__, _DAMAGES)):
        signs |= DAMAGED
    if is_unfinished(text):
        signs |= UNFINISHED
    return signs


def find_prose_drift(
    baton: Baton, prose: Prose, *, texts: Mapping[str, str], files: frozenset[str]
) -> Iterator[Problem]:
    """Yield things that the orders point at and that are missing.

    `texts` has the words of the files that are carried, by name, and `files` the names that are in the work tree.
    """
    kinds, signs = baton.by_kind, prose.order_signs
    if Artifact in kinds:
        yield from _missing_files(baton, prose.orders, files)
        if texts and any(map(prose.ordered.lower().__contains__, _PLACES)):
            for text in prose.orders:
                yield from _missing_places(text, texts)
    # With files or decisions at hand, the talk may well be about them.
    elif signs & TALKS and Decision not in kinds:
        yield from _earlier_talk(_EARLIER_TALK, prose.orders)
    if (
        signs & AGREES
        and kinds.keys().isdisjoint(_SAYING)
        and all(artifact.name.lower().endswith(_TABLES) for artifact in baton.attached)
        and not any(map(_LISTS, prose.told))
    ):
        yield from _earlier_talk(_AGREED, prose.orders)
    if not baton.items and (found := _LEADING_PRONOUN.match(baton.task)) is not None:
        yield from _unexplained(found.group())
    if signs & POINTS and prose.told_signs & NUMBERED:
        yield from _one_of_several(prose)
    if signs & DECISIONS and Decision in kinds:
        yield from _missing_decisions(baton, prose.orders)
    if texts:
        yield from _missing_codes(prose.orders, texts)


def find_damage(prose: Prose, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield texts whose letters were decoded wrongly, or whose end is missing; `texts` are the files carried."""
    signs = prose.order_signs
    if texts or (signs | prose.told_signs) & DAMAGED:
        for text in (*prose.orders, *prose.told, *texts.values()):
            if any(map(text.__contains__, _DAMAGES)) and (found := _MOJIBAKE.search(text)):
                near = quote(text[max(0, found.start() - 12) : found.end() + 8])
                yield a_doubt(
                    "signal-corruption.encoding",
                    f"The letters of {near} were decoded wrongly.",
                    f"How is {near} really spelled?",
                )
    for text in prose.orders if signs & UNFINISHED else ():
        if is_unfinished(text):
            end = quote(text.strip()[-50:], words=8)
            yield a_doubt(
                "signal-corruption.cut-off",
                f"A text ends inside a sentence: {end}.",
                f"How does the text go on after {end}?",
            )


# No English sentence ends with one of these.
_UNFINISHED: Final = re.compile(
    r"(?:,|\b(?:and|or|the|an|of|with|because|although|whether|our|my|your|their|between|into|than|will|would"
    r"|should|must|which|if|when|but|every|each))\s*$",
    re.IGNORECASE,
)


_LONGEST_UNFINISHED: Final = 12  # characters


def is_unfinished(text: str) -> bool:
    """Return whether a text ends inside a sentence."""
    # Only the end is looked at: a pattern for it would be tried at every character.
    if _UNFINISHED.search(text, max(0, len(text.rstrip()) - _LONGEST_UNFINISHED)):
        return True
    return '"' in text and _is_cut_off(text)


def _is_cut_off(text: str) -> bool:
    stripped = text.strip()
    if stripped.count('"') % 2 == 0:
        return False
    place = stripped.rfind('"')
    # Not an inch mark and not a closing mark: something begins here, and does not end.
    return (
        place + 1 < len(stripped) and (place == 0 or stripped[place - 1] in " :(=\n\t") and stripped[place + 1] != " "
    )


_SAYING: Final = frozenset({Decision, Claim, Constraint})
_LISTS: Final = re.compile(r":\s{0,3}\S").search


def _earlier_talk(pattern: "re.Pattern[str]", orders: Sequence[str]) -> Iterator[Problem]:
    for text in orders:
        if (found := pattern.search(text)) is not None:
            shown = quote(found.group(), words=8)
            yield a_doubt(
                "referential-drift.earlier-talk",
                f"{shown} points at something that does not travel with the task.",
                f"What exactly is meant by {shown}?",
            )
            return


def _unexplained(words: str) -> Iterator[Problem]:
    shown = quote(words.strip(), words=8)
    yield a_doubt(
        "referential-drift.pronoun",
        f"Nothing says who or what is meant in {shown}.",
        f"Who or what exactly is meant in {shown}?",
    )


def _one_of_several(prose: Prose) -> Iterator[Problem]:
    """Yield a thing that the orders name without its number, where the items know several of its kind."""
    numbered = [text for text in prose.told if prose.signs[text] & NUMBERED]
    if not _may_number_two(numbered):
        return
    known: dict[str, dict[str, None]] = {}
    for text in numbered:
        for what, number in _things(text):
            known.setdefault(what, {})[number] = None
    ordered = prose.ordered.lower()
    for what, ids in known.items():
        if len(ids) == 1 or any(map(prose.ordered.__contains__, ids)):
            continue
        if re.search(rf"\b(?:the|this|that) {what}\b(?! (?:no\.?|number|#|[A-Z]{{0,4}}-?\d))", ordered):
            one, other, *_ = ids
            yield a_doubt(
                "referential-drift.which-one",
                f"The task says only {quote(what)}, and there are {quote(one)} and {quote(other)}.",
                f"Which {what} is meant: {quote(one)} or {quote(other)}?",
            )
            return


def _may_number_two(texts: Sequence[str]) -> bool:
    """Return False if texts surely have no two numbers or paths after the same word: invoice 12 and invoice 14."""
    seen: set[bytes] = set()
    for text in texts:
        words = _words_before_numbers(text)
        if words is None or len({*words}) < len(words) or not seen.isdisjoint(words):
            return True
        seen.update(words)
    return False


@remembered
def _words_before_numbers(text: str) -> list[bytes] | None:
    figures = mark_figures(text.lower())
    return None if figures is None else words_before_numbers(figures)


@remembered
def _things(text: str) -> list[tuple[str, str]]:
    """Return the things in a text that have a number or a path, with these."""
    return [(what, found["id"]) for found in _THING.finditer(text) if (what := found["what"].lower()) not in _NO_THINGS]


def _missing_files(baton: Baton, orders: Sequence[str], files: frozenset[str]) -> Iterator[Problem]:
    there = {artifact.name for artifact in baton.attached} | files
    there |= {name.rpartition("/")[2] for name in there}
    there |= {output for work in baton.completed for output in work.outputs} | set(baton.brief.expects)
    named: dict[str, bool] = {}
    for text in orders:
        # A command that is shown may name files of its own. A file that is read first was there before it is written.
        for name, made in find_made(_COMMAND.sub(" ", text), _FILE):
            named.setdefault(name, made)
    for name, made in named.items():
        if not made and name not in there and name not in baton.brief.inputs:
            yield a_doubt(
                "referential-drift.file-missing",
                f"Files are carried, and {quote(name)} is not among them.",
                f"Where is {quote(name)}: is it one of the files that are carried?",
            )


def _missing_places(text: str, texts: Mapping[str, str]) -> Iterator[Problem]:
    named = [content for name, content in texts.items() if name in text] or list(texts.values())
    if (found := _SECTION.search(text)) and (numbers := _headings(named)) and found[1] not in numbers:
        yield _missing_place(found.group())
    for found in _NUMBERED.finditer(text):
        others = [one for content in named for one in _NUMBERED.findall(content) if one[0] == found[1]]
        elsewhere = _OF_ANOTHER.match(text, found.end())
        if (others or not elsewhere) and (found[1], found[2]) not in others:
            yield _missing_place(found.group())
    tables = [
        content
        for name, content in texts.items()
        if name.endswith((".csv", ".tsv")) and (name in text or len(texts) == 1)
    ]
    if tables and (found := _COLUMN.search(text)):
        column = (found[1] or found[2]).casefold()
        headers = {cell.strip().strip('"').casefold() for table in tables for cell in _cells(table)}
        if column not in headers:
            yield _missing_place(found.group())
    documents = [
        content for name, content in texts.items() if name.endswith(".json") and (name in text or len(texts) == 1)
    ]
    if documents and (found := _KEY.search(text)) and not any(_has_key(document, found[1]) for document in documents):
        yield _missing_place(found.group())


_OF_ANOTHER: Final = re.compile(r" (?:of|in|from|on|at) ")


def _headings(texts: Sequence[str]) -> set[str]:
    return {found[1] for text in texts for line in text.splitlines() if (found := _HEADING.match(line))}


def _cells(table: str) -> list[str]:
    first = table.partition("\n")[0]
    return first.split("\t" if "\t" in first else ";" if ";" in first and "," not in first else ",")


def _has_key(document: str, path: str) -> bool:
    try:
        value = json.loads(document)
    except (ValueError, RecursionError):
        return True  # that it cannot be read is another problem
    if isinstance(value, dict) and path in value:
        return True
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return f'"{path}"' in document
        value = value[name]
    return True


def _missing_decisions(baton: Baton, orders: Sequence[str]) -> Iterator[Problem]:
    known = {code.upper() for decision in baton.decisions for code in _CODE.findall(decision.what)}
    if not known:
        return
    for code in dict.fromkeys(code.upper() for text in orders for code in _DECISION.findall(text)):
        if code not in known:
            yield a_doubt(
                "referential-drift.decision-missing",
                f"Decision {quote(code)} is not among the decisions that are carried.",
                f"What was decided under {quote(code)}?",
            )


def _missing_codes(orders: Sequence[str], texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a code such as R9 where a carried file lists others of its letters, at the beginning of lines."""
    families: dict[str, set[str]] = {}
    for text in texts.values():
        for code in _LISTED_CODE.findall(text):
            families.setdefault(code.rstrip("0123456789"), set()).add(code)
    for code in dict.fromkeys(code for text in orders for code in _CODE.findall(text)) if families else ():
        family = families.get(code.rstrip("0123456789"), set())
        if len(family) > 1 and not any(code in text for text in texts.values()):
            yield _missing_place(code)


_LISTED_CODE: Final = re.compile(r"(?:^|[,;\t|]|[-*] )\s{0,4}([A-Z]{1,4}-?\d{1,4})\b", re.MULTILINE)


def _missing_place(words: str) -> Problem:
    return a_doubt(
        "referential-drift.place-missing",
        f"None of the files that are carried has {quote(words)}.",
        f"Which part of which file is meant by {quote(words)}?",
    )
