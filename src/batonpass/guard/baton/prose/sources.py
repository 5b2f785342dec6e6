"""Sources that the orders rely on and the receiver lacks: one that nobody carries, or one of several.

The writer of a task knows which plan, which draft and which Anna is meant. The receiver does not.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from batonpass.guard.baton.problem import Problem, quote
from batonpass.guard.baton.prose.prose import Prose, a_doubt, words_of
from batonpass.guard.baton.prose.signs import (
    FULL_NAMES,
    GOES_BY,
    LOCATED,
    OTHERS,
    USUAL,
    TextForms,
    WordSign,
    fold,
    may_name_people,
)
from batonpass.guard.baton.text_memory import remembered
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Artifact, Claim, Constraint, Decision

# Things that consist of information: without them a receiver has nothing to go by.
_KINDS: Final = (
    "agenda|brief|briefing|brochure|checklist|comments|contract|data|dataset|drafts?|drawings?|e-?mail|export|extract"
    "|feedback|figures|floor plan|form|guide|guidelines|handbook|instructions|interview|inventory|letter|list"
    "|log|manual"
    "|memo|minutes|notes|numbers|outline|outlines|paper|photos?|pictures?|plan|plans|policy|presentation|procedure"
    "|proposal|protocol|questionnaire|recording|report|requirements|sample|samples|schedule|screenshots?|script"
    "|sketch"
    "|sketches|slides|spec|specification|spreadsheet|statement|style guide|survey|table|template|transcript"
    "|wish ?list"
)
# "as shown in the plan", "in line with our brand guide": the work follows it.
_MATERIAL: Final = (
    "article|attachment|document|drawing|e-?mail|essay|extract|interview|letter|message|minutes|notes|paragraph"
    "|photos?"
    "|pictures?|presentation|quotes?|recording|report|screenshots?|sentence|sketch|slides|speech|spreadsheet"
    "|survey|text"
    "|transcript|video"
)
# "describe the screenshot": the object of the work.
_WORKED_ON: Final = re.compile(
    r"(?:^|[.!?]\s|\band |\bthen |\bplease )(?:describe|analy[sz]e|edit|shorten|rewrite|cluster|annotate|label"
    r"|caption|classify|grade"
    r"|convert|proofread|transcribe|translate|summari[sz]e|paraphrase|correct|cut|retouch|answer|anonymi[sz]e)"
    rf" (?P<phrase>(?:the|my|this|these|his|her|their) (?:[\w'’-]{{1,25}} )?(?P<kind>{_MATERIAL}))\b"
    r"(?P<after>[^.;\n]{0,60})",
    re.IGNORECASE,
)
_SOURCE: Final = re.compile(
    r"\b(?:as (?:[a-z]{2,15} )?(?:in|on|by)|in line with|according to|based on|following|per|using|use|against"
    r"|from|take"
    r"|follow|apply|fill in|fill out|continue|finish|summari[sz]e|translate|transcribe|proofread)"
    r" (?:[a-z]{2,15} (?:from|of|with) )?(?P<phrase>(?:the|our|my|your|his|her|their|these|those)"
    rf" (?:[\w'’-]{{1,25}} ){{0,2}}(?P<kind>{_KINDS}))\b"
    r"(?P<after>[^.;\n]{0,60})",
    re.IGNORECASE,
)
# The last words of these: without one, and what points at it, neither pattern finds anything.
_GOING_BY: Final = WordSign(
    "agenda|brief|briefing|brochure|checklist|comments|contract|data|dataset|draft|drafts|drawing|drawings|mail|email"
    "|export|extract|feedback|figures|plan|form|guide|guidelines|handbook|instructions|interview|inventory|letter|list"
    "|log|manual|memo|minutes|notes|numbers|outline|outlines|paper|photo|photos|picture|pictures|plans|policy"
    "|presentation|procedure|proposal|protocol|questionnaire|recording|report|requirements|sample|samples|schedule"
    "|screenshot|screenshots|script|sketch|sketches|slides|spec|specification|spreadsheet|statement|survey|table"
    "|template|transcript|wishlist|article|attachment|document|essay|message|paragraph|quote|quotes|sentence|speech"
    "|text|video & the|our|my|your|his|her|their|these|those|this"
)
# Where it is: a place, a name, a number, a time.
_WHERE: Final = re.compile(
    r"^ (?:of|in|at|on|under|from|by|for|between|about|that|which|below|above)\b|^ ?[(\"'`:#]|^ \w*\d"
)
_LOCATED: Final = re.compile(
    r"[/\\`#@]|[A-Za-z_)]\.[A-Za-z_]|\w_\w|\b[A-Z]{2,}-?\d|https?:|\brepositor|\brepo\b|\bwiki\b|\bdrive\b|\bfolder\b"
)

# "the function Jonas complained about": only those who were there know which.
_BY_EVENT: Final = re.compile(
    r"\bthe (?P<what>(?:[a-z-]{2,25} ){0,2}[a-z-]{2,25}(?<! of)(?<! in)(?<! on)(?<! to)) (?:that |which |whom? )?"
    r"(?:I|we|you|he|she|they|(?-i:[A-Z][a-z]{2,20})|(?:the|our|my) [a-z]{3,20}|(?<=that )[a-z]{4,20}"
    r"|(?<=which )[a-z]{4,20}) (?:have |has |had |just |already |once )?"
    r"(?P<verb>[a-z]{2,20}ed|sent|gave|given|wrote|written|made|said|saw|seen|got|took|taken|told|showed|shown"
    r"|chose|drew|brought"
    r"|found|built|spoke)(?: (?:about|on|to|in|with|you|us|me|up|over))?(?=\s{0,2}(?:[.,;!?]|$)| (?:and|or|so"
    r"|but|before|for|to|in the|last|yesterday|on|at)\b)"
    r"|\bthe (?:bug|call|meeting|e-?mail|mail|issue|incident|talk|file|change|discussion|idea|message|question"
    r"|request|error|problem) "
    r"(?:from|of) (?:yesterday|last (?:week|month|night|time)|this morning|the other day|earlier|before|today"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|\bthe (?:agreed|chosen|selected|discussed|promised|said|preferred) [a-z]{3,20}\b(?! (?:of|is|are|in|on"
    r"|by|with|at)\b)"
    r"|\bwhat (?:the|our|my) (?:previous|last|earlier|other|first) [a-z]{3,20} (?:has |have "
    r"|had )?[a-z]{3,20}(?:ed|nd|id|ote)\b"
    r"|\b(?:step|point|option|variant|question) (?:\d{1,2}|[A-D])\b(?! of )",
    re.IGNORECASE,
)
_OTHERS: Final = re.compile(r"\bthe other (?:two |three |four |few |\d )?(?P<what>[a-z]{3,20})\b", re.IGNORECASE)
_USUAL: Final = re.compile(
    r"\bthe (?:usual|customary)(?: (?:one|ones|way|text|form))?(?=\s{0,2}(?:[.,;!?]|$)| (?:for|to|as|and|at)\b)"
)
_AS_USUAL: Final = WordSign("usual|customary & the")
SIGN_WORDS: Final = frozenset({b"other"}).union(_GOING_BY.words, _AS_USUAL.words)
_NAME: Final = re.compile(r"(?<=[\s(\"'])[A-Z][a-z]{2}")
_FULL_NAME: Final = re.compile(r"\b([A-Z][a-z]{2,20}) ([A-Z][a-z]{2,20})\b")
_NO_FIRST_NAMES: Final = words_of(
    "The This That Mr Ms Mrs Dr Herr Frau Hotel New Please Ask Tell On In At For With From Monday Tuesday Wednesday",
    "Thursday Friday Saturday Sunday January February March April May June July August September October November",
    "December Room Customer Agent",
)
_NUMBERED: Final = re.compile(
    r"\b(?P<what>[a-z]{3,20}) (?:no\.? |number |#)?(?P<id>#?[A-Z]{0,4}-?\d[\w/-]{0,20})(?![\w%.:,/-])", re.IGNORECASE
)
_MOST_CELLS: Final = 20_000


def find_absent_sources(baton: Baton, prose: Prose, texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield sources that the orders rely on and nobody carries, and places where one of several is meant."""
    kinds, signs = baton.by_kind, prose.order_signs
    if Artifact in kinds:
        yield from _one_of_several_files(baton, prose.orders)
        yield from _not_in_table(prose.orders, texts)
    elif not signs & LOCATED:
        if kinds.keys().isdisjoint(_SAYING) and _ENUMERATED.search(prose.ordered) is None:
            yield from _unnamed(_BY_EVENT, prose.orders)
        if signs & GOES_BY:
            yield from _absent(prose)
    if signs & OTHERS:
        yield from _others(prose)
    if signs & USUAL:
        yield from _unnamed(_USUAL, prose.orders)
    if prose.told_signs & FULL_NAMES and _NAME.search(prose.ordered, 1) is not None:
        yield from _one_of_several_people(prose)


def find_signs(forms: TextForms) -> int:
    """Return the signs of the checks of sources that a text has, and whether it says where something is."""
    signs = LOCATED if _LOCATED.search(forms.text) else 0
    if _GOING_BY.is_in(forms):
        signs |= GOES_BY
    if b"other" in forms.words and "the other " in forms.lowered:
        signs |= OTHERS
    if _AS_USUAL.is_in(forms):
        signs |= USUAL
    return signs


def find_told_signs(forms: TextForms) -> int:
    """Return the signs that only the texts of items need."""
    return FULL_NAMES if may_name_people(forms.text) else 0


_ENUMERATED: Final = re.compile(r"(?:^|\s)(?:[-*•]|\d[.)]|\(\d\)|[A-D][.):]) \S|\bstep 1\b", re.IGNORECASE)
_SAYING: Final = frozenset({Decision, Claim, Constraint})


def _absent(prose: Prose) -> Iterator[Problem]:
    for text in prose.orders:
        if not prose.signs[text] & GOES_BY:
            continue
        for found in chain(_SOURCE.finditer(text), _WORKED_ON.finditer(text)):
            kind = found["kind"].lower()
            # A question about it does not say where it is.
            told_elsewhere = (
                any(kind in told.lower() for told in prose.told if "?" not in told)
                or len(re.findall(rf"\b{re.escape(kind)}\b", text.lower())) > 1
            )
            if told_elsewhere or _WHERE.search(found["after"]):
                continue
            shown = quote(found["phrase"], words=6)
            yield a_doubt(
                "data-gap.source-missing",
                f"The task goes by {shown}, and nothing is attached.",
                f"Where is {shown}, or can you attach it?",
            )
            return


def _unnamed(pattern: "re.Pattern[str]", orders: Sequence[str]) -> Iterator[Problem]:
    for text in orders:
        if (found := pattern.search(text)) is not None:
            yield _which(found.group())
            return


def _others(prose: Prose) -> Iterator[Problem]:
    """Yield others of a kind of which nothing was said before."""
    others = {found["what"].lower().rstrip("s"): found for text in prose.orders for found in _OTHERS.finditer(text)}
    everything = fold("\n".join((*prose.orders, *prose.told)))
    for stem, found in others.items():
        if stem not in _ONES and everything.count(stem) == 1:
            yield _which(found.group())
            return


# Parts that everything has, and words after "the other" that are no noun.
_ONES: Final = words_of(
    "one side hand day way thing end half column row line field file cell entry place part had has is was are were",
    "before after",
)


def _one_of_several_files(baton: Baton, orders: Sequence[str]) -> Iterator[Problem]:
    """Yield a file that the orders name by its kind alone, where several of that kind are carried."""
    ordered = "\n".join(orders)
    names = [artifact.name for artifact in baton.attached]
    if len(names) < 2 or any(name in ordered or name.rpartition(".")[0] in ordered for name in names):  # noqa: PLR2004
        return
    by_kind: dict[str, list[str]] = {}
    for name in names:
        for word in dict.fromkeys(_LETTERS.findall(name.rpartition(".")[0].lower())):
            by_kind.setdefault(word, []).append(name)
    lowered = ordered.lower()
    for kind, alike in by_kind.items():
        if len(alike) > 1 and f"{kind}s" not in lowered and re.search(rf"\b(?:the|this|that) {kind}\b", lowered):
            yield a_doubt(
                "referential-drift.which-one",
                f"The task says only {quote(kind)}, and {len(alike)} files are carried that may be it.",
                f"Which {kind} is meant: {quote(alike[0])} or {quote(alike[1])}?",
            )
            return


_LETTERS: Final = re.compile(r"[a-z]{3,30}")


def _one_of_several_people(prose: Prose) -> Iterator[Problem]:
    """Yield a first name alone, where the items know several people of that name."""
    people: dict[str, dict[str, None]] = {}
    for text in prose.told:
        for first, last in _full_names(text) if prose.signs[text] & FULL_NAMES else ():
            people.setdefault(first, {})[f"{first} {last}"] = None
    for first, names in people.items():
        said = [text for text in prose.orders if first in text]
        if len(names) > 1 and said and not any(name in text for name in names for text in said):
            one, other, *_ = names
            yield a_doubt(
                "referential-drift.which-one",
                f"The task says only {quote(first)}, and there are {quote(one)} and {quote(other)}.",
                f"Who is meant: {quote(one)} or {quote(other)}?",
            )
            return


@remembered
def _full_names(text: str) -> list[tuple[str, str]]:
    """Return the first and last names of the people that a text names."""
    return [(first, last) for first, last in _FULL_NAME.findall(text) if first not in _NO_FIRST_NAMES]


def _not_in_table(orders: Sequence[str], texts: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the number of a thing that a carried table lists by number, and does not have."""
    for name, text in texts.items():
        if not name.lower().endswith((".csv", ".tsv")):
            continue
        columns = _columns(text)
        for order in orders:
            for found in _NUMBERED.finditer(order):
                what, wanted = found["what"].lower(), found["id"].lstrip("#").lower()
                column = columns.get(what) or columns.get(f"{what}s") or columns.get(f"{what}_id")
                if column and wanted not in column:
                    yield a_doubt(
                        "referential-drift.row-missing",
                        f"{quote(name)} lists each {what}, and has no {quote(found['id'])}.",
                        f"Which {what} of {quote(name)} is meant by {quote(found['id'])}?",
                    )
                    return


def _columns(table: str) -> dict[str, set[str]]:
    lines = table.splitlines()
    if len(lines) < 2 or len(table) > _MOST_CELLS * 10:  # noqa: PLR2004 - a header and a row
        return {}
    try:
        head, *rows = csv.reader(lines, delimiter=max(",;\t", key=lines[0].count))
    except (csv.Error, ValueError):
        return {}
    return {
        title.strip().lower(): {row[place].strip().lower() for row in rows if len(row) == len(head)}
        for place, title in enumerate(head)
    }


def _which(words: str) -> Problem:
    shown = quote(words.strip(), words=8)
    return a_doubt(
        "referential-drift.unknown-thing",
        f"{shown} is known only to those who were there.",
        f"Which one exactly is meant by {shown}?",
    )
