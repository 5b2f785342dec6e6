"""What somebody does to a file: one edit, of lines that know who they are."""

import random
from collections.abc import Sequence

from tests.attribution.lines import Line, Writer, a_function, a_strong_text, a_text, texts_of


def edit(
    rng: random.Random, writer: Writer, lines: Sequence[Line], *, copies: bool = False, told: bool = False
) -> list[Line]:
    """Return the lines after one edit.

    Where a diff will tell what was done, nothing is done that two diffs tell in two ways: no line is typed over with
    what is there, and no block is moved that begins or ends with lines that are everywhere.
    """
    doings = {insert: 6, insert_function: 4, replace_lines: 8, touch: 6, delete: 4, move_whole if told else move: 2}
    if copies:
        doings[copy] = 1
    doing = rng.choices(list(doings), list(doings.values()))[0]
    if len(lines) < 40 or len(lines) > 300:
        doing = insert_function if len(lines) < 40 else delete
    return doing(rng, writer, list(lines))


def insert(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    at = rng.randrange(len(lines) + 1)
    lines[at:at] = writer.lines([a_text(rng) for _ in range(rng.randrange(1, 6))])
    return lines


def insert_function(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    starts = [index for index, line in enumerate(lines) if line.text.startswith("def ")] or [0]
    at = rng.choice([*starts, len(lines)])
    texts = a_function(rng)
    if rng.random() < 0.3:
        texts = [*texts[-2:], *texts[:-2]]
    lines[at:at] = writer.lines(texts)
    return lines


def replace_lines(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    size = rng.randrange(1, 5)
    at = rng.randrange(len(lines) - size)
    there = {line.text.strip() for line in lines[at : at + size]}
    texts = (a_text(rng) for _ in range(rng.randrange(1, 5)))
    return over(writer, lines, at, size, [a_strong_text(rng) if text.strip() in there else text for text in texts])


def touch(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    """Change a few letters of one line: it is whose who did it."""
    at = rng.randrange(len(lines))
    text = lines[at].text
    # Not the same twice: that two people happen to write one line in one place, nobody can find out.
    return over(writer, lines, at, 1, [f"{text}  # {rng.randrange(100_000)}" if text else f"# {rng.randrange(100)}"])


def delete(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    del writer
    size = rng.randrange(1, 7) if len(lines) <= 300 else rng.randrange(10, 40)
    at = rng.randrange(max(len(lines) - size, 1))
    del lines[at : at + size]
    return lines


def move(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    del writer
    size = rng.randrange(2, 10)
    at = rng.randrange(len(lines) - size)
    block = lines[at : at + size]
    del lines[at : at + size]
    to = rng.randrange(len(lines) + 1)
    # Put down before lines like it or after them: the file is the same, and diffs say after. Blank lines alone may be
    # put between others.
    step = 1 if len({line.text for line in block}) == 1 else size
    while texts_of(lines[to : to + step]) == texts_of(block[:step]):
        to += step
    lines[to:to] = block
    return lines


def move_whole(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    """Move a block with something to say at both ends, to between two such lines."""
    speaks = [index for index, line in enumerate(lines) if "(item" in line.text]
    starts = [index for index in speaks if index + 6 < len(lines)]
    if len(starts) < 4:
        return insert(rng, writer, lines)
    at = rng.choice(starts)
    end = max(index for index in speaks if index <= at + 6) + 1
    block = lines[at:end]
    del lines[at:end]
    places = [
        index for index in range(1, len(lines)) if all("(item" in lines[near].text for near in (index - 1, index))
    ]
    to = rng.choice(places or [0])
    lines[to:to] = block
    return lines


def copy(rng: random.Random, writer: Writer, lines: list[Line]) -> list[Line]:
    size = rng.randrange(2, 8)
    at = rng.randrange(len(lines) - size)
    to = rng.randrange(len(lines) + 1)
    lines[to:to] = writer.lines([line.text for line in lines[at : at + size]])
    return lines


def over(writer: Writer, lines: list[Line], at: int, size: int, texts: list[str]) -> list[Line]:
    """Type over lines. Whoever types what is there already changes nothing."""
    while size and texts and lines[at].text == texts[0]:
        at, size, texts = at + 1, size - 1, texts[1:]
    while size and texts and lines[at + size - 1].text == texts[-1]:
        size, texts = size - 1, texts[:-1]
    lines[at : at + size] = writer.lines(texts)
    return lines
