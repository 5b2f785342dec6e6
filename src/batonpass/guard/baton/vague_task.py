"""Recognises tasks that only point at something: "do it", "fix the above", "as discussed".

The sender still sees the thing that is meant; the receiver does not. A task is recognised only if *every* word of it is
on one of these lists and something in it points. Any other word, a number, a name or a piece of code makes it concrete.
The lists are English: a task in another language is never recognised.
"""

import re
import unicodedata
from itertools import pairwise
from typing import Final


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


# Words that have a meaning only together with something that was said before.
POINTERS: Final = _words(
    "it its it's that that's this these those them they such same ditto likewise former latter rest remainder",
    "above above-mentioned aforementioned below previous prior preceding earlier",
    "discussed agreed mentioned described said stated noted explained outlined suggested proposed requested told asked",
    "continue continuing continued proceed",
)

# Pairs of words that point, though neither word does alone.
POINTING_PAIRS: Final = frozenset(
    {"as before", "like before", "try again", "go on", "go ahead", "keep going", "carry on"},
)

# Verbs that say nothing about their object.
VERBS: Final = _words(
    "do does doing did done fix fixing make making finish finishing complete handle implement apply try retry run",
    "repeat redo undo check review verify ensure update change adjust improve use see look take get give start begin",
    "go going keep work works deal follow address solve resolve resume tackle sort clean send show explain perform",
    "execute carry wrap add remove delete is are was were be has have had will would can could should must may might",
    "need needs want wants let let's",
)

# Nouns that name nothing in particular.
THINGS: Final = _words(
    "thing things stuff issue issues problem problems bug bugs error errors mistake mistakes task tasks job part parts",
    "item items point points step steps one ones conversation discussion chat message messages request everything all",
)

FILLERS: Final = _words(
    "a an the and or but so sure then if when as with without on in into of to from for by at up out off over about",
    "per like through via also too just only now soon asap next last first still already yet here there before",
    "ahead again please kindly thanks thank ok okay yes no not well quickly properly correctly better right way what",
    "which who how i me my we us our you your he she his her their exactly both each any some more other another",
    "remaining",
)

# After these, "that" begins a clause, as in "verify that all tasks are done"; at the end of a task it still points.
BEFORE_CLAUSES: Final = _words("check verify ensure sure see so show explain said stated noted explained agreed told")

_KNOWN: Final = POINTERS | VERBS | THINGS | FILLERS
_WORD: Final = re.compile(r"\S+")
_INTRODUCED: Final = re.compile(r":\s+\S")  # "run this: make check" contains what it points at
_AROUND_WORDS: Final = ".,;:!?…-–—"
_AROUND_TASK: Final = "\"'`“”‘’"  # noqa: RUF001 - the marks that people type
_APOSTROPHES: Final = str.maketrans({"’": "'", "‘": "'"})  # noqa: RUF001 - as above


def points_only(task: str) -> bool:
    """Return whether a task points at something that is not in it, and has no word with a meaning of its own."""
    text = unicodedata.normalize("NFKC", task).strip().strip(_AROUND_TASK).translate(_APOSTROPHES)
    if _INTRODUCED.search(text):
        return False
    shouted = text == text.upper()
    words = [""]
    for found in _WORD.finditer(text):
        word = found.group().strip(_AROUND_WORDS)
        # In a sentence that is not all capitals, a word in capitals is a name: IT, US.
        named = len(word) > 1 and word.isupper() and not shouted
        if word and (named or word.lower() not in _KNOWN):
            return False
        if word:
            words.append(word.lower())
    return words[-1] in POINTERS or any(_points(before, word) for before, word in pairwise(words))


def _points(before: str, word: str) -> bool:
    if word == "that":
        return before not in BEFORE_CLAUSES
    return word in POINTERS or f"{before} {word}" in POINTING_PAIRS
