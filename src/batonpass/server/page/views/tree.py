"""The tree of a task: every run that it led to, as nested cards, in time, as a list, or told in order.

Siblings that do the same are one card. Work that is held, asked, in doubt, failed or running is never hidden, nor is
the way to it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from statistics import median
from typing import Final, TypeVar
from urllib.parse import urlencode

from msgspec import Struct

from batonpass.accounts.overview.open_needs import OpenNeed
from batonpass.accounts.overview.tree_outline import OutlinedHandoff, TreeOutline, read_outline
from batonpass.accounts.trail.trail import read_trail
from batonpass.accounts.trail.trail_text import render_text
from batonpass.audit.meant_ids import get_run
from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import HandoffId
from batonpass.server.page.chart import strip
from batonpass.server.page.request import PageMoved, PageRequest, Shown
from batonpass.server.page.sign import ORDER, SHOWN_ALWAYS, sign_of

Row = TypeVar("Row")

WAYS: Final = ("graph", "time", "list", "trail")
MOST_CARDS: Final = 300
MOST_TOLD: Final = 400  # lines of a trail
MOST_ROWS: Final = 300  # in time, and in a list
_TOGETHER: Final = 2  # of so many siblings that do the same, the finished ones are one card
ALIKE: Final = 5  # so many siblings that do the same are one card
OF_GROUP: Final = 50  # are shown when it is opened
EXCEPTIONS: Final = 12  # of a closed group
_DEEP: Final = 3  # levels below the root; from then on, cards are narrower so that they fit beside each other
DEEPEST: Final = 30  # what is deeper has a page of its own
_COLUMNS: Final = 160
_WIDTH: Final = 1000  # of a row in time
_FOLD: Final = 24
_MOST_FOLDS: Final = 8
_FOLD_FROM: Final = 10  # times the middle duration
_FOLD_LEAST: Final = 2.0  # seconds
_TICK_APART: Final = 110


class GroupNode(Struct, frozen=True, kw_only=True):
    """Siblings that do the same, as one card."""

    key: str
    agent: str
    task: tuple[str, str, str]  # before the word that differs, what it stands for, after it
    members: tuple[OutlinedHandoff, ...]
    is_open: bool

    @property
    def done(self) -> int:
        """Return how many have delivered."""
        return sum(one.state in {"completed", "verified"} for one in self.members)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Return the states that somebody should look at, with how many."""
        states = [one.state for one in self.members]
        return [(state, states.count(state)) for state in ORDER if state in SHOWN_ALWAYS and state in states]


class TreeNode(Struct, kw_only=True):
    """One card: a handoff or a group, and the cards below it."""

    handoff: OutlinedHandoff | None = None
    group: GroupNode | None = None
    children: list["TreeNode"] = []
    hidden: int = 0  # cards below it that are closed
    below: int = 0  # of a group: cards below its members
    is_hit: bool = False
    more: int = 0  # members of a group that are not shown
    is_cut: bool = False  # there is more below it, on a page of its own

    @property
    def id(self) -> str:
        """Return its name in the address."""
        if self.handoff is not None:
            return self.handoff.handoff.id
        return "" if self.group is None else self.group.key

    @property
    def is_quiet(self) -> bool:
        """Return whether nobody has to look at it, nor at anything below."""
        own = [self.handoff] if self.handoff is not None else [] if self.group is None else [*self.group.members]
        return all(one.state not in SHOWN_ALWAYS for one in own) and all(child.is_quiet for child in self.children)

    @property
    def cards(self) -> int:
        """Return how many cards it takes."""
        return 1 + sum(child.cards for child in self.children)


class TimeRow(Struct, frozen=True, kw_only=True):
    """A handoff in time: its attempts as bars in one row."""

    depth: int
    handoff: OutlinedHandoff | None  # None for the root
    name: str
    bars: tuple[tuple[float, float, str], ...]  # where it begins, how wide it is, its state


def show_tree(asked: PageRequest) -> Shown:
    """Return one task."""
    way = asked.asked("as") or "graph"
    if way not in WAYS:
        raise InvalidValueError("as", f"is one of {', '.join(WAYS)}")
    with asked.looking() as view:
        meant = get_run(view, asked.names["root"])
        if meant.root != asked.names["root"]:
            place = {} if meant.id == meant.root else {"at": str(meant.handoff or meant.id)}
            raise PageMoved(_address(meant.root, {**asked.query, **place}))
        outline = read_outline(view, meant.root)
        trail = [*render_text(read_trail(view, meant.root))] if way == "trail" else []
    needs = outline.needs
    chosen = _chosen(asked, outline, needs)
    shown: Shown = {
        "outline": outline,
        "way": way,
        "ways": [(one, _address(outline.root.id, {**asked.query, "as": one})) for one in WAYS],
        "needs": needs,
        "chosen": chosen,
        "chosen_needs": outline.root_needs if chosen is None else chosen.needs,
        "strip": strip,
        "strip_all": strip(outline.states, _COLUMNS, _in_words(outline)),
        "counts": [(state, outline.counts[state]) for state in ORDER if outline.counts.get(state)],
        "total": len(outline.states),
        "q": asked.asked("q"),
        "only": asked.asked("only"),
        "link": lambda **given: _address(outline.root.id, _with(asked.query, given)),
        "trail": trail[:MOST_TOLD],
        "trail_more": max(0, len(trail) - MOST_TOLD),
        "start": None,
        "live_root": outline.root.id,
        "order": [need.handoff or need.run for need in needs],
    }
    if way == "graph":
        start = outline.handoffs.get(HandoffId(asked.asked("from")))
        nodes = _nodes(asked, outline, outline.below.get(outline.root.id, ()) if start is None else (start,))
        shown["start"] = start
        shown["nodes"], shown["closed"] = _fitted(nodes)
        shown["is_deep"] = max(map(_depth, shown["nodes"]), default=0) >= _DEEP
    elif way == "list":
        shown["rows"], shown["next_row"] = _page([*_listed(outline, asked)], lambda row: row[1].handoff.id, asked)
    elif way == "time":
        rows, shown["ticks"], shown["folds"] = _in_time(outline, asked.now)
        shown["rows"], shown["next_row"] = _page(
            rows, lambda row: "" if row.handoff is None else row.handoff.handoff.id, asked
        )
    shown["is_later"] = bool(asked.asked("after"))
    return shown


def _page(rows: Sequence[Row], key: Callable[[Row], str], asked: PageRequest) -> tuple[Sequence[Row], str | None]:
    """Return the rows after the one that the address names, and which one the next page is after."""
    after = asked.asked("after")
    start = next((number + 1 for number, row in enumerate(rows) if after and key(row) == after), 0)
    part = rows[start : start + MOST_ROWS]
    return part, key(part[-1]) if start + MOST_ROWS < len(rows) else None


def _address(root: str, query: Mapping[str, str]) -> str:
    kept = {name: text for name, text in query.items() if text}
    return f"/tasks/{root}" + (f"?{urlencode(kept)}" if kept else "")


def _with(query: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    return {**query, **{name.rstrip("_"): text for name, text in given.items()}}


def _chosen(asked: PageRequest, outline: TreeOutline, needs: Sequence[OpenNeed]) -> OutlinedHandoff | None:
    """Return the handoff that is selected: by the address, else the first that needs somebody; None for the root."""
    at = asked.asked("at")
    if at:
        return next((one for key, one in outline.handoffs.items() if key == at or _is_run(one, at)), None)
    first = next((need.handoff for need in needs if need.handoff is not None), None)
    return None if first is None else outline.handoffs.get(first)


def _is_run(one: OutlinedHandoff, given: str) -> bool:
    return any(attempt.run.id == given for attempt in one.attempts)


def _in_words(outline: TreeOutline) -> str:
    counts = outline.counts
    told = ", ".join(f"{counts[state]} {sign_of(state).word}" for state in ORDER if counts.get(state))
    return f"{len(outline.states)} runs: {told}"


def _words(one: OutlinedHandoff) -> str:
    return "" if one.task is None else one.task.words or f"the words are {one.task.found}"


def _nodes(
    asked: PageRequest, outline: TreeOutline, handoffs: Sequence[OutlinedHandoff], depth: int = 1
) -> list[TreeNode]:
    """Return the cards of siblings, with the cards below each. Siblings stay in the order in which they began."""
    query, only, opened = asked.asked("q").casefold(), asked.asked("only") == "needs", asked.asked("open")
    groups = [*_alike(handoffs)] if not query and not only else [(one,) for one in handoffs]
    found: list[TreeNode] = []
    for members in groups:
        if len(members) >= ALIKE and not any(outline.children(one) for one in members):
            found.append(_group(members, opened))
            continue
        first = len(found)
        for one in members:
            below = outline.children(one)
            node = TreeNode(handoff=one, is_cut=depth >= DEEPEST and bool(below))
            node.children = [] if node.is_cut else _nodes(asked, outline, below, depth + 1)
            node.is_hit = bool(query) and query in f"{one.agent} {one.handoff.id} {_words(one)}".casefold()
            is_wanted = not query or node.is_hit or bool(node.children)
            is_needed = not only or bool(one.needs) or bool(node.children)
            if is_wanted and is_needed:
                found.append(node)
        if len(members) >= ALIKE and not query and not only:
            found[first:] = _with_quiet_ones_together(found[first:], opened)
    return found


def _with_quiet_ones_together(nodes: Sequence[TreeNode], opened: str) -> list[TreeNode]:
    """Return cards of siblings that do the same: those of which nobody has to look at anything are one card.

    It stands where the first of them stood. Whatever needs somebody, failed or runs keeps its card, and the way to it.
    """
    quiet = [node for node in nodes if node.is_quiet and node.handoff is not None]
    if len(quiet) < _TOGETHER:
        return [*nodes]
    group = _group(tuple(node.handoff for node in quiet if node.handoff is not None), opened)
    below = {node.id: node.cards - 1 for node in quiet}
    for child in group.children:
        child.hidden = below[child.id]
    group.below = sum(below.values())
    return [group if node is quiet[0] else node for node in nodes if node is quiet[0] or node not in quiet]


def _alike(handoffs: Sequence[OutlinedHandoff]) -> Iterator[tuple[OutlinedHandoff, ...]]:
    """Yield siblings in order, those that follow each other and do the same together."""
    for _, same in groupby(handoffs, key=lambda one: (one.agent, len(_words(one).split()))):
        run: list[OutlinedHandoff] = []
        for one in same:
            if run and len(_differing([run[0], one])) > 1:
                yield tuple(run)
                run = []
            run.append(one)
        yield tuple(run)


def _differing(handoffs: Sequence[OutlinedHandoff]) -> list[int]:
    """Return which words of their tasks differ."""
    split = [_words(one).split() for one in handoffs]
    return [at for at, words in enumerate(zip(*split, strict=True)) if len(set(words)) > 1]


def _group(members: tuple[OutlinedHandoff, ...], opened: str) -> TreeNode:
    words, differing = _words(members[0]).split(), _differing(members)
    at = differing[0] if differing else len(words)
    first = members[0].handoff.id
    group = GroupNode(
        key=first,
        agent=members[0].agent,
        task=(" ".join(words[:at]), "…" if differing else "", " ".join(words[at + 1 :])),
        members=members,
        is_open=opened == first,
    )
    # What somebody should look at comes first, and is there even while the group is closed.
    ranked = sorted(members, key=lambda one: one.state not in SHOWN_ALWAYS)
    urgent = [one for one in members if one.state in SHOWN_ALWAYS]
    shown = ranked[:OF_GROUP] if group.is_open else urgent[:EXCEPTIONS]
    return TreeNode(
        group=group,
        children=[TreeNode(handoff=one) for one in shown],
        more=len(members) - len(shown) if group.is_open else max(0, len(urgent) - EXCEPTIONS),
    )


def _fitted(nodes: list[TreeNode]) -> tuple[list[TreeNode], int]:
    """Close finished parts, the deepest first, until few enough cards are left; return how many are closed."""
    depth = max((_depth(node) for node in nodes), default=0)
    closed = 0
    while depth > 0 and sum(node.cards for node in nodes) > MOST_CARDS:
        closed += sum(_close(node, depth) for node in nodes)
        depth -= 1
    return nodes, closed


def _depth(node: TreeNode) -> int:
    return 1 + max((_depth(child) for child in node.children), default=0)


def _close(node: TreeNode, depth: int) -> int:
    if depth > 1:
        return sum(_close(child, depth - 1) for child in node.children)
    quiet = [child for child in node.children if child.is_quiet]
    count = sum(child.cards for child in quiet)
    if quiet:
        node.children = [child for child in node.children if not child.is_quiet]
        node.hidden += count
    return count


def _listed(outline: TreeOutline, asked: PageRequest) -> Iterator[tuple[int, OutlinedHandoff]]:
    query, state = asked.asked("q").casefold(), asked.asked("state")
    for depth, one in _walk(outline, outline.below.get(outline.root.id, ()), 1):
        if query and query not in f"{one.agent} {one.handoff.id} {_words(one)}".casefold():
            continue
        if state and one.state != state:
            continue
        yield depth, one


def _walk(
    outline: TreeOutline, handoffs: Sequence[OutlinedHandoff], depth: int
) -> Iterator[tuple[int, OutlinedHandoff]]:
    pending = [(depth, one) for one in reversed(handoffs)]
    while pending:
        at, one = pending.pop()
        yield at, one
        pending += [(at + 1, child) for child in reversed(outline.children(one))]


def _in_time(
    outline: TreeOutline, now: datetime
) -> tuple[list[TimeRow], list[tuple[float, str]], list[tuple[float, str]]]:
    """Return a row for each handoff, the marks of the axis, and where long times without anything are folded."""
    walked = [*_walk(outline, outline.below.get(outline.root.id, ()), 1)]
    spans = [
        (run.started_at, run.ended_at or now)
        for run in (outline.root, *(each.run for _, one in walked for each in one.attempts))
    ]
    working = [span for span in spans[1:] if span[1] > span[0]] or spans
    axis = _Axis(spans, working)
    rows = [
        TimeRow(depth=0, handoff=None, name=outline.root.agent, bars=(axis.bar(*spans[0], str(outline.root.state)),))
    ]
    for depth, one in walked:
        bars = tuple(
            axis.bar(each.run.started_at, each.run.ended_at or now, one.state_of(each)) for each in one.attempts
        )
        rows.append(TimeRow(depth=depth, handoff=one, name=one.agent, bars=bars))
    return rows, axis.ticks, axis.folds


def _idle(
    marks: Sequence[datetime], working: Sequence[tuple[datetime, datetime]]
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the stretches between marks in which nobody worked."""
    begun = sorted(working)
    busy_until, at = marks[0], 0
    for begin, end in pairwise(marks):
        while at < len(begun) and begun[at][0] < end:
            busy_until, at = max(busy_until, begun[at][1]), at + 1
        if busy_until <= begin:
            yield begin, end


class _Axis:
    """Where a moment stands in a row. Long stretches in which nobody worked are folded."""

    def __init__(
        self, spans: Sequence[tuple[datetime, datetime]], working: Sequence[tuple[datetime, datetime]]
    ) -> None:
        marks = sorted({moment for span in spans for moment in span})
        usual = median((end - begin).total_seconds() for begin, end in working) or 1.0
        least = max(_FOLD_LEAST, _FOLD_FROM * usual)
        gaps = [span for span in _idle(marks, working) if (span[1] - span[0]).total_seconds() > least]
        longest = {*sorted(gaps, key=lambda span: span[0] - span[1])[:_MOST_FOLDS]}
        parts = [(begin, end, (begin, end) in longest) for begin, end in pairwise(marks)]
        folded = sum(fold for *_, fold in parts)
        seconds = sum((end - begin).total_seconds() for begin, end, fold in parts if not fold) or 1.0
        scale = max(1.0, _WIDTH - folded * _FOLD) / seconds
        self._places: list[tuple[datetime, float]] = [(marks[0], 0.0)]
        self.folds: list[tuple[float, str]] = []
        x = 0.0
        for begin, end, fold in parts:
            if fold:
                self.folds.append((x, _length(end - begin)))
            x += _FOLD if fold else (end - begin).total_seconds() * scale
            self._places.append((end, x))
        self.ticks = self._ticks()

    def bar(self, begin: datetime, end: datetime, state: str) -> tuple[float, float, str]:
        left = self._at(begin)
        return round(left, 1), round(max(3.0, self._at(end) - left), 1), state

    def _at(self, moment: datetime) -> float:
        return next((x for known, x in self._places if known >= moment), self._places[-1][1])

    def _ticks(self) -> list[tuple[float, str]]:
        """Return marks of the axis that do not run into each other."""
        first, found = self._places[0][0], [(0.0, self._places[0][0])]
        for moment, x in self._places[1:]:
            if x - found[-1][0] >= _TICK_APART:
                found.append((x, moment))
        return [(round(x, 1), f"+{_length(moment - first)}" if x else "0") for x, moment in found]


def _length(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:  # noqa: PLR2004 - two marks of an axis within a second would be called the same
        return f"{seconds:.1f} s"
    if seconds < 120:  # noqa: PLR2004 - two minutes are still counted in seconds
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"  # noqa: PLR2004 - as above
