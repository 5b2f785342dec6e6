"""A trail as a tree of text lines, each with its time."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from batonpass.accounts.trail.receipt_lines import Tone, TrailLine, TrailNote, missing_of, name_of, tell, tone_of, took
from batonpass.accounts.trail.trail_values import Branch, Trail, TrailStep, WalkTurn, walk

_TIME: Final = 8
_DEEPEST: Final = 40  # deeper branches are not indented further; a number tells their depth


class TrailRow(Struct, frozen=True, kw_only=True):
    """One line of the tree: its time, its branch, and parts with a tone."""

    when: str = ""
    tree: str = ""
    parts: tuple[TrailNote, ...]

    @property
    def prefix(self) -> str:
        """Return everything before the words."""
        return f"{self.when:>{_TIME}}  {self.tree}"

    def __str__(self) -> str:
        """Return it without colours."""
        return f"{self.prefix}{''.join(part.text for part in self.parts)}".rstrip()


def render_text(trail: Trail, *, calls: bool = True) -> Iterator[TrailRow]:
    """Yield the lines of a tree. Their printer must make the words in them safe."""
    yield from _heading(trail)
    indents = [""]
    for step in walk(trail, calls=calls):
        match step.turn:
            case WalkTurn.ENTER:
                yield TrailRow(
                    when=trail.since_began(step.branch.began_at),
                    tree=indents[-1] + ("└─ " if step.last else "├─ "),
                    parts=tuple(_head(step)),
                )
                deeper = "   " if step.last else "│  "
                indents.append(indents[-1] + deeper if step.depth < _DEEPEST else indents[-1])
            case WalkTurn.LEAVE:
                indents.pop()
            case WalkTurn.TELL if step.told is not None:
                tree = indents[-1] + ("   " if step.last else "│  ")
                for line in tell(trail, step.told):
                    yield TrailRow(when=trail.since_began(step.told.at), tree=tree, parts=tuple(spans(line)))
            case _:
                continue
    for missing in missing_of(trail):
        yield TrailRow(parts=(TrailNote(missing, Tone.WARN),))


def spans(line: TrailLine) -> Iterator[TrailNote]:
    """Yield the parts of a line."""
    yield TrailNote(line.label, line.tone)
    if line.text:
        yield TrailNote(f" {line.text}", Tone.PLAIN, gives_way=bool(line.notes))
    for note in line.notes:
        yield TrailNote(" · ", Tone.QUIET)
        yield note


def _heading(trail: Trail) -> Iterator[TrailRow]:
    said = "" if trail.intent is None else f": {trail.intent}"
    chain = "".join(f"{name_of(trail, told.run.id)} ← " for told in trail.above)
    yield TrailRow(parts=(TrailNote(chain, Tone.QUIET), TrailNote(f"{trail.principal}{said}")))
    if trail.mark is not None:
        yield TrailRow(parts=(TrailNote(trail.mark, Tone.WARN),))


def _head(step: TrailStep) -> Iterator[TrailNote]:
    branch = step.branch
    deep = f"({step.depth} deep) " if step.depth > _DEEPEST else ""
    yield TrailNote(f"{deep}{branch.name}", Tone.PLAIN)
    for state in branch.states:
        yield TrailNote("  ")
        yield TrailNote(str(state), tone_of(state))
    attempt = 1 if branch.run is None else branch.run.run.attempt
    facts = [took(branch), f"attempt {attempt}" if attempt > 1 or (branch.handoff is None and step.depth) else ""]
    yield TrailNote("".join(f"  {fact}" for fact in facts if fact))
    if branch.task is not None and (branch.handoff is not None or (step.depth == 0 and not _is_root(branch))):
        yield TrailNote(f"  {branch.task}", Tone.PLAIN)


def _is_root(branch: Branch) -> bool:
    return branch.run is not None and branch.run.run.parent is None
