"""Marks that say who wrote a line, how distinctive a line is, and a text with its marks."""

from collections.abc import Iterable
from datetime import datetime
from enum import IntEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.model.base.ids import Digest

UNRECORDED: Final = "unrecorded"  # in `reformatted_by`: somebody who is not recorded

_PAIR: Final = 2  # letters and digits
_SHORT: Final = 4
_LONG: Final = 12
_REMEMBERED: Final = 100_000

# Lines that everybody writes, without white space: finding one again says nothing about its author.
_EVERYBODYS: Final = frozenset(
    """
    pass continue break return returnNone returnTrue returnFalse returnself returnresult returnfalse; returntrue;
    returnnull; returnnil else: else{ }else{ try: try{ finally: do: end begin then default: except: exceptException:
    exceptException catch(e){ }catch(e){ raise raiseNotImplementedError raiseNotImplementedError() raiseValueError
    @property @staticmethod @classmethod @override @Override def__init__(self): def__init__(self)->None:
    ifTYPE_CHECKING: if__name__=="__main__": if__name__=='__main__': main() importos importsys importre importjson
    importtyping importlogging importdataclasses from__future__importannotations fromtypingimportAny
    frompathlibimportPath fromdataclassesimportdataclass #!/usr/bin/envbash #!/usr/bin/envpython3 usestrict
    "usestrict"; returnerr iferr!=nil{ returnnil,err usesuper::*; #[cfg(test)] #[derive(Debug)] @dataclass
    @dataclass(frozen=True) @pytest.fixture publicstaticvoidmain(String[]args){ break; continue; return; </div>
    </span> </table>
    """.split()  # noqa: SIM905 - words are read as words
)


class Weight(IntEnum):
    """How distinctive a line is. A trivial line may be written by anybody at any time."""

    TRIVIAL = 0
    SHORT = 1
    STRONG = 2


class Author(Struct, frozen=True):
    """A call that wrote a line; the run is None if only the call is known."""

    call: str
    run: str | None


class LineMark(Struct, frozen=True):
    """Who wrote a line: one author, several candidates, or nobody who is recorded."""

    authors: tuple[Author, ...]
    is_open: bool = False  # an unrecorded author is possible
    since: datetime | None = None  # if open: the line did not exist at this time; None: it is older than the record
    is_matched: bool = False  # recognised by its text and position, not by a chain of digests
    reformatted_by: str | None = None

    @property
    def run(self) -> str | None:
        """Return the run that wrote the line, if that is certain."""
        runs = {author.run for author in self.authors}
        return next(iter(runs)) if len(runs) == 1 and not self.is_open else None

    @property
    def is_certain(self) -> bool:
        """Return whether only one call, or only an unrecorded author, can have written it."""
        return len(self.authors) + self.is_open == 1


def unexplained(since: datetime | None) -> LineMark:
    """Return the mark of a line that no recorded change wrote."""
    return LineMark((), is_open=True, since=since)


def joined(marks: Iterable[LineMark]) -> LineMark:
    """Return the mark of a line that may be any of these."""
    first, *others = dict.fromkeys(marks)
    if not others:
        return first
    several = (first, *others)
    open_ones = [mark.since for mark in several if mark.is_open]
    reformatters = {mark.reformatted_by for mark in several}
    return LineMark(
        tuple(dict.fromkeys(author for mark in several for author in mark.authors)),
        is_open=bool(open_ones),
        since=None if None in open_ones else min((since for since in open_ones if since), default=None),
        is_matched=any(mark.is_matched for mark in several),
        reformatted_by=reformatters.pop() if len(reformatters) == 1 else None,
    )


def opened(mark: LineMark, since: datetime | None) -> LineMark:
    """Return the mark with the possibility added that an unrecorded author wrote the line after `since`."""
    return mark if mark.is_open else replace(mark, is_open=True, since=since)


def matched(mark: LineMark) -> LineMark:
    """Return the mark of a line that was recognised by its text."""
    return mark if mark.is_matched or not mark.authors else replace(mark, is_matched=True)


@lru_cache(maxsize=_REMEMBERED)
def squeezed(text: str) -> str:
    """Return a text without white space: reformatting does not change it."""
    return "".join(text.split())


@lru_cache(maxsize=_REMEMBERED)
def is_anybodys(text: str) -> bool:
    """Return whether a line is written everywhere: a brace, `else:`, a blank line; but not `k = 5`."""
    bare = squeezed(text)
    return bare in _EVERYBODYS or sum(map(str.isalnum, bare)) < _PAIR


@lru_cache(maxsize=_REMEMBERED)
def weight(text: str) -> Weight:
    """Return how distinctive a line is."""
    bare = squeezed(text)
    if bare in _EVERYBODYS:
        return Weight.TRIVIAL
    letters = sum(map(str.isalnum, bare))
    return Weight.STRONG if letters >= _LONG else Weight.SHORT if letters >= _SHORT else Weight.TRIVIAL


class MarkedText(Struct):
    """The lines of a file at one time, and who wrote each."""

    lines: list[str]
    marks: list[LineMark]
    digest: Digest | None
    at: datetime | None
    commit: str | None = None  # the last revision it is based on

    def copy(self) -> "MarkedText":
        """Return an independent copy."""
        return MarkedText(list(self.lines), list(self.marks), self.digest, self.at, self.commit)
