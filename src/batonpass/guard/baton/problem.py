"""A problem: something wrong with a baton, found before anybody acts on it."""

from enum import StrEnum
from hashlib import sha256
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_code, require_member, require_text
from batonpass.model.base.kinds import ErrorType
from batonpass.model.base.value import Value

LONGEST_QUESTION: Final = 25  # words

# The most common first, as counted in 824 audited logs: 36.8 %, 29.1 %, 27.3 % and 6.8 %.
BY_FREQUENCY: Final = (
    ErrorType.SIGNAL_CORRUPTION,
    ErrorType.DATA_GAP,
    ErrorType.REFERENTIAL_DRIFT,
    ErrorType.CAPABILITY_GAP,
)


class Whom(StrEnum):
    """Who can answer a question about a baton."""

    PRODUCER = "producer"
    RECEIVER = "receiver"
    ROUTER = "router"


class Settles(StrEnum):
    """Which answer settles a problem. A waiver settles every problem."""

    ANSWER = "answer"  # any answer that says something
    YES = "yes"
    NO = "no"
    CHECK = "check"  # no words: the check itself has to pass


class Problem(Value, frozen=True, kw_only=True):
    """One thing that is wrong, the check that found it, and the one closed question that would settle it."""

    error: ErrorType
    check: str  # a stable code, such as data-gap.input-missing
    about: str  # one sentence for people, which names the thing
    blocking: bool  # the receiver cannot reliably go on, so nothing begins before it is settled
    question: str  # answered by yes or no, by a choice, or by a single value
    whom: Whom
    doubtful: bool = False  # it does not block, but the receiver asks about it if a question is left
    settles: Settles = Settles.ANSWER

    def __post_init__(self) -> None:
        require_member("error", self.error, ErrorType)
        require_code("check", self.check)
        require_text("about", self.about)
        require_text("question", self.question)
        require_member("whom", self.whom, Whom)
        require_member("settles", self.settles, Settles)
        if (words := len(self.question.split())) > LONGEST_QUESTION:
            raise InvalidValueError("question", f"has {words} words; at most {LONGEST_QUESTION} are asked")


def problem_of(
    check: str,
    about: str,
    question: str,
    *,
    blocking: bool = True,
    doubtful: bool = False,
    whom: Whom = Whom.PRODUCER,
    settles: Settles = Settles.ANSWER,
) -> Problem:
    """Return a problem. The first part of its code says of which type it is."""
    return Problem(
        error=_TYPES[check.partition(".")[0]],
        check=check,
        about=about,
        blocking=blocking,
        doubtful=doubtful,
        question=question,
        whom=whom,
        settles=settles,
    )


_TYPES: Final = {str(member): member for member in ErrorType}
_LONGEST: Final = 60
_MARK: Final = 6


def quote(text: str, *, words: int = 5) -> str:
    """Return text in quotation marks on one line, shortened to about so many words.

    A shortened or changed text ends with a piece of its digest. So two long texts that begin alike differ, which
    matters because answers are remembered by the words of their question.
    """
    # An invisible character, or one that changes the direction of reading, would change how the sentence reads.
    readable = text[: 4 * _LONGEST]
    if not readable.isprintable():
        readable = "".join([letter if letter.isprintable() else " " for letter in readable])
    shown = " ".join(readable.replace('"', "'").split()[:words])[:_LONGEST].rstrip()
    if shown == text:
        return f'"{shown}"'
    return f'"{shown}… #{sha256(text.encode(errors="surrogatepass")).hexdigest()[:_MARK]}"'
