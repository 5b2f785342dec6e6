"""Whether a task lies in a field of work that the receiver's card says nothing about.

A card that lists skills tells which work its agent can do. The skills and the task are compared by fields of work, not
by words: "summarization" covers "sum up the minutes". Nothing is said of a task whose field is unknown, or of a card
whose skills are.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from batonpass.guard.baton.problem import Problem, Settles, Whom, problem_of, quote
from batonpass.guard.baton.prose.prose import words_of
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.card import Card

# Beginnings of words that name a field of work. A word belongs to one field, or it is not here.
_FIELDS: Final[Mapping[str, str]] = {
    "translation": "translat interpret subtitl locali i18n",
    "writing": "copywrit headline proofread edit slogan essay article story poem newsletter caption press draft "
    "speech "
    "letter report document manual style grammar spelling text blog summar abstract key-point minutes poet poem "
    "verse rhyme",
    "software": "python pytest java javascript typescript react rust cargo golang kotlin swift swiftui ios android "
    "app-store xcode gradle html css frontend backend refactor compil packag unit-test function class codebase grpc "
    "api openapi rest sdk c++ haskell ruby rails php elixir flag cli debug",
    "data": "sql dbt database postgres mysql warehouse etl pipeline dataset csv spreadsheet pivot formula chart "
    "statistic regression analys index migrat schema query",
    "machine-learning": "pytorch tensorflow training fine-tun classifier hyperparameter embedding evaluat",
    "operations": "kubernetes helm terraform aws deploy cluster server backup bucket firewall namespace docker "
    "container ansible "
    "storage access-key memory-quota infrastructure network",
    "images": "crop retouch photo picture image colour-correction logo illustrat",
    "audio": "transcri podcast audio mastering noise interview hum lufs speaker",
    "law": "legal contract clause non-compete lawsuit court statut liability notar",
    "tax": "vat tax bookkeep accounting ledger payroll invoice",
    "calendar": "schedul calendar appointment remind meeting slot room reschedul invite",
    "mail": "e-mail email mail inbox send",
    "research": "web-search search citation cite literature sources study studies paper",
    "medicine": "diagnos patient dosage prescription clinic",
    "telephone": "phone telephon dial voicemail mobile-phone hotline on-his-mobile on-her-mobile by-phone the-phone",
}
# The first word of a task says more than a word in it: one of these is enough.
_VERBS: Final[Mapping[str, str]] = {
    verb: field
    for field, verbs in {
        "translation": "translate localise localize subtitle",
        "writing": "write draft compose proofread summarise summarize paraphrase",
        "software": "refactor debug compile implement rebase",
        "operations": "deploy redeploy provision reboot restart restore",
        "images": "crop retouch illustrate photograph",
        "audio": "transcribe record",
        "medicine": "diagnose prescribe",
        "telephone": "phone telephone dial",
    }.items()
    for verb in verbs.split()
}
# Fields that overlap in practice: whoever has one is not asked about the other.
_RELATED: Final = (
    {"writing", "translation", "research"},
    {"software", "data"},
    {"software", "operations"},
    {"software", "machine-learning"},
    {"data", "machine-learning"},
    {"calendar", "mail"},
)
_DOCUMENTED: Final = frozenset({"software", "writing", "translation"})  # software has documents and texts
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
# Work in a language: "answer the complaint in Portuguese". Names and quotations may be in any language.
_SPOKEN: Final = f"(?:{'|'.join(_LANGUAGES)})"
_IN_LANGUAGE: Final = re.compile(
    r"\b(?:translat|answer|repl|respond|writ|draft|speak|summar|explain|call|phone)[a-z]{0,6}\b[^.;\n]{0,80}?"
    rf"\b(?:into|in|to|from) (?P<languages>{_SPOKEN}\b(?:(?:,| and| or| to| into|, and) {_SPOKEN}\b){{0,6}})"
)
_READ_ONLY: Final = re.compile(
    r"\bread-only\b|\bonly reads?\b|\breads? only\b|\b(?:no|without) write access\b|\b(?:cannot|can't|never"
    r"|must not|may not) "
    r"(?:write|change|modify|edit)"
)
_CHANGES: Final = re.compile(
    r"(?:^|[.;:!?]\s|\band |\bthen )(?:please )?(delete|remove|write to|update|overwrite|rename|restart|deploy"
    r"|install|drop"
    r"|truncate|merge|push|publish|insert|edit|modify|migrate|create|fix|patch|commit)\b"
)


def find_foreign_field(baton: Baton, card: Card) -> Iterator[Problem]:
    """Yield a problem if a task is about a field or a language that a card does not cover, or rules out."""
    if baton.brief.needs_skills:
        return  # where the sender names the skills that are needed, these are compared
    said = f"{' '.join(card.skills or ())} {card.description} {card.agent}".lower()
    task = baton.task.lower()
    yield from _ruled_out(baton, card, said, task)
    if card.skills:
        yield from _not_covered(baton, card, said, task)


def _ruled_out(baton: Baton, card: Card, said: str, task: str) -> Iterator[Problem]:
    if _READ_ONLY.search(said) and (change := _CHANGES.search(task)):
        yield _gap(baton, card, f"has to {change[1]} something", "may write")
    if (barred := _barred(said, task)) is not None:
        yield _gap(baton, card, f"is about {barred}, which the card rules out", f"has {barred}")


def _not_covered(baton: Baton, card: Card, said: str, task: str) -> Iterator[Problem]:
    able, wanted = _fields_of(said, least=1), _fields_of(task, least=_ENOUGH)
    for together in _RELATED:
        if able & together:
            able = able | together
    if (begins := _WORD.search(task.removeprefix("please "))) and (field := _VERBS.get(begins.group())):
        wanted.add(field)
    elif able & _DOCUMENTED:
        able = able | _DOCUMENTED
    foreign = wanted - able
    if able and foreign and not wanted & able and not _share_words(said, task):
        field = min(foreign)
        yield _gap(baton, card, f"is about {' and '.join(sorted(foreign))}", f"can do {field}")
    spoken = _languages(said)
    if spoken and (unknown := _spoken_in(task) - spoken):
        names = [name for name, code in _LANGUAGES.items() if code in unknown]
        yield _gap(baton, card, f"needs {' and '.join(names)}", f"knows {names[0]}")


# What a card says that its agent cannot do or does not have: "cannot place orders", "has no internet access".
_BARRED: Final = re.compile(
    r"\b(?:has no|have no|no|without|cannot|can't|never|does not|do not|not allowed to|may not"
    r"|must not) ((?:[a-z-]{2,20} ?){1,4})"
)
_SAME_THING: Final[Mapping[str, str]] = {
    word: names.split()[0]
    for names in (
        "internet web online website browse",
        "order buy purchase",
        "pay payment",
        "send mail e-mail email",
        "call phone telephone",
    )
    for word in names.split()
}


def _barred(said: str, task: str) -> str | None:
    """Return the fields that the card rules out explicitly and the task asks for."""
    if not (found := _BARRED.search(said)):
        return None
    asked = _NOT_ASKED.sub(" ", task)
    # No part of a task may need a thing that the agent lacks, or order work that it does not do.
    words = (
        _WORD.findall(asked)
        if found.group().startswith(("has no", "have no", "no ", "without"))
        else _ORDERED.findall(asked)
    )
    wanted = {_SAME_THING.get(stem, stem) for stem in map(_stem, words)}
    ruled_out: list[str] = _WORD.findall(found[1])
    for word in ruled_out:
        stem = _stem(word)
        if len(stem) > _SHORT - 2 and stem not in _EMPTY and _SAME_THING.get(stem, stem) in wanted:
            return word
    return None


_ORDERED: Final = re.compile(r"(?:^|[.;:!?]\s|\band |\bthen |\bplease )([a-z][a-z-]{1,20})")
_NOT_ASKED: Final = re.compile(r"\b(?:not|never|nobody|no|without|don't)\b[^.;\n]{0,80}")
_EMPTY: Final = words_of("access place make have other with more than files file work task tasks")


def _stem(word: str) -> str:
    return word.removesuffix("ing").removesuffix("s").removesuffix("e") if len(word) > _SHORT - 1 else word


def _spoken_in(task: str) -> set[str]:
    return {code for languages in _IN_LANGUAGE.findall(task) for code in _languages(languages)}


def _gap(baton: Baton, card: Card, what: str, able: str) -> Problem:
    skills = quote(", ".join(card.skills or (card.description,)), words=8)
    return problem_of(
        "capability-gap.outside-skills",
        f"The task {what}, and the skills of {quote(card.agent)} are {skills}.",
        f"Should {quote(baton.task, words=4)} go to an agent that {able} instead of {quote(baton.to)}?",
        blocking=False,
        doubtful=True,
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
    telling = {word[:5] for word in _WORD.findall(said) if len(word) > _SHORT} - _EVERYWHERE
    return any(word[:5] in telling for word in _WORD.findall(task) if len(word) > _SHORT)


_SHORT: Final = 5
_EVERYWHERE: Final = words_of("produ custo servi syste compa inter manag")  # products, customers, services


def _languages(text: str) -> set[str]:
    words = set(_WORD.findall(text))
    parts = {part for word in words if "-" in word for part in word.split("-") if part in _CODES}
    return {code for name, code in _LANGUAGES.items() if name in words} | parts
