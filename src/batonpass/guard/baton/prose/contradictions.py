"""Orders that contradict decisions or rejected paths, and facts that contradict each other or the orders."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import Final

from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.prose import Prose, a_doubt, words_of
from batonpass.guard.baton.prose.signs import FAILS, GONE, ONLY, RULES_OUT, SUCCEEDS, TextForms, WordSign
from batonpass.guard.baton.text_memory import remembered
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Claim, Constraint, Decision, Exclusion, RejectedPath, WorkItem

# What is ruled out, if it has a name: a path, a branch, a product, a number.
_AGAINST: Final = re.compile(
    r"\b(?:not|never|no longer|instead of|rather than|don't|stop|without) (?:(?-i:[a-z]{1,15})\s){0,3}?"
    r"(?P<name>(?-i:[A-Z])\w[\w./:@#-]{0,60}|\w{1,30}[\d./:@#_-][\w./:@#-]{0,60})",
    re.IGNORECASE,
)
_HAS_FORM: Final = re.compile(r"[A-Z\d./:@#_-]")
_RULING_OUT: Final = frozenset({b"not", b"never", b"longer", b"instead", b"rather", b"don", b"stop", b"without"})
_NEGATED: Final = re.compile(
    r"\b(?:not|never|no|don't|instead of|rather than|without|except|against|leave|remove|drop|away|stop|replace"
    r"|migrate|was"
    r"|were)\b[^.;\n]{0,40}$",
    re.IGNORECASE,
)
# The only name that may stand there, and other names of its form.
_ONLY: Final = re.compile(
    r"\bonly (?:in |on |to |from |with |at |for |via |by )?(?P<after>\w[\w./:-]{2,60})"
    r"|(?P<before>\w[\w./:-]{2,60}) only\b"
)
_NAMED: Final = re.compile(r"(?<![\w./:-])[A-Za-z]\w{0,30}(?:[./:_-]\w{1,30}){1,6}(?![\w/-])")
_JOINTS: Final = re.compile(r"[./:_-]")
_TWO_WORDS: Final = 2
_MOST_NAMES: Final = 100  # compared with each other

_SUCCESS: Final = re.compile(
    r"\b(?:all|the) (?:[a-z]{1,20} ){0,2}(?:tests?|checks?|suite|build|pipeline|run|jobs?)(?: of [\w.-]{1,30})? "
    r"(?:(?:is|are|was|were|has|have) )?(?:all )?(?:green|passed|passing|pass|passes|succeeded|clean)\b"
    r"|\b(?:no|without|zero) (?:errors|failures|failed tests)\b|\b(?:ci|everything) is green\b"
    r"|\b(?:all|both|everybody|everyone)(?: [a-z]{1,20}){0,3} (?:approved|agreed|accepted|confirmed)\b",
    re.IGNORECASE,
)
_SUCCEEDING: Final = WordSign(
    "green|passed|passing|pass|passes|succeeded|clean & all|the"
    "& test|tests|check|checks|suite|build|pipeline|run|job|jobs",
    "errors|failures|failed & no|without|zero",
    "green & ci|everything",
    "approved|agreed|accepted|confirmed & all|both|everybody|everyone",
)
_FAILURE: Final = re.compile(
    r"(?<![\d.,])[1-9]\d{0,5} (?:tests? |checks? |jobs? )?(?:failed|failures?|errors?)\b|\bFAILED\b"
    r"|\b(?:tests?|checks?) (?:were|was) not run\b"
    r"|\b(?:requested changes|rejected|declined|did not (?:approve|agree|accept|confirm)|disapproved|refused)\b"
)
_FAILING: Final = WordSign(
    "rejected|declined|disapproved|refused",
    "'not run'|'did not ' & not",
    "'requested changes' & requested",
)
_FAILED: Final = frozenset({b"failed", b"failure", b"failures", b"error", b"errors"})
_FAILED_NUMBER: Final = re.compile(rb"0 (?:tests? |checks? |jobs? )?(?:failed|failures?|errors?)")
# What an item says is not there any more, or never was.
_GONE: Final = re.compile(
    r"\b(?:out of stock|sold out|(?:not|no longer|un)\s?available|cancel?led|aborted|failed|closed|withdrawn"
    r"|revoked|expired"
    r"|deleted|broken|do(?:es)? not exist|did not work|ill|on holiday|on leave|switched off|shut down"
    r"|discontinued|missing"
    r"|lost)\b",
    re.IGNORECASE,
)
_LEAVING: Final = WordSign(
    "stock|sold|available|unavailable|notavailable|longeravailable|canceled|cancelled|aborted|failed|closed|withdrawn"
    "|revoked|expired|deleted|broken|exist|ill|holiday|leave|switched|shut|discontinued|missing|lost",
    "did & work",
)
_NOT: Final = re.compile(r"\b(?:not|never|no longer)\b|n't\b", re.IGNORECASE)
_NAMING: Final = re.compile(r"[^\W_]{3,30}")
_LITTLE: Final = words_of("the and for with its our has have was were been are that this")


_WHAT: Final = attrgetter("what")
_TEXT: Final = attrgetter("text")
SIGN_WORDS: Final = frozenset({b"only"}).union(_RULING_OUT, _FAILED, _FAILING.words, _LEAVING.words, _SUCCEEDING.words)


def find_signs(forms: TextForms) -> int:
    """Return the signs of the checks below that a text has."""
    signs = SUCCEEDS if _SUCCEEDING.is_in(forms) else 0
    if _LEAVING.is_in(forms):
        signs |= GONE
    return signs


def find_told_signs(forms: TextForms) -> int:
    """Return the signs that only the texts of items need."""
    signs = 0 if forms.words.isdisjoint(_RULING_OUT) else RULES_OUT
    if b"only" in forms.words:
        signs |= ONLY
    if _FAILING.is_in(forms) or (not forms.words.isdisjoint(_FAILED) and _says_failed(forms)):
        signs |= FAILS
    return signs


def _says_failed(forms: TextForms) -> bool:
    """Return False if a text surely has no number of failures, and no capitals that say so."""
    return "FAILED" in forms.text or forms.figures is None or _FAILED_NUMBER.search(forms.figures) is not None


def find_contradictions(baton: Baton, prose: Prose, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield where orders and facts cannot both hold; `texts` has the words of the files that are carried."""
    told = prose.told_signs
    if told & (RULES_OUT | ONLY):
        rulings = _rulings(baton)
        yield from _decided_against(rulings, prose)
        yield from _other_names(rulings, prose)
    if RejectedPath in baton.by_kind:
        yield from _rejected(baton)
    if Claim in baton.by_kind or WorkItem in baton.by_kind:
        facts = [*map(_WHAT, (*baton.by_kind.get(Claim, ()), *baton.by_kind.get(WorkItem, ())))]
        if told & GONE:
            yield from _gone(facts, prose)
        yield from _denied(facts)
    if prose.order_signs & SUCCEEDS and (texts or told & FAILS):
        yield from _failed(prose, texts)


def _decided_against(rulings: Sequence[str], prose: Prose) -> Iterator[Problem]:
    """Yield things in the orders that a decision, an exclusion or a constraint rules out by the same name."""
    for ruling in rulings:
        for name in _names_against(ruling) if prose.signs[ruling] & RULES_OUT else ():
            if name in prose.ordered and any(_is_ordered(name, text) for text in prose.orders):
                yield a_doubt(
                    "signal-corruption.decided-against",
                    f"The task names {quote(name)}, and {quote(ruling, words=10)} rules it out.",
                    f"Does the task hold with {quote(name)}, or {quote(ruling, words=10)}?",
                )
                return


@remembered
def _names_against(ruling: str) -> tuple[str, ...]:
    """Return the names that a ruling rules out."""
    names = [found["name"].rstrip(".:,-") for found in islice(_AGAINST.finditer(ruling), _MOST_NAMES)]
    # Not a common word at the end of a sentence: "never on the lines."
    return tuple(name for name in names if _HAS_FORM.search(name))


def _rulings(baton: Baton) -> list[str]:
    """Return the decisions, exclusions and constraints, in words."""
    kinds = baton.by_kind
    rulings = [*map(_WHAT, kinds.get(Decision, ()))]
    rulings += filter(None, map(_TEXT, (*kinds.get(Exclusion, ()), *kinds.get(Constraint, ()))))
    return rulings


def _is_ordered(name: str, text: str) -> bool:
    place = re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", text) if name in text else None
    return place is not None and _NEGATED.search(text, max(0, place.start() - 60), place.start()) is None


def _other_names(rulings: Sequence[str], prose: Prose) -> Iterator[Problem]:
    """Yield a name in the orders where only another of the same form may stand: eu-west-1 for eu-central-1."""
    names: list[str] | None = None
    for ruling in rulings:
        for only in _only_names(ruling) if prose.signs[ruling] & ONLY else ():
            if names is None:
                names = [*dict.fromkeys(chain.from_iterable(map(_NAMED.findall, prose.orders)))][:_MOST_NAMES]
            for name in names:
                if _alike(only, name) and name not in ruling:
                    yield a_doubt(
                        "signal-corruption.decided-against",
                        f"The task names {quote(name)}, and {quote(ruling, words=10)} allows only {quote(only)}.",
                        f"Is {quote(name)} right, or {quote(only)} as decided?",
                    )
                    return


@remembered
def _only_names(ruling: str) -> tuple[str, ...]:
    """Return the names that a ruling allows alone, if they have several parts: others are like no other name."""
    names = [
        (found["after"] or found["before"]).rstrip(".:,-") for found in islice(_ONLY.finditer(ruling), _MOST_NAMES)
    ]
    return tuple(name for name in names if _JOINTS.search(name))


def _alike(one: str, other: str) -> bool:
    """Return whether two names have as many parts, and one of these in common."""
    parts, others = _JOINTS.split(one.lower()), _JOINTS.split(other.lower())
    return len(parts) == len(others) > 1 and any(map(str.__eq__, parts, others))


def _rejected(baton: Baton) -> Iterator[Problem]:
    """Yield a path that was rejected and that the task orders in the same words."""
    task = " ".join(baton.task.casefold().split())
    for path in baton.by_kind[RejectedPath]:
        words = " ".join(path.what.casefold().split()).rstrip(".")
        ordered = words in task and _NEGATED.search(task[: task.index(words)]) is None
        if ordered and len(words.split()) >= _TWO_WORDS:
            yield a_doubt(
                "signal-corruption.rejected-path",
                f"The task orders {quote(path.what, words=8)}, which was tried and rejected.",
                f"Should {quote(path.what, words=8)} be tried again, although it was rejected?",
            )
            return


def _gone(facts: Sequence[str], prose: Prose) -> Iterator[Problem]:
    """Yield things that the orders rely on, although a claim or finished work says that they failed or are missing."""
    if prose.order_signs & GONE and any(map(_GONE.search, prose.orders)):
        return  # whoever gave the task knows
    words = {*_NAMING.findall(prose.ordered.lower())}
    for text in facts:
        subject = _gone_subject(text) if prose.signs[text] & GONE else frozenset()
        if len(subject) >= _TWO_WORDS and subject <= words:
            yield a_doubt(
                "signal-corruption.not-there",
                f"The task counts on what {quote(text, words=10)} denies.",
                f"Does the task hold, although {quote(text, words=12)}?",
            )
            return


@remembered
def _gone_subject(fact: str) -> frozenset[str]:
    """Return the words for the thing that a fact says is gone; none if it does not say so."""
    if (found := _GONE.search(fact)) is None:
        return frozenset()
    begins = max(fact.rfind(mark, 0, found.start()) for mark in (". ", "; ", "\n")) + 1
    return frozenset(_NAMING.findall(fact[begins : found.start()].lower())) - _LITTLE


def _denied(facts: Sequence[str]) -> Iterator[Problem]:
    """Yield two facts in the same words, one of them with a "not"."""
    first: dict[tuple[str, ...], tuple[str, bool]] = {}
    for text in facts:
        words, denies = _affirmed(text)
        other, other_denies = first.setdefault(words, (text, denies))
        if other_denies != denies:
            yield a_doubt(
                "signal-corruption.denied",
                f"{quote(other, words=10)} and {quote(text, words=10)} cannot both be so.",
                f"Which is right: {quote(other, words=9)} or {quote(text, words=9)}?",
            )
            return


@remembered
def _affirmed(fact: str) -> tuple[tuple[str, ...], bool]:
    """Return the words of a fact without its "not", and whether it has one."""
    return tuple(_NAMING.findall(_NOT.sub(" ", fact.lower()))), _NOT.search(fact) is not None


def _failed(prose: Prose, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a success that the orders take for given, and of which a file or an item says otherwise."""
    success = next((found for found in map(_SUCCESS.search, prose.orders) if found), None)
    failure = next((found for found in map(_FAILURE.search, chain(prose.told, texts.values())) if found), None)
    if success is not None and failure is not None:
        said, stands = quote(success.group(), words=8), quote(failure.group())
        yield a_doubt(
            "signal-corruption.failures",
            f"The task says {said}, and something that is carried says {stands}.",
            f"Is it so that {said}, although {stands} stands there?",
        )
