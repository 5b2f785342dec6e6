"""A trail as one HTML page: nothing is loaded, nothing runs, and all text is escaped."""

from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from typing import Final

from batonpass.accounts.inert_page import CLOSING, PAGE_STYLE, inert_text, opening
from batonpass.accounts.trail.first_lines import Words
from batonpass.accounts.trail.receipt_lines import Tone, TrailLine, missing_of, name_of, tell, tone_of, took
from batonpass.accounts.trail.trail_values import Called, Trail, TrailStep, WalkTurn, walk
from batonpass.records.text import Found

_STYLE: Final = PAGE_STYLE + files(__package__).joinpath("trail.css").read_text(encoding="utf-8")
_OPEN: Final = 40  # with more branches than this, deeper ones are folded


def render_html(trail: Trail, *, calls: bool = True) -> Iterator[str]:
    """Yield one self-contained page, piece by piece."""
    title = "a trail" if trail.intent is None else trail.intent.bare
    yield opening(title, _STYLE)
    yield from _header(trail)
    yield "<main>\n"
    fold = sum(step.turn is WalkTurn.ENTER for step in walk(trail, calls=False)) > _OPEN
    for step in walk(trail, calls=calls):
        match step.turn:
            case WalkTurn.ENTER:
                yield _opening(trail, step, fold=fold and step.depth > 1)
            case WalkTurn.LEAVE:
                yield "</ol>\n</details>\n" + ("</li>\n" if step.depth else "")
            case _ if step.told is not None:
                yield from (_item(trail, step.told.at, line) for line in tell(trail, step.told))
            case _:
                continue
    yield f"</main>\n<footer><p>{inert_text(trail.root)}</p></footer>\n{CLOSING}"


def _header(trail: Trail) -> Iterator[str]:
    chain = "".join(f"{inert_text(name_of(trail, told.run.id))} ← " for told in trail.above)
    yield f'<header>\n<p class="who">{chain}<b>{inert_text(trail.principal)}</b></p>\n'
    yield f"<h1>{_words(trail.intent)}</h1>\n<ul class=facts>\n"
    for fact, tone in _facts(trail):
        yield f'<li class="{tone}">{inert_text(fact)}</li>\n'
    yield "</ul>\n</header>\n"


def _facts(trail: Trail) -> Iterator[tuple[str, Tone]]:
    run = trail.runs[trail.root]
    branches = [step.branch for step in walk(trail, calls=False) if step.turn is WalkTurn.ENTER]
    told = [step.told for step in walk(trail) if isinstance(step.told, Called)]
    yield trail.began_at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z"), Tone.PLAIN
    yield str(run.mode), Tone.PLAIN
    if trail.mark is not None:
        yield trail.mark, Tone.WARN
    yield _counted(len({branch.run.run.id for branch in branches if branch.run is not None}), "run"), Tone.PLAIN
    yield _counted(len(told), "call"), Tone.PLAIN
    yield f"{_counted(trail.receipts, 'receipt')} in the whole tree", Tone.PLAIN
    for outcome, count in (
        ("failed", sum(call.record.outcome == "failed" for call in told)),
        ("denied", sum(call.record.outcome == "denied" for call in told)),
        ("in doubt", sum(call.record.in_doubt for call in told)),
    ):
        if count:
            yield f"{_counted(count, 'call')} {outcome}", Tone.BAD
    if flagged := sum(bool(call.record.flags) for call in told):
        yield f"{_counted(flagged, 'call')} flagged", Tone.WARN
    yield from ((missing, Tone.WARN) for missing in missing_of(trail))


def _opening(trail: Trail, step: TrailStep, *, fold: bool) -> str:
    branch = step.branch
    states = "".join(f' <span class="pill {tone_of(state)}">{inert_text(str(state))}</span>' for state in branch.states)
    facts = [took(branch)]
    if branch.run is not None and (branch.run.run.attempt > 1 or (branch.handoff is None and step.depth)):
        facts.append(f"attempt {branch.run.run.attempt}")
    about = " · ".join(filter(None, facts))
    task = f'<span class="task">{_words(branch.task)}</span>' if branch.handoff is not None or _is_named(step) else ""
    name, _, end = branch.name.rpartition(" ")
    return (
        ("<li class=branch>\n" if step.depth else "")
        + f'<details{"" if fold else " open"} class="{tone_of(branch)}">\n<summary>{_time(trail, branch.began_at)}'
        f'<span class="name"><bdi>{inert_text(name)}</bdi> <code>{inert_text(end)}</code></span>{states}'
        f'<span class="about">{inert_text(about)}</span>{task}</summary>\n<ol>\n'
    )


def _is_named(step: TrailStep) -> bool:
    """Return whether the top run shows its task. The task of a root is in the header."""
    run = step.branch.run
    return step.depth == 0 and run is not None and run.run.parent is not None


def _item(trail: Trail, at: datetime, line: TrailLine) -> str:
    notes = "".join(f' <span class="note {note.tone}"><bdi>{inert_text(note.text)}</bdi></span>' for note in line.notes)
    text = f' <bdi class="text">{inert_text(line.text)}</bdi>' if line.text else ""
    return f'<li class="{line.tone}">{_time(trail, at)}<p><b>{inert_text(line.label)}</b>{text}{notes}</p></li>\n'


def _time(trail: Trail, at: datetime | None) -> str:
    if at is None:
        return "<time></time>"
    exact = inert_text(at.astimezone().isoformat(" ", "milliseconds"))
    return f'<time datetime="{at.isoformat()}" title="{exact}">{trail.since_began(at)}</time>'


def _words(words: Words | None) -> str:
    if words is None or words.found is not Found.KEPT:
        return f'<i class="gone">{"unknown" if words is None else words.found}</i>'
    return f"<bdi>{inert_text(words.bare)}</bdi>"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"
