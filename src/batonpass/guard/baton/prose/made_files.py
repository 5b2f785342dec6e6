"""Names of files that a task tells somebody to make: such a file is not missing.

Words can be read in many ways. A name counts as made only where a verb of making governs it; "write a summary of
rows.csv into news.md" makes one file and needs the other.
"""

import re
from collections.abc import Iterator
from typing import Final

# Who is told to write something makes it. Not "export rows.csv", "save rows.csv as": these need the file.
_WRITES: Final = r"(?:write|create|generate|produce|draft|compose|output)"
# What comes between the verb and the name, as in "a short new file called": no word that points elsewhere.
_BETWEEN: Final = (
    r"(?: (?!(?:of|from|for|about|with|using|on|against|after|in|to|into|as|like|by|via|and|or|that|what|sure)\b)"
    r"[\w'-]{1,20}){0,4}"
)
_DIRECTLY: Final = re.compile(rf"\b{_WRITES}{_BETWEEN} ?[`\"'“(]?$", re.IGNORECASE)
# "Write rows.csv to the database" needs the file.
_PASSED_ON: Final = re.compile(r"[`\"'”)]? (?:to|into|onto|through) ")
_INTO: Final = re.compile(
    r"(?:^| )(?:(?P<how>into|to|as|under)(?: the| a| an| one)?(?: new| single| separate| fresh)?"
    r"(?: file| document| page| table| report)?(?: called| named)?"
    r"|(?:in|into|to|as) (?:a|one) (?:new |single |separate )?(?:file|document|page|table|report)(?: called| named)?)"
    r" ?[`\"'“(]?$",
    re.IGNORECASE,
)
# The nearest verb says whether the name behind "into" or "to" is made, or is there already.
_VERB: Final = re.compile(
    r"\b(?:(?P<makes>write|written|create|generate|produce|draft|compose|output|save|saved|export|store|dump|collect"
    r"|convert|merge|combine|compile|render|extract|split|turn|summari[sz]e|translate|condense|print|goes|go)"
    r"|add|append|insert|paste|enter|attach|copy|compared?|according|refers?|link|apply|send|move|upload|respond|reply"
    r"|answer|response|introduction|stick|keep|changes|corrections|same|equal|identical|similar|fill|put|note|mark"
    r"|update|back|up)\b",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(r"[`\"'”)]?(?:, ?(?:and |or )?| and | or | & | plus )[`\"'“(]?")
_ENDS: Final = (". ", "; ", "\n", "! ", "? ")
_LONGEST: Final = 160  # characters before a name: a longer clause says little about it


def find_made(text: str, name: "re.Pattern[str]") -> Iterator[tuple[str, bool]]:
    """Yield each name of a file in a text, in order, and whether the text says to make it."""
    end, made = -1, False
    for found in name.finditer(text):
        # "create rows.csv and totals.csv": what holds for one of a list holds for the next.
        in_list = end >= 0 and _LISTED.fullmatch(text, end, found.start()) is not None
        made = (made and in_list) or _is_made(text, found.start(), found.end())
        end = found.end()
        yield found[1], made


def _is_made(text: str, begin: int, end: int) -> bool:
    first = max(0, begin - _LONGEST)
    first = max(first, *(text.rfind(mark, first, begin) + len(mark) for mark in _ENDS if mark in text[first:begin]), 0)
    clause = text[first:begin]
    if _DIRECTLY.search(clause) is not None:
        return _PASSED_ON.match(text, end) is None
    into = _INTO.search(clause)
    if into is None:
        return False
    verbs = [verb["makes"] is not None for verb in _VERB.finditer(clause, 0, into.start() + 1)]
    return verbs[-1:] == [True]
