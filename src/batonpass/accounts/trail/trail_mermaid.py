"""A trail as a Mermaid flowchart. No text can end a label, start a directive or become markup."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from batonpass.accounts.trail.first_lines import Words
from batonpass.accounts.trail.receipt_lines import name_of, tell, tone_of, took
from batonpass.accounts.trail.trail_values import Branch, Called, Happened, Trail, WalkTurn, walk
from batonpass.model.base.ids import HANDOFF
from batonpass.model.base.visible import visible
from batonpass.model.bodies.body import HandoffInitiated
from batonpass.records.text import Found

# Mermaid refuses texts beyond 50,000 characters, or more than 500 edges.
_MOST_TEXT: Final = 40_000
_MOST_BRANCHES: Final = 400
_MOST_LINES: Final = 6
_LONGEST: Final = 60
_CLASSES: Final = (
    "  classDef good stroke:#1a7f37,stroke-width:2px",
    "  classDef warn stroke:#9a6700,stroke-width:2px",
    "  classDef bad stroke:#cf222e,stroke-width:2px",
)


def render_mermaid(trail: Trail, *, calls: bool = True) -> Iterator[str]:
    """Yield the lines of a flowchart of handoffs and results; only a part if it is large."""
    yield "flowchart TD"
    said = [trail.principal, *([_quoted(trail.intent)] if trail.intent else [])]
    said += [] if trail.mark is None else [trail.mark]
    said += [f"← {name_of(trail, told.run.id)}" for told in trail.above[::-1]]
    yield f'  h(["{label(_few(said))}"])'
    used, drawn = 0, 0
    for number, lines in enumerate(_branches(trail, calls=calls), 1):
        used += sum(map(len, lines))
        if used > _MOST_TEXT or number > _MOST_BRANCHES:
            yield '  more["and more, which is not drawn"]'
            break
        drawn = number
        yield from lines
    yield from _CLASSES if drawn else ()


def label(lines: list[str]) -> str:
    """Return lines as the text of a label, with special characters as numbers."""
    return "<br/>".join(_escaped(_cut(line)) for line in lines)


def _branches(trail: Trail, *, calls: bool) -> Iterator[list[str]]:
    """Yield the drawing of each branch, in the order of the tree."""
    numbers: dict[str, int] = {}
    parents: list[str] = ["h"]
    # A branch can be drawn only when all of it is known, but must come before the branches below it.
    waiting: list[tuple[Branch, str, list[Called | Happened]]] = []
    drawn: list[tuple[Branch, str, list[Called | Happened]]] = []
    for step in walk(trail):
        match step.turn:
            case WalkTurn.ENTER:
                entry: tuple[Branch, str, list[Called | Happened]] = (step.branch, parents[-1], [])
                waiting.append(entry)
                drawn.append(entry)
                numbers[step.branch.id] = len(numbers) + 1
                parents.append(f"n{numbers[step.branch.id]}")
            case WalkTurn.LEAVE:
                waiting.pop()
                parents.pop()
            case _ if step.told is not None:
                waiting[-1][2].append(step.told)
            case _:
                continue
    for branch, parent, told in drawn:
        yield list(_drawn(trail, branch, f"n{numbers[branch.id]}", parent, told, calls=calls))


def _drawn(
    trail: Trail, branch: Branch, node: str, parent: str, told: list[Called | Happened], *, calls: bool
) -> Iterator[str]:
    state = " ".join(branch.states)
    head = [branch.name, " · ".join(filter(None, (state, took(branch))))]
    more = [*_acts(trail, told), *(_calls(told) if calls else ())]
    text = label([*head, *_few(more)])
    yield f'  {node}{{{{"{text}"}}}}' if branch.id.startswith(HANDOFF) else f'  {node}["{text}"]'
    task = branch.task if branch.handoff is not None else None
    yield f'  {parent} -->|"{label([_quoted(task)])}"| {node}' if task is not None else f"  {parent} --> {node}"
    yield f"  class {node} {tone_of(branch)}"


def _few(lines: list[str]) -> list[str]:
    left = len(lines) - _MOST_LINES
    return lines if left <= 0 else [*lines[: _MOST_LINES - 1], f"… {left + 1} more"]


def _acts(trail: Trail, told: list[Called | Happened]) -> Iterator[str]:
    """Yield the acts of others on a handoff."""
    for event in told:
        body = event.body if isinstance(event, Happened) else None
        if body is not None and hasattr(body, "handoff") and not hasattr(body, "run") and isinstance(event, Happened):
            yield from (f"{line.label} {line.text}" for line in tell(trail, event))
        elif isinstance(body, HandoffInitiated) and body.missing:
            yield f"missing: {', '.join(body.missing)}"


def _calls(told: list[Called | Happened]) -> Iterator[str]:
    """Yield the tools that were called, and their problems."""
    ways = Counter((call.record.tool, _worry(call)) for call in told if isinstance(call, Called))
    for (tool, worry), count in ways.items():
        yield f"{tool}{f' ×{count}' if count > 1 else ''}{f': {worry}' if worry else ''}"


def _worry(call: Called) -> str:
    if call.record.in_doubt:
        return "in doubt"
    if call.record.outcome in {"failed", "denied"}:
        return f"{call.record.outcome} {call.record.why}"
    return ", ".join(call.record.flags)


def _quoted(words: Words | None) -> str:
    if words is None or words.found is not Found.KEPT:
        return "unknown" if words is None else str(words.found)
    return f'"{_cut(words.bare, _LONGEST - 2)}"'


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _escaped(text: str) -> str:
    # By code point, as Mermaid's documentation describes. Letters and digits of any script stay.
    return "".join(
        character if character.isalnum() or character == " " else f"#{ord(character)};" for character in visible(text)
    )
