"""Make the pictures in the documents: what commands print in a terminal, as SVG whose text can be selected.

    python website/pictures.py

`batonpass demo pull-request` plays the story, and two commands tell it. Ids and times are new each time.
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "pictures"
PICTURES: Final = {
    "blame": ("blame", "src/invoice.py:9", "--full"),
    "trail": ("trail", "last"),
}

COLUMNS: Final = 104  # what is longer is cut, and ends with an ellipsis
_TERMINAL: Final = 400  # wide enough for the command to cut nothing itself
_SIZE, _LINE, _WIDTH, _MARGIN = 13, 20, 7.85, 20
_SGR: Final = re.compile(r"\x1b\[([\d;]*)m")
_CLASSES: Final = {"1": "strong", "2": "dim", "31": "red", "32": "green", "33": "yellow", "34": "blue", "36": "cyan"}

_STYLE: Final = """
.terminal { --paper: #ffffff; --ink: #1f2328; --faint: #656d76; --edge: #d0d7de;
  --red: #b3261e; --green: #116329; --yellow: #8a4b00; --blue: #0550ae; --cyan: #1b6c77; }
@media (prefers-color-scheme: dark) { .terminal { --paper: #161b22; --ink: #e6edf3; --faint: #9198a1; --edge: #3d444d;
  --red: #ff8079; --green: #4ac26b; --yellow: #e3b341; --blue: #79c0ff; --cyan: #56d4dd; } }
.terminal rect { fill: var(--paper); stroke: var(--edge); }
.terminal text { fill: var(--ink); white-space: pre; font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas,
  "DejaVu Sans Mono", "Liberation Mono", monospace; }
.terminal .strong { font-weight: bold; } .terminal .dim { fill: var(--faint); } .terminal .red { fill: var(--red); }
.terminal .green { fill: var(--green); } .terminal .yellow { fill: var(--yellow); }
.terminal .blue { fill: var(--blue); } .terminal .cyan { fill: var(--cyan); }
"""


def printed(arguments: tuple[str, ...], folder: Path) -> str:
    """Return what a command of ours prints in a wide terminal, colours included."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(_TERMINAL), "LANG": "C.UTF-8"}
    command = [str(Path(sys.executable).parent / "batonpass"), *arguments]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65_536):
                shown += piece
        except OSError:  # how Linux says that nobody has the other end any more
            pass
        finally:
            os.close(ours)
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed in {folder}")
    return shown.decode().replace("\r\n", "\n")


def spans(line: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a printed line, each with the class of its colour."""
    colour, room = "", COLUMNS
    plain = len(_SGR.sub("", line))
    pieces = _SGR.split(line)
    for number, piece in enumerate(pieces):
        if number % 2:
            colour = " ".join(_CLASSES[code] for code in piece.split(";") if code in _CLASSES)
        elif piece and room > 0:
            cut = piece if plain <= COLUMNS or len(piece) < room else f"{piece[: room - 1]}…"
            room -= len(cut)
            yield cut, colour


def picture(name: str, arguments: tuple[str, ...], shown: str) -> str:
    """Return what a command printed as a picture; each line is one text, so that it is copied as it was printed."""
    lines = [[(f"$ batonpass {' '.join(arguments)}", "strong")]]
    lines += [list(spans(line)) for line in shown.rstrip("\n").split("\n")]
    width = round(COLUMNS * _WIDTH + 2 * _MARGIN)
    height = len(lines) * _LINE + 2 * _MARGIN
    rows = []
    for number, line in enumerate(lines):
        pieces = "".join(
            f'<tspan class="{colour}">{escape(text, quote=False)}</tspan>' if colour else escape(text, quote=False)
            for text, colour in line
        )
        rows.append(
            f'<text x="{_MARGIN}" y="{_MARGIN + number * _LINE + _SIZE + 1}" xml:space="preserve">{pieces}</text>'
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="terminal" viewBox="0 0 {width} {height}" width="{width}">',
            f"<title>What batonpass {name} prints</title>",
            f"<style>{_STYLE}</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


def told() -> dict[str, str]:
    """Play the story once, and return what each command of the pictures prints about it."""
    with TemporaryDirectory() as temporary:
        story = Path(temporary) / "story"
        printed(("demo", "pull-request", "--keep", str(story)), Path(temporary))
        return {name: printed(arguments, story) for name, arguments in PICTURES.items()}


def main() -> None:
    """Make all pictures anew."""
    FOLDER.mkdir(exist_ok=True)
    for name, shown in told().items():
        (FOLDER / f"{name}.svg").write_text(picture(name, PICTURES[name], shown), encoding="utf-8")


if __name__ == "__main__":
    main()
