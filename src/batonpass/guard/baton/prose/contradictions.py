"""Orders against what was decided or rejected, and facts that deny each other or what the orders count on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.prose import Prose, a_doubt, words_of
from batonpass.guard.baton.prose.signs import WordSign
from batonpass.model.base.kinds import ErrorType
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Claim, Constraint, Decision, Exclusion, RejectedPath, WorkItem

# What is ruled out, if it has a name: a path, a branch, a product, a number.
_AGAINST: Final = re.compile(
    r"\b(?:not|never|no longer|instead of|rather than|don't|stop|without) (?:(?-i:[a-z]{1,15})\s){0,3}?"
    r"(?P<name>(?-i:[A-Z])\w[\w./:@#-]{0,60}|\w{1,30}[\d./:@#_-][\w./:@#-]{0,60})",
    re.IGNORECASE,
)
_HAS_FORM: Final = re.compile(r"[A-Z\d./:@#_-]")
_RULED_OUT: Final = ("not ", "never ", "no longer ", "instead of ", "rather than ", "don't ", "stop ", "without ")
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
_FAILING: Final = ("rejected", "declined", "disapproved", "refused", "not run", "requested changes", "did not ")
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
_NOT: Final = re.compile(r"\b(?:not|never|no longer)\b|n't\b", re.IGNORECASE)
_NAMING: Final = re.compile(r"[^\W_]{3,30}")
_LITTLE: Final = words_of("the and for with its our has have was were been are that this")


def find_contradictions(baton: Baton, prose: Prose, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield where orders and facts cannot both hold; `texts` has the words of the files that are carried."""
    if prose.told:
        if any(map(prose.lowered.__contains__, _RULED_OUT)):
            yield from _decided_against(baton, prose.orders)
        if "only" in prose.lowered:
            yield from _other_names(baton, prose.orders)
        if RejectedPath in baton.by_kind:
            yield from _rejected(baton)
        if Claim in baton.by_kind or WorkItem in baton.by_kind:
            yield from _gone(baton, prose)
            yield from _denied(baton)
    if (texts or _may_fail(prose)) and _SUCCEEDING.is_in(prose.words, prose.lowered_orders):
        yield from _failed(prose, texts)


def _decided_against(baton: Baton, orders: Sequence[str]) -> Iterator[Problem]:
    """Yield what the orders name, and a decision, an exclusion or a constraint rules out by the same name."""
    for ruling in _rulings(baton):
        if not any(map(ruling.lower().__contains__, _RULED_OUT)):
            continue
        for found in islice(_AGAINST.finditer(ruling), _MOST_NAMES):
            name = found["name"].rstrip(".:,-")
            if _HAS_FORM.search(name) is None:
                continue  # a common word at the end of a sentence: "never on the lines."
            if any(_is_ordered(name, text) for text in orders):
                yield _contradiction(
                    "signal-corruption.decided-against",
                    f"The task names {quote(name)}, and {quote(ruling, words=10)} rules it out.",
                    f"Does the task hold with {quote(name)}, or {quote(ruling, words=10)}?",
                )
                return


def _rulings(baton: Baton) -> Iterator[str]:
    for decision in baton.by_kind.get(Decision, ()):
        yield decision.what
    for given in chain(baton.by_kind.get(Exclusion, ()), baton.by_kind.get(Constraint, ())):
        if given.text:
            yield given.text


def _is_ordered(name: str, text: str) -> bool:
    place = re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])", text) if name in text else None
    return place is not None and _NEGATED.search(text, max(0, place.start() - 60), place.start()) is None


def _other_names(baton: Baton, orders: Sequence[str]) -> Iterator[Problem]:
    """Yield a name in the orders where only another of the same form may stand: eu-west-1 for eu-central-1."""
    names: list[str] | None = None
    for ruling in _rulings(baton):
        for found in islice(_ONLY.finditer(ruling), _MOST_NAMES) if "only" in ruling else ():
            only = (found["after"] or found["before"]).rstrip(".:,-")
            if _JOINTS.search(only) is None:
                continue  # a name of one part is like no other
            if names is None:
                names = [*dict.fromkeys(chain.from_iterable(map(_NAMED.findall, orders)))][:_MOST_NAMES]
            for name in names:
                if _alike(only, name) and name not in ruling:
                    yield _contradiction(
                        "signal-corruption.decided-against",
                        f"The task names {quote(name)}, and {quote(ruling, words=10)} allows only {quote(only)}.",
                        f"Is {quote(name)} right, or {quote(only)} as decided?",
                    )
                    return


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
            yield _contradiction(
                "signal-corruption.rejected-path",
                f"The task orders {quote(path.what, words=8)}, which was tried and rejected.",
                f"Should {quote(path.what, words=8)} be tried again, although it was rejected?",
            )
            return


def _gone(baton: Baton, prose: Prose) -> Iterator[Problem]:
    """Yield what the orders count on, and of which a claim or finished work says that it failed or is not there."""
    if any(map(_GONE.search, prose.orders)):
        return  # whoever gave the task knows
    words = {word for text in prose.orders for word in _NAMING.findall(text.lower())}
    for text in _facts(baton):
        if (found := _GONE.search(text)) is None:
            continue
        begins = max(text.rfind(mark, 0, found.start()) for mark in (". ", "; ", "\n")) + 1
        subject = {*_NAMING.findall(text[begins : found.start()].lower())} - _LITTLE
        if len(subject) >= _TWO_WORDS and subject <= words:
            yield _contradiction(
                "signal-corruption.not-there",
                f"The task counts on what {quote(text, words=10)} denies.",
                f"Does the task hold, although {quote(text, words=12)}?",
            )
            return


def _denied(baton: Baton) -> Iterator[Problem]:
    """Yield two facts in the same words, one of them with a "not"."""
    facts: dict[tuple[str, ...], str] = {}
    for text in _facts(baton):
        words = tuple(_NAMING.findall(_NOT.sub(" ", text.lower())))
        other = facts.setdefault(words, text)
        if (_NOT.search(other) is None) != (_NOT.search(text) is None):
            yield _contradiction(
                "signal-corruption.denied",
                f"{quote(other, words=10)} and {quote(text, words=10)} cannot both be so.",
                f"Which is right: {quote(other, words=9)} or {quote(text, words=9)}?",
            )
            return


def _facts(baton: Baton) -> Iterator[str]:
    return (fact.what for fact in chain(baton.by_kind.get(Claim, ()), baton.by_kind.get(WorkItem, ())))


def _may_fail(prose: Prose) -> bool:
    """Return False if no item says that something failed."""
    figures = prose.all_figures
    return (
        figures is None
        or any(map(prose.lowered_told.__contains__, _FAILING))
        or _FAILED_NUMBER.search(figures) is not None
        or ("failed" in prose.lowered_told and any("FAILED" in text for text in prose.told))
    )


def _failed(prose: Prose, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a success that the orders take for given, and of which a file or an item says otherwise."""
    success = next((found for found in map(_SUCCESS.search, prose.orders) if found), None)
    failure = next((found for found in map(_FAILURE.search, chain(prose.told, texts.values())) if found), None)
    if success is not None and failure is not None:
        said, stands = quote(success.group(), words=8), quote(failure.group())
        yield _contradiction(
            "signal-corruption.failures",
            f"The task says {said}, and something that is carried says {stands}.",
            f"Is it so that {said}, although {stands} stands there?",
        )


def _contradiction(check: str, about: str, question: str) -> Problem:
    return a_doubt(ErrorType.SIGNAL_CORRUPTION, check, about, question)
