"""Whether a task lies in a field of work that the receiver's card says nothing about.

A card that lists skills says what its agent can do. The skills and the task are compared by fields of work, not by
words: "summarization" covers "sum up the minutes". Nothing is said of a task whose field is unknown, or of a card whose
skills are.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from batonpass.guard.baton.problem import Problem, Settles, Whom, quote
from batonpass.model.base.kinds import ErrorType
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.card import Card

# Beginnings of words that name a field of work. A word belongs to one field, or it is not here.
_FIELDS: Final[Mapping[str, str]] = {
    "translation": "translat interpret subtitl locali i18n",
    "writing": "copywrit headline proofread edit slogan essay article story poem newsletter caption press draft speech "
    "letter report document manual style grammar spelling text blog summar abstract key-point minutes",
    "software": "python pytest java javascript typescript react rust cargo golang kotlin swift swiftui ios android "
    "app-store xcode gradle html css frontend backend refactor compil packag unit-test function class codebase grpc "
    "api openapi rest sdk c++ haskell ruby rails php elixir flag cli debug",
    "data": "sql dbt database postgres mysql warehouse etl pipeline dataset csv spreadsheet pivot formula chart "
    "statistic regression analys index migrat schema query",
    "machine-learning": "pytorch tensorflow training fine-tun classifier hyperparameter embedding evaluat",
    "operations": "kubernetes helm terraform aws deploy cluster server backup bucket firewall namespace docker ansible "
    "storage access-key memory-quota infrastructure network",
    "images": "crop retouch photo picture image colour-correction logo illustrat",
    "audio": "transcri podcast audio mastering noise interview hum lufs speaker",
    "law": "legal contract clause non-compete lawsuit court statut liability notar",
    "tax": "vat tax bookkeep accounting ledger payroll invoice",
    "calendar": "schedul calendar appointment remind meeting slot room reschedul invite",
    "mail": "e-mail email mail inbox send",
    "research": "web-search search citation cite literature sources study studies paper",
    "medicine": "diagnos patient dosage prescription clinic",
}
# Fields that overlap in practice: whoever has one is not asked about the other.
_RELATED: Final = (
    {"writing", "translation", "research"},
    {"software", "data"},
    {"software", "operations"},
    {"software", "machine-learning"},
    {"data", "machine-learning"},
    {"calendar", "mail"},
    {"software", "writing", "translation"},
)
_WORD: Final = re.compile(r"[a-z0-9][a-z0-9+#-]{1,30}")
_LANGUAGES: Final[Mapping[str, str]] = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "polish": "pl",
    "czech": "cs",
    "hungarian": "hu",
    "finnish": "fi",
    "swedish": "sv",
    "danish": "da",
    "norwegian": "no",
    "russian": "ru",
    "ukrainian": "uk",
    "turkish": "tr",
    "greek": "el",
    "japanese": "ja",
    "chinese": "zh",
    "korean": "ko",
    "arabic": "ar",
    "hebrew": "he",
    "hindi": "hi",
    "slovak": "sk",
    "slovenian": "sl",
    "croatian": "hr",
    "serbian": "sr",
    "romanian": "ro",
    "bulgarian": "bg",
}
_CODES: Final = frozenset(_LANGUAGES.values())
_ENOUGH: Final = 2  # words of one field


def find_foreign_field(baton: Baton, card: Card) -> Iterator[Problem]:
    """Yield a problem if the task is about a field, or a language, that the skills on the card do not cover."""
    if not card.skills or baton.brief.needs_skills:
        return  # where the sender names the skills that are needed, these are compared
    said = f"{' '.join(card.skills)} {card.description} {card.agent}".lower()
    task = baton.task.lower()
    able, wanted = _fields_of(said, least=1), _fields_of(task, least=_ENOUGH)
    for together in _RELATED:
        if able & together:
            able = able | together
    foreign = wanted - able
    if able and foreign and not wanted & able and not _share_words(said, task):
        field = min(foreign)
        yield _gap(baton, card, f"is about {' and '.join(sorted(foreign))}", f"can do {field}")
    spoken = _languages(said)
    if spoken and "translat" in task and (unknown := sorted(_languages(task) - spoken)):
        names = [name for name, code in _LANGUAGES.items() if code in unknown]
        yield _gap(baton, card, f"needs {' and '.join(names)}", f"knows {names[0]}")


def _gap(baton: Baton, card: Card, what: str, able: str) -> Problem:
    skills = quote(", ".join(card.skills or ()), words=8)
    return Problem(
        error=ErrorType.CAPABILITY_GAP,
        check="capability-gap.outside-skills",
        about=f"The task {what}, and the skills of {quote(card.agent)} are {skills}.",
        blocking=False,
        doubtful=True,
        question=f"Should {quote(baton.task, words=4)} go to an agent that {able} instead of {quote(baton.to)}?",
        whom=Whom.ROUTER,
        settles=Settles.NO,
    )


def _words(text: str) -> set[str]:
    words = _WORD.findall(text)
    pairs = {f"{one}-{other}" for one, other in pairwise(words)}
    return {*words, *pairs}


def _fields_of(text: str, *, least: int) -> set[str]:
    words = _words(text)
    found = set()
    for name, stems in _FIELDS.items():
        hits = {stem for stem in stems.split() if any(word.startswith(stem) for word in words)}
        if len(hits) >= least:
            found.add(name)
    return found


def _share_words(said: str, task: str) -> bool:
    """Return whether card and task have a telling word in common: the first five letters of a word of six or more."""
    telling = {word[:5] for word in _WORD.findall(said) if len(word) > _SHORT}
    return any(word[:5] in telling for word in _WORD.findall(task) if len(word) > _SHORT)


_SHORT: Final = 5


def _languages(text: str) -> set[str]:
    words = set(_WORD.findall(text))
    parts = {part for word in words if "-" in word for part in word.split("-") if part in _CODES}
    return {code for name, code in _LANGUAGES.items() if name in words} | parts
