"""A flame graph as one SVG that needs nothing else: each box is a function, as wide as the processor time in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from bench.sampler import OTHER_THREADS, Stack

_WIDTH: Final = 1600
_EDGE: Final = 12
_ROW: Final = 19
_TOP: Final = 92
_SANS: Final = "DejaVu Sans, Verdana, sans-serif"
_LETTER: Final = 6.7  # pixels, of the font below
_NARROWEST: Final = 1.2  # pixels; nobody can point at less
# By the first part of a module's name; what has none here is a library's.
_COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "handoff": ("the acts: handoff, relay, agents, doors", "#f4a259"),
    "relay": ("", "#f4a259"),
    "dispatch": ("", "#f4a259"),
    "adapters": ("", "#f4a259"),
    "policy": ("", "#f4a259"),
    "ledger": ("ledger", "#f6d55c"),
    "store": ("store, with SQLite in it", "#7fb3d5"),
    "records": ("records, audit, accounts: reading", "#a9cce3"),
    "audit": ("", "#a9cce3"),
    "accounts": ("", "#a9cce3"),
    "attribution": ("", "#a9cce3"),
    "model": ("model, wire: values and bytes", "#a3c9a8"),
    "wire": ("", "#a3c9a8"),
    "signing": ("signing", "#c39bd3"),
    "guard": ("guard, grants, scan, credentials: judging", "#e8a0a0"),
    "grants": ("", "#e8a0a0"),
    "scan": ("", "#e8a0a0"),
    "credentials": ("", "#e8a0a0"),
}
_LIBRARY: Final = ("Python and libraries", "#d5d8dc")

_SCRIPT: Final = """
const boxes = [...document.querySelectorAll("g.box")].map(g => ({
  g, rect: g.querySelector("rect"), text: g.querySelector("text"),
  x: +g.dataset.x, w: +g.dataset.w, depth: +g.dataset.d, name: g.dataset.n }));
const width = %(width)d, edge = %(edge)d, letter = %(letter)f;
const note = document.getElementById("note");
function show(x, w, depth) {
  for (const b of boxes) {
    const inside = b.x + b.w > x + 1e-9 && b.x < x + w - 1e-9;
    const left = Math.max(b.x, x), right = Math.min(b.x + b.w, x + w);
    const px = (right - left) / w * (width - 2 * edge);
    b.g.style.display = inside && px > 0.3 ? "" : "none";
    b.rect.setAttribute("x", edge + (left - x) / w * (width - 2 * edge));
    b.rect.setAttribute("width", Math.max(px - 0.5, 0.3));
    b.rect.style.opacity = b.depth < depth ? 0.5 : 1;
    b.text.setAttribute("x", edge + (left - x) / w * (width - 2 * edge) + 4);
    const room = Math.floor((px - 8) / letter);
    b.text.textContent = room < 3 ? "" : b.name.length <= room ? b.name : b.name.slice(0, room - 1) + "…";
  }
}
for (const b of boxes) {
  b.g.addEventListener("click", () => show(b.x, b.w, b.depth));
  b.g.addEventListener("mouseover", () => { note.textContent = b.g.querySelector("title").textContent; });
}
document.getElementById("whole").addEventListener("click", () => show(0, 1, 0));
"""


@dataclass(slots=True)
class Node:
    """A function under the functions that called it."""

    name: str
    samples: int = 0
    called_at: int = 0  # the first line in its caller that calls it
    below: dict[str, "Node"] = field(default_factory=dict)

    def add(self, stack: Stack, samples: int) -> None:
        """Count a stack from here inwards."""
        self.samples += samples
        if stack:
            place, *rest = stack
            known = self.below.setdefault(place.function, Node(place.function, called_at=place.called_at))
            known.called_at = min(known.called_at, place.called_at)
            known.add(tuple(rest), samples)

    def children(self) -> list["Node"]:
        """Return what it calls in the order of its source: a graph is read from left to right as the code downwards."""
        return sorted(self.below.values(), key=lambda node: (node.name == OTHER_THREADS, node.called_at, node.name))


def grow(stacks: Mapping[Stack, int], root: str) -> Node:
    """Return stacks as a tree."""
    tree = Node(root)
    for stack, samples in stacks.items():
        tree.add(stack, samples)
    return tree


def draw(tree: Node, *, title: str, facts: str, seconds: float) -> str:
    """Return the graph. `seconds` is the processor time of one act, of which every box has its share."""
    boxes = list(_boxes(tree, 0.0, 0, tree.samples or 1))
    height = _TOP + _ROW * (1 + max((box.depth for box in boxes), default=0)) + _EDGE
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="11">'
    )
    whole = (
        f'<text id="whole" x="{_WIDTH - _EDGE}" y="24" text-anchor="end" font-family="{_SANS}" fill="#1f618d" '
        'style="cursor:pointer">show everything again</text>'
    )
    lines = [
        opening,
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{_EDGE}" y="24" font-size="17" font-family="{_SANS}" font-weight="bold">{escape(title)}</text>',
        f'<text x="{_EDGE}" y="43" font-family="{_SANS}">{escape(facts)}</text>',
        *_legend(),
        f'<text id="note" x="{_EDGE}" y="{_TOP - 10}">Point at a box to read it here; click it to look closer.</text>',
        whole,
        *(_drawn(box, tree.samples or 1, seconds) for box in boxes),
        f"<script><![CDATA[{_SCRIPT % {'width': _WIDTH, 'edge': _EDGE, 'letter': _LETTER}}]]></script>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Box:
    node: Node
    x: float  # from 0 to 1
    w: float
    depth: int


def _boxes(node: Node, x: float, depth: int, total: int) -> Iterator[_Box]:
    w = node.samples / total
    if w * (_WIDTH - 2 * _EDGE) < _NARROWEST:
        return
    yield _Box(node, x, w, depth)
    for child in node.children():
        yield from _boxes(child, x, depth + 1, total)
        x += child.samples / total


def _drawn(box: _Box, total: int, seconds: float) -> str:
    left = _EDGE + box.x * (_WIDTH - 2 * _EDGE)
    width = box.w * (_WIDTH - 2 * _EDGE)
    top = _TOP + box.depth * _ROW
    own = box.node.samples - sum(child.samples for child in box.node.below.values())
    said = (
        f"{box.node.name}: {box.w:.1%}, {box.w * seconds * 1e6:,.0f} µs of an act; "
        f"{own / total:.1%} in itself and in C that it calls"
    )
    # The function first: its module is what may be cut off.
    room = int((width - 8) / _LETTER)
    module, _, function = box.node.name.partition(":")
    name = f"{function} · {module}" if function else module
    shown = "" if room < 3 else name if len(name) <= room else f"{name[: room - 1]}…"
    return (
        f'<g class="box" data-x="{box.x:.6f}" data-w="{box.w:.6f}" data-d="{box.depth}" data-n="{escape(name)}">'
        f"<title>{escape(said)}</title>"
        f'<rect x="{left:.2f}" y="{top}" width="{max(width - 0.5, 0.3):.2f}" height="{_ROW - 1}" rx="1.5" '
        f'fill="{_colour(module)}"/>'
        f'<text x="{left + 4:.2f}" y="{top + 13}" pointer-events="none">{escape(shown)}</text></g>'
    )


def _colour(module: str) -> str:
    return _COLOURS.get(module.partition(".")[0], _LIBRARY)[1]


def _legend() -> Iterator[str]:
    x = float(_EDGE)
    entries: Sequence[tuple[str, str]] = [entry for entry in (*_COLOURS.values(), _LIBRARY) if entry[0]]
    for words, colour in entries:
        yield f'<rect x="{x:.0f}" y="54" width="12" height="12" rx="2" fill="{colour}"/>'
        yield f'<text x="{x + 17:.0f}" y="64" font-family="{_SANS}">{escape(words)}</text>'
        x += 17 + 6.6 * len(words) + 16
