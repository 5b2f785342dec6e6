"""Lay out the pages of the site in one folder, so that any builder of static sites can take them from there.

    python website/stage.py FOLDER

The documents are written to be read in the repository. Here README.md becomes the front page, a link that leads out of
`docs` leads to a page of the site instead, and the pages that can be derived are written: the Python reference, the
lists of decisions and specifications, and the examples. Beside the folder, `FOLDER.yml` says in which order they stand.
"""

import ast
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"

# Where a document of the repository stands on the site; what is below docs keeps its name.
MOVED: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "bench/README.md": "project/bench.md",
    "bench/results/latest.md": "project/bench-results.md",
    "docs/ARCHITECTURE.md": "project/architecture.md",
    "docs/THREATS.md": "spec/threats.md",
}
GUIDES: Final = (
    *(
        "blame",
        "team",
        "editors",
        "import",
        "claude-code",
        "coding-agents",
        "openai-agents",
        "langgraph",
        "crewai",
        "agent-framework",
        "pydantic-ai",
        "google-adk",
        "strands",
        "own-loop",
        "mcp",
        "handoffs",
        "agents",
    ),
    *("sessions", "review", "drift", "policy"),
    *("grants", "untrusted", "effects", "credentials", "verify-elsewhere", "postgresql", "page", "serve", "remote"),
    "a2a",
    "mcp-server",
    "telemetry",
)
REFERENCE: Final = ("cli", "errors", "findings", "frameworks", "settings", "json", "python", "testing")
SPECIFICATION: Final = (
    *("receipt", "chain", "content", "keys", "verification", "seal", "bundle", "notes", "baton", "lifecycle"),
    *(
        "session",
        "runner",
        "grant",
        "policy",
        "taint",
        "doors",
        "http",
        "telemetry",
        "claude-code",
        "coding-agents",
        "events",
        "threats",
    ),
)
PROJECT: Final = ("architecture", "bench", "bench-results", "changelog", "security", "contributing")

# The public names in the order in which one meets them. A name that is in none of these stands under the last heading.
NAMES: Final = {
    "Begin": "start blame Relay AsyncRelay",
    "Work": "Run Handoff Result current_run current_call tool Program Worker",
    "What travels": "Decision RejectedPath OpenQuestion Constraint Exclusion Assumption Claim WorkItem Report Budget"
    " Card",
    "What is allowed": "Grant HandoffPolicy",
    "The record": "open_store Evidence Seal",
    "More names": "",
}

_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
_CODE: Final = re.compile(r"(^ *```.*?^ *```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
_TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
_FIRST: Final = re.compile(r"^# .+\n\n((?:[^\n]+\n)+)", re.MULTILINE)
_ERROR: Final = re.compile(r'^<a id="([^"]+)"></a>\n\n(### `\1`)$', re.MULTILINE)
_PICTURE: Final = re.compile(r"^!\[[^\]]*\]\(([^)\s]+\.svg)\)$", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Return where each file of the repository that is a page stands on the site."""
    found = {ROOT / name: place for name, place in MOVED.items()}
    for path in sorted(DOCS.rglob("*")):
        if path.is_file():
            found.setdefault(path, path.relative_to(DOCS).as_posix())
    for path in sorted((ROOT / "examples").glob("*.py")):
        found[path] = f"examples/{path.stem}.md"
    for folder in ("adr", "spec", "examples"):
        found[DOCS / folder if folder != "examples" else ROOT / folder] = f"{folder}/index.md"
    return found


def moved(text: str, source: Path, placed: dict[Path, str]) -> str:
    """Return a document whose links fit the site; a link to something that is no page there is only its words."""
    kept: list[str] = []

    def hide(code: re.Match[str]) -> str:
        kept.append(code[0])
        return f"\0{len(kept) - 1}\0"

    def follow(link: re.Match[str]) -> str:
        picture, words, target, part = link[1], link[2], link[3], link[4] or ""
        if not target or "://" in target:
            return link[0]
        place = placed.get(Path(os.path.normpath(source.parent / target)))
        if place is None:
            return words
        return f"{picture}[{words}]({os.path.relpath(place, Path(placed[source]).parent)}{part})"

    # Code is hidden meanwhile: what looks like a link in it is none, and the words of a link may hold code.
    followed = _LINK.sub(follow, _CODE.sub(hide, text))
    return re.sub(r"\0(\d+)\0", lambda mark: kept[int(mark[1])], followed)


def dressed(text: str, source: Path) -> str:
    """Return a document with what only the site can do: pictures with text to select, anchors on headings."""

    def drawn(picture: re.Match[str]) -> str:
        svg = (source.parent / picture[1]).read_text(encoding="utf-8")
        return f'<div class="picture">{svg.strip()}</div>'

    return _ERROR.sub(r"\2 { #\1 }", _PICTURE.sub(drawn, text))


def title(text: str) -> str:
    """Return the title of a document."""
    found = _TITLE.search(text)
    if found is None:
        raise ValueError(f"a page without a title: {text[:60]!r}")
    return found[1]


def opening(text: str) -> str:
    """Return the paragraph below the title, in one line."""
    found = _FIRST.search(text)
    return " ".join(found[1].split()) if found else ""


def sentence(text: str) -> str:
    """Return the first sentence of a paragraph, without its links."""
    return re.split(r"(?<=[.:;]) ", _LINK.sub(lambda link: link[2], text), maxsplit=1)[0].rstrip(".:;") + "."


def decisions() -> str:
    """Return the page that lists all decisions, with the state of each."""
    lines = ["# Decisions", "", "Why it is as it is. A decision is never edited; a later one supersedes it.", ""]
    lines += ["| decision | state |", "|---|---|"]
    for path in sorted((DOCS / "adr").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        lines.append(f"| [{title(text)}]({path.name}) | {opening(text)} |")
    return "\n".join([*lines, ""])


def specification() -> str:
    """Return the page that lists the specification, with how each page begins."""
    lines = [
        "# Specification",
        "",
        "What others may rely on. It is enough to write a verifier in another language.",
        "",
    ]
    lines += ["| page | about |", "|---|---|"]
    for name in SPECIFICATION:
        path = DOCS / "THREATS.md" if name == "threats" else DOCS / "spec" / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        lines.append(f"| [{title(text)}]({name}.md) | {sentence(opening(text))} |")
    return "\n".join([*lines, ""])


def example(path: Path) -> str:
    """Return an example as a page: what it says about itself, then the program."""
    text = path.read_text(encoding="utf-8")
    first, _, rest = (ast.get_docstring(ast.parse(text)) or path.stem).partition("\n")
    name = path.stem.replace("_", " ").capitalize()
    return f"# {name}\n\n{first}\n{rest}\n\n```py\n{text}```\n"


def public_names(module: str) -> list[str]:
    """Return what a module lists in `__all__`, without importing it."""
    path = ROOT / "src" / module.replace(".", "/") / "__init__.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return list(ast.literal_eval(value))
    raise ValueError(f"{module} lists no public names")


def entries(module: str, names: list[str]) -> Iterator[str]:
    """Yield what asks for the documentation of some names."""
    for name in names:
        yield from (
            f"::: {module}.{name}",
            "    options:",
            f'      heading: "{name}"',
            f'      toc_label: "{name}"',
            "",
        )


def python_reference() -> str:
    """Return the page of the public names, in groups."""
    names = public_names("batonpass")
    groups = {heading: [name for name in listed.split() if name in names] for heading, listed in NAMES.items()}
    groups["More names"] = [name for name in names if not any(name in listed for listed in groups.values())]
    lines = [
        "# Python",
        "",
        "What `from batonpass import …` gives, from the docstrings. Everything else is internal and may change.",
        "Inside, a `Run` is a `LiveRun` and a `Handoff` a `LiveHandoff`.",
        "",
    ]
    for heading, listed in groups.items():
        if listed:
            lines += [f"## {heading}", "", *entries("batonpass", listed)]
    return "\n".join(lines)


def testing_reference() -> str:
    """Return the page of what is there for tests."""
    lines = [
        "# For tests",
        "",
        "`batonpass.testing` is public: use it to test your own agents, a store of yours, or a new door.",
        "",
        *entries("batonpass.testing", public_names("batonpass.testing")),
        *(
            "## The suite for stores",
            "",
            "::: batonpass.testing.conformance",
            "    options:",
            "      members: false",
            "",
        ),
        *("## The suite for doors", "", "::: batonpass.testing.doors", "    options:", "      members: false", ""),
    ]
    return "\n".join(lines)


def derived() -> Iterator[tuple[str, str]]:
    """Yield the pages that are written from others: place and text."""
    yield "reference/python.md", python_reference()
    yield "reference/testing.md", testing_reference()
    yield "adr/index.md", decisions()
    yield "spec/index.md", specification()
    shown = sorted((ROOT / "examples").glob("*.py"))
    rows = [f"- [{path.stem.replace('_', ' ').capitalize()}]({path.stem}.md)" for path in shown]
    yield "examples/index.md", "\n".join(["# Examples", "", "Whole programs, which the tests run.", "", *rows, ""])
    for path in shown:
        yield f"examples/{path.stem}.md", example(path)


def navigation() -> list[dict[str, Any]]:
    """Return the order of the pages."""

    def section(folder: str, names: tuple[str, ...]) -> list[str]:
        return [f"{folder}/{name}.md" for name in names]

    examples = [f"examples/{path.stem}.md" for path in sorted((ROOT / "examples").glob("*.py"))]
    return [
        {
            "Start": [
                "index.md",
                {"Examples": ["examples/index.md", *examples]},
                {"The project": section("project", PROJECT)},
            ]
        },
        {"Guides": section("guide", GUIDES)},
        {"Reference": section("reference", REFERENCE)},
        {"Specification": ["spec/index.md", *section("spec", SPECIFICATION)]},
        {"Decisions": ["adr/index.md", *(f"adr/{path.name}" for path in sorted((DOCS / "adr").glob("[0-9]*.md")))]},
        {"Glossary": "glossary.md"},
    ]


def main(folder: Path) -> None:
    """Write all pages below a folder, and the order beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    placed = pages()
    written = dict(derived())
    for source, place in placed.items():
        if place in written or not source.is_file():
            continue
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = moved(dressed(source.read_text(encoding="utf-8"), source), source, placed)
            if place == "glossary.md":  # it is alone in its part, so there is nothing to navigate
                text = f"---\nhide: [navigation]\n---\n\n{text}"
            (folder / place).write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(source, folder / place)
    for place, text in written.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")
    settings = {
        "INHERIT": os.path.relpath(ROOT / "mkdocs.yml", folder.parent),
        "docs_dir": folder.name,
        "nav": navigation(),
    }
    folder.with_suffix(".yml").write_text(json.dumps(settings, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
