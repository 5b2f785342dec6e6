"""Evaluates the expression of `find` for files that are known to exist.

Only tests of names and depth are certain. A test of age or size may have either result.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Final

from msgspec import Struct, field

from batonpass.handoff.files.path_spellings import File

RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_ENDS: Final = frozenset({";", "+"})
_NO_ARGUMENT: Final = frozenset(
    [
        "-a",
        "-and",
        "-daystart",
        "-delete",
        "-depth",
        "-empty",
        "-executable",
        "-false",
        "-follow",
        "-ls",
        "-mount",
        "-noleaf",
        "-nogroup",
        "-nouser",
        "-print",
        "-print0",
        "-prune",
        "-quit",
        "-readable",
        "-true",
        "-writable",
        "-xdev",
    ]
)
_PRINTS: Final = frozenset({"-print", "-print0", "-printf", "-ls", "-fprint", "-fprint0", "-fprintf", "-fls"})
_OR: Final = frozenset({"-o", "-or", ","})
_NOT: Final = frozenset({"!", "-not"})
# Whether the pattern is matched against the whole path, or only against its last part.
_MATCHED: Final = {
    "-name": False,
    "-iname": False,
    "-path": True,
    "-wholename": True,
    "-ipath": True,
    "-iwholename": True,
}
_ALWAYS: Final = ("-maxdepth", "-mindepth", "-true", "-depth", "-daystart", "-xdev", "-mount", "-noleaf")
_SURE: Final = {"-false": False} | dict.fromkeys(_ALWAYS, True)
# These visit leaves first: the files in a directory are seen before the directory could be pruned.
_LEAVES_FIRST: Final = frozenset({"-delete", "-depth", "-d"})
_DEEPEST: Final = 20


class _Outcome(Struct):
    """The possible results for one file. A test that cannot be evaluated may have either result."""

    true: bool = True
    false: bool = False
    reached: list[str] = field(default_factory=list)  # actions that may be taken on the file
    pruned: bool = False  # for certain


class FindExpression:
    """The words of one `find`: its starting points, its tests, and its actions on the files."""

    def __init__(self, words: Sequence[str]) -> None:
        rest = list(words)
        while rest and rest[0] in {"-H", "-L", "-P"}:
            del rest[0]
        starts = list(takewhile(lambda word: not word.startswith("-") and word not in {"(", ")", "!", ","}, rest))
        self.starts: list[str] = starts or ["."]
        self._words = rest[len(starts) :]
        self.programs = [
            [*takewhile(lambda word: word not in _ENDS, self._words[at + 1 :])]
            for at, word in enumerate(self._words)
            if word in RUNS
        ]
        self.deletes = "-delete" in self._words
        self._acts = any(word in RUNS | _PRINTS or word == "-delete" for word in self._words)

    def acts_on(self, file: File, above: Sequence[File] = ()) -> frozenset[str]:
        """Return the actions that may reach a file: `-exec`, `-delete`, `-print`. Empty if it is surely skipped."""
        prunes = _LEAVES_FIRST.isdisjoint(self._words)
        if not self._is_deep_enough(file) or any(prunes and self._ask(each).pruned for each in above):
            return frozenset()
        outcome = self._ask(file)
        if not self._acts and outcome.true:
            outcome.reached.append("-print")
        return frozenset("-exec" if one in RUNS else "-print" if one in _PRINTS else one for one in outcome.reached)

    def _is_deep_enough(self, file: File) -> bool:
        for at, word in enumerate(self._words[:-1]):
            given = self._words[at + 1]
            if word == "-maxdepth" and given.isdigit() and file.depth > int(given):
                return False
            if word == "-mindepth" and given.isdigit() and file.depth < int(given):
                return False
        return True

    def _ask(self, file: File) -> _Outcome:
        return _Asking(self._words, file).ask()


class _Asking:
    """Evaluates an expression once, for one file."""

    def __init__(self, words: Sequence[str], file: File) -> None:
        self._words = words
        self._file = file
        self._at = 0
        self._depth = 0
        self._reached: list[str] = []
        self._pruned = False

    def ask(self) -> _Outcome:
        true, false = True, False
        while self._at < len(self._words):
            true, false = self._either(live=True, sure=True)
            self._at += 1  # a `)` that closes nothing
        return _Outcome(true, false, self._reached, self._pruned)

    def _either(self, *, live: bool, sure: bool) -> tuple[bool, bool]:
        true, false = self._both(live=live, sure=sure)
        while self._at < len(self._words) and self._words[self._at] in _OR:
            comma = self._words[self._at] == ","
            self._at += 1
            # The part after `-o` is evaluated only if the first part may be false; after a comma, always.
            goes_on = live and (false or comma)
            other_true, other_false = self._both(live=goes_on, sure=sure and (comma or not true))
            if goes_on:
                true, false = ((true and not comma) or other_true), other_false
        return true, false

    def _both(self, *, live: bool, sure: bool) -> tuple[bool, bool]:
        true, false = True, False
        while self._at < len(self._words) and self._words[self._at] not in _OR and self._words[self._at] != ")":
            if self._words[self._at] in {"-a", "-and"}:
                self._at += 1
                continue
            one_true, one_false = self._one(live=live and true, sure=sure and not false)
            # Both results of a test stay possible unless the words decide it. So an action counts as soon as it may be
            # reached, and `-prune` only if it certainly is.
            if live and true:
                true, false = one_true, false or one_false
        return true, false

    def _one(self, *, live: bool, sure: bool) -> tuple[bool, bool]:
        word = self._words[self._at]
        self._at += 1
        if word in _NOT and self._at < len(self._words) and self._depth < _DEEPEST:
            self._depth += 1
            true, false = self._one(live=live, sure=sure)
            self._depth -= 1
            return false, true
        if word == "(" and self._depth < _DEEPEST:
            self._depth += 1
            found = self._either(live=live, sure=sure)
            self._depth -= 1
            self._at += 1
            return found
        return self._test(word, self._argument(word), live=live, sure=sure)

    def _argument(self, word: str) -> str:
        if word in RUNS:
            while self._at < len(self._words) and self._words[self._at] not in _ENDS:
                self._at += 1
            self._at += 1
            return ""
        if word in _NO_ARGUMENT or not word.startswith("-"):
            return ""
        self._at += 2 if word == "-fprintf" else 1
        return self._words[self._at - 1] if self._at <= len(self._words) else ""

    def _test(self, word: str, given: str, *, live: bool, sure: bool) -> tuple[bool, bool]:
        if word in RUNS or word in _PRINTS or word == "-delete":
            if live:
                self._reached.append(word)
            return True, word in RUNS
        if word == "-prune":
            self._pruned = self._pruned or (live and sure)
            return True, False
        known = self._known(word, given)
        return (True, True) if known is None else (known, not known)

    def _known(self, word: str, given: str) -> bool | None:
        file = self._file
        if word in _MATCHED:
            text = file.path if _MATCHED[word] else file.name
            return fnmatchcase(text.lower(), given.lower()) if word.startswith("-i") else fnmatchcase(text, given)
        if word == "-type" and set(given) <= set("fdlpsbc,"):
            return ("d" if file.directory else "f") in given
        return file.empty if word == "-empty" else _SURE.get(word)
