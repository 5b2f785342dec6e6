"""The marks of lines that a recorded change adds: the call's, unless it moved or reformatted existing lines."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from batonpass.attribution.changes.mark import LineMark, Weight, joined, squeezed, weight
from batonpass.attribution.lines.change_places import Splice
from batonpass.attribution.lines.untouched_lines import reformatted

_BLOCK: Final = 3  # lines
_MOST_ORIGINS: Final = 64


@dataclass(slots=True)
class Written:
    """The marks of the lines that one change added, splice by splice."""

    splices: Sequence[Splice]
    removed: list[list[LineMark]]  # the marks of the removed lines
    author: LineMark
    added: list[list[LineMark]] = field(init=False)
    _settled: set[tuple[int, int]] = field(default_factory=set)  # added lines that turned out to be existing ones
    _used: set[tuple[int, int]] = field(default_factory=set)  # the removed lines that they were

    def __post_init__(self) -> None:
        self.added = [[self.author] * len(splice.added) for splice in self.splices]

    def settle(self, call: str) -> None:
        """Restore the marks of lines that were moved, then of those that were reformatted."""
        if not any(splice.removed for splice in self.splices) or not any(splice.added for splice in self.splices):
            return
        self._move_whole()
        self._find_again(str, lambda mark: mark)
        self._find_again(squeezed, lambda mark: reformatted(mark, call))
        self._doubt()

    def _move_whole(self) -> None:
        """Keep the marks of a splice that consists of all lines of another one, if it is not trivial."""
        gone: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, splice in enumerate(self.splices):
            gone[splice.removed].append(number)
        for number, splice in enumerate(self.splices):
            origins = gone.get(splice.added, ())
            if len(splice.added) < _BLOCK or len(origins) != 1 or not any(map(str.strip, splice.added)):
                continue
            for index in range(len(splice.added)):
                self._keep((origins[0], index), (number, index), lambda mark: mark)

    def _find_again(self, key: Callable[[str], str], kept: Callable[[LineMark], LineMark]) -> None:
        sources = self._places([splice.removed for splice in self.splices], self._used, key)
        targets = self._places([splice.added for splice in self.splices], self._settled, key)
        for text, places in targets.items():
            origins = sources.get(text, ())
            if len(origins) == len(places) == 1 and (places[0] not in self._settled):
                self._keep(origins[0], places[0], kept)
                alone = not self._spread(origins[0], places[0], key, kept)
                if alone and origins[0][0] != places[0][0]:
                    # A single line that is removed here and added there may also have been written again.
                    number, index = places[0]
                    self.added[number][index] = joined([self.author, self.added[number][index]])
        for text, places in targets.items():
            self._share([at for at in sources.get(text, ()) if at not in self._used], places, kept)

    def _places(
        self, sides: Sequence[Sequence[str]], taken: set[tuple[int, int]], key: Callable[[str], str]
    ) -> dict[str, list[tuple[int, int]]]:
        places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, lines in enumerate(sides):
            for index, line in enumerate(lines):
                if weight(line) is Weight.STRONG and (number, index) not in taken:
                    places[key(line)].append((number, index))
        return places

    def _keep(self, origin: tuple[int, int], place: tuple[int, int], kept: Callable[[LineMark], LineMark]) -> None:
        self.added[place[0]][place[1]] = kept(self.removed[origin[0]][origin[1]])
        self._used.add(origin)
        self._settled.add(place)

    def _spread(
        self,
        origin: tuple[int, int],
        place: tuple[int, int],
        key: Callable[[str], str],
        kept: Callable[[LineMark], LineMark],
    ) -> bool:
        """Keep the marks of lines next to a recognised one; return whether one of them is not trivial."""
        old, new = self.splices[origin[0]].removed, self.splices[place[0]].added
        speaks = False
        for way in (-1, 1):
            for at_old, at_new in _walk(origin[1], place[1], way, len(old), len(new)):
                here, there = (origin[0], at_old), (place[0], at_new)
                if here in self._used or there in self._settled or key(old[at_old]) != key(new[at_new]):
                    break
                self._keep(here, there, kept)
                speaks = speaks or weight(new[at_new]) is not Weight.TRIVIAL
        return speaks

    def _share(
        self,
        origins: Sequence[tuple[int, int]],
        places: Sequence[tuple[int, int]],
        kept: Callable[[LineMark], LineMark],
    ) -> None:
        """If a line was removed and added several times, each may be any of them."""
        places = [place for place in places if place not in self._settled]
        if not origins or not places:
            return
        marks = [kept(self.removed[number][index]) for number, index in origins]
        mark = joined(marks if len(origins) >= len(places) else [*marks, self.author])
        for place in places:
            self.added[place[0]][place[1]] = mark
            self._settled.add(place)
        self._used.update(origins)

    def _doubt(self) -> None:
        """Leave open whether trivial lines were moved along, reformatted, or written anew.

        A diff may report the move of a line over a blank one as the move of the blank one, cut a moved block one blank
        line too late, or match an indented brace with another one.
        """
        gone: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, splice in enumerate(self.splices):
            for index, line in enumerate(splice.removed):
                if (number, index) not in self._used:
                    gone[squeezed(line)].append((number, index))
        moved = {number for number, _ in self._used}, {number for number, _ in self._settled}
        for number, splice in enumerate(self.splices):
            for index, line in enumerate(splice.added):
                # If very many similar lines were removed, only the first are considered.
                origins = gone.get(squeezed(line), ())[:_MOST_ORIGINS]
                if origins and (number, index) not in self._settled:
                    marks = [self.removed[o][at] for o, at in origins if self._is_near(o, number, moved, (at, line))]
                    self.added[number][index] = joined([self.author, *marks])

    def _is_near(self, source: int, target: int, moved: tuple[set[int], set[int]], place: tuple[int, str]) -> bool:
        """Return whether a line of one splice may have moved to another."""
        index, line = place
        if source == target or (source in moved[0] and target in moved[1]):
            return True
        removed, added = self.splices[source].removed, self.splices[target].added
        return removed[index] != line or _is_alike(added, removed)


def _is_alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two blocks have the same lines in any rotation."""
    return len(one) == len(other) <= _MOST_ORIGINS and Counter(one) == Counter(other)


def _walk(old: int, new: int, way: int, old_size: int, new_size: int) -> Iterator[tuple[int, int]]:
    old, new = old + way, new + way
    while 0 <= old < old_size and 0 <= new < new_size:
        yield old, new
        old, new = old + way, new + way
