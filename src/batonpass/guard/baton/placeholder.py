"""Recognises words that fill a field and say nothing: "n/a", "???", "tbd", a copy of the task.

Forms and models like to fill every field. A filled field is no answer, so it counts as an empty one. A sender who means
that there is nothing says so openly: `none=["question"]`.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Final, NamedTuple

from batonpass.guard.baton.text_memory import remembered
from batonpass.model.base.kinds import Part
from batonpass.model.baton.baton import CRITERIA, RATIONALE, Brief
from batonpass.model.baton.items import (
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    WorkItem,
)


def _phrases(*lines: str) -> frozenset[str]:
    return frozenset(phrase.strip() for line in lines for phrase in line.split(","))


# They answer no question, whatever it is.
_NO_ANSWERS: Final = _phrases(
    "na, n/a, n.a, nil, null, undefined, unknown, not applicable, not available, not provided, not specified",
    "not given, tbd, tba, tbc, todo, to do, fixme, xxx, placeholder, lorem ipsum, foo, bar, foobar, asdf, qwerty, blah",
    "none yet, nothing yet, not yet, none so far, nothing so far, pending, later, soon, to follow, coming soon, wip",
    "will follow, dunno, idk, no idea, i don't know, i do not know, i dont know, don't know, dont know, do not know",
    "i'm not sure, not sure, unsure, unclear, no clue, who knows, no comment, whatever, ask me later, ask someone else",
    "to be determined, to be decided, to be defined, to be announced, to be confirmed, to be filled in, to be added",
    "fill in, fill me in, insert here, insert text, insert text here, your text here, some text, dummy, blank, empty",
    "blah blah, see above, see below, as above, as below, same as above, ditto, idem, etc, and so on",
)

# They can answer a closed question, but a part of a baton or of a report says more than this.
_SAYS_TOO_LITTLE: Final = _NO_ANSWERS | _phrases(
    "none, nothing, no, yes, ok, okay, done, fine, good, all good, same, above, below, test, testing, string, text",
    "value, example, sample, default, something, anything, stuff, things, various, misc, other, as discussed, x, abc",
    "as agreed, as usual, none known, reason, reasons, because, needed, required, in progress, as needed, as required",
    "various reasons, it is needed, because it is needed, because i said so, none at the moment, nothing to report",
    "not relevant, irrelevant, standard, the usual, usual, self-explanatory, self explanatory, obvious, clear, as is",
    "looks good, looks fine, looks ok, looks okay, looks right, looks correct, looks good to me, lgtm, seems good",
    "seems fine, seems ok, seems right, seems correct, all fine, it works, works, works for me, approved, verified",
    "checked, i checked, i checked it, i verified it, correct, right, wrong, bad, great, well done, good work, no good",
    # The name of the field, or that there is a task.
    "rationale, criterion, criteria, constraint, constraints, exclusion, exclusions, decision, decisions, decided",
    "question, questions, open question, open questions, rejected, rejected path, rejected paths, assumption, claim",
    "assumptions, claims, completed, result, results, report, outcome, task, the task, the task is done, task done",
    "it is done, is done, all done, finished, it is required, do it",
    "because it is required, do the task, see task, see the task, same as the task, as described, as described above",
    "as described in the task, no question, no questions, nothing was tried, nothing was rejected, nothing was decided",
    "baz, n/a for now, lorem ipsum dolor sit amet",
)

_WORDS: Final = re.compile(r"[^\W_]+")
_TEMPLATES: Final[Mapping[str, str]] = MappingProxyType({"<": ">", "[": "]", "{": "}"})
_AROUND: Final = " \t\r\n.,;:!?…-–—_*#\"'`()[]<>{}/|~+="
_APOSTROPHES: Final = "’‘"  # noqa: RUF001 - the marks that people type
# Everything in which two texts may differ that are the same for `_plain`, and all spaces.
_DELETED: Final = f"{_AROUND}{_APOSTROPHES}{''.join(filter(str.isspace, map(chr, range(0x3001))))}"
_DELETED_ASCII: Final = "".join(filter(str.isascii, _DELETED)).encode()
_ANY_DELETED: Final = re.compile(f"[{re.escape(_DELETED)}]+")  # of long texts, twice as fast as `str.translate`
_HELD_DOWN: Final = 3  # "xxx"
_LONGEST: Final = 32  # characters; no phrase above is longer


def says_nothing(answer: str) -> bool:
    """Return whether an answer is none: "dunno", "tbd", punctuation only."""
    return _plain(answer) in _NO_ANSWERS or not _WORDS.search(answer)


def is_placeholder(text: str, task: str = "") -> bool:
    """Return whether a text says nothing about its part: a placeholder, one letter over and over, or the task again."""
    stripped = text.strip()
    verdict = _is_placeholder_alone(stripped)
    return bool(task) and _repeats(stripped, task) if verdict is None else verdict


def find_placeholders(texts: Iterable[str], task: str) -> list[str]:
    """Return the texts that say nothing about their part.

    Most texts say something: a placeholder is short, or a template, or has no words, or has all words of the task,
    also the first.
    """
    return _find_placeholders(_read_alone.each([*texts]), task)


def _find_placeholders(texts: Sequence["_TextAlone"], task: str) -> list[str]:
    # If the first word is longer than what is looked at here, then its beginning is in such a text as well.
    first = _WORDS.search(task[:_LONGEST].casefold()) or _WORDS.search(task.casefold())
    found = []
    for text, verdict, folded, _ in texts:
        if verdict or (verdict is None and first is not None and first[0] in folded and _repeats(text.strip(), task)):
            found.append(text)
    return found


class _TextAlone(NamedTuple):
    """The facts about a text that do not depend on the task."""

    text: str
    verdict: bool | None  # whether it says nothing; None if that depends on the task
    folded: str
    told_apart: int  # two texts that are the same for `_plain` have the same number


@remembered
def _read_alone(text: str) -> _TextAlone:
    if text.isascii():  # then there is nothing to normalise, and bytes are several times as fast
        folded = text.lower()
        bare = folded.encode().translate(None, _DELETED_ASCII).decode()
    else:
        folded = text.casefold()
        bare = _ANY_DELETED.sub("", unicodedata.normalize("NFKC", text).casefold())
    return _TextAlone(text, _is_placeholder_alone(text.strip()), folded, hash(bare))


def _is_placeholder_alone(stripped: str) -> bool | None:
    """Return whether a text is empty talk for every task; None if that depends on the task."""
    if len(stripped) <= _LONGEST and (_plain(stripped) in _SAYS_TOO_LITTLE or _is_one_key(stripped)):
        return True
    if not _WORDS.search(stripped):
        return True
    if (end := _TEMPLATES.get(stripped[0])) is not None and stripped.endswith(end):
        return " " not in stripped or len(stripped) <= 2 * _LONGEST
    return None


def _is_one_key(text: str) -> bool:
    return len(text) >= _HELD_DOWN and len(set(text.lower())) == 1


def _repeats(text: str, task: str) -> bool:
    """Return whether a text is the task again, perhaps with a word or two around it."""
    if text.casefold() == task.strip().casefold():
        return True
    words, said = _WORDS.findall(text.casefold()), _WORDS.findall(task.casefold())
    if not said or len(words) > len(said) + 2 or len(words) < len(said):
        return False
    return not Counter(said) - Counter(words)


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKC", text)
    for mark in _APOSTROPHES:
        letters = letters.replace(mark, "'")
    letters = letters.casefold()
    return " ".join(letters.replace(".", "").strip(_AROUND).split())


# The main field of each kind of item. Its reason, where it has one, does not replace it.
_TEXT: Final[Mapping[type[ItemValue], str]] = MappingProxyType(
    {
        Exclusion: "text",
        WorkItem: "what",
        OpenQuestion: "text",
        RejectedPath: "what",
        Decision: "what",
        Assumption: "what",
        Claim: "what",
    }
)


def find_hollow(task: str, brief: Brief, values: Iterable[ItemValue | None]) -> frozenset[str]:
    """Return the parts in which every text is a placeholder, or the same sentence as in the other parts."""
    said = _texts(brief, values)
    everything = _read_alone.each([*chain.from_iterable(said.values())])
    placeholders = {*_find_placeholders(everything, task)}
    # Most batons say something in every part, and in each something else.
    if not placeholders and len({*map(_TOLD_APART, everything)}) == len(everything):
        return frozenset()
    plain = {part: {_plain(text) for text in texts} for part, texts in said.items()}
    often = Counter(chain.from_iterable(plain.values()))
    # Two parts may say one thing: a decision that became a constraint. It is said about none of them if nothing else is
    # said anywhere, or if it stands in one field after the other.
    enough = 2 if len(often) == 1 else _IN_EACH_FIELD
    return frozenset(
        part
        for part, texts in said.items()
        if all(text in placeholders for text in texts) or all(often[text] >= enough for text in plain[part])
    )


_TOLD_APART: Final = attrgetter("told_apart")
_IN_EACH_FIELD: Final = 3  # parts with the same sentence


def _texts(brief: Brief, values: Iterable[ItemValue | None]) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    if brief.rationale is not None:
        said[RATIONALE] = [brief.rationale]
    if brief.criteria:
        said[CRITERIA] = list(brief.criteria)
    for value in values:
        if isinstance(value, Constraint):
            # As a sentence, which is its text if it is not typed.
            said.setdefault(value.part, []).append(value.text if value.key is None else value.sentence)
        elif isinstance(value, Report):
            if value.result:
                said.setdefault(Part.COMPLETED, []).append(value.result)
            for each in value.values:
                said.setdefault(each.part, []).append(getattr(each, _TEXT[type(each)]))
        elif (name := _TEXT.get(type(value))) is not None:  # type: ignore[arg-type]  # an erased item has no type there
            said.setdefault(value.part, []).append(getattr(value, name))  # type: ignore[union-attr]  # as above
    return said
