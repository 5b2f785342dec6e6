"""The glossary has the words that everybody has to know, and no word that we do not use."""

import re
from typing import Final

from tests.house.tree import DOCS, PACKAGE, ROOT, document, files

# The words without which nothing else can be explained.
NEEDED: Final = (
    *("Principal", "Agent", "Run", "Handoff", "Baton", "Grant", "Receipt"),
    *("Effect", "Report", "Relay", "Seal", "Session", "Finding"),
)
ENTRY: Final = re.compile(r"^### (.+)\n\n((?:.+\n)+)", re.MULTILINE)
LINK: Final = re.compile(r"\[[^\]]+\]\([^)\s]+\)")
# Common words for things that have another word here, and that word. Other programs' own names are fine.
SYNONYMS: Final = {
    "audit log": "ledger",
    "audit trail": "trail",
    "child agent": "receiver",
    "escalation": "hold",
    "log entry": "receipt",
    "orchestrator": "agent",
    "parent agent": "sender",
    "permission": "permit",
    "permissions": "grant",
    "privilege": "grant",
    "privileges": "grant",
    "sign-off": "approval",
    "sub-task": "handoff",
    "subtask": "handoff",
}


def entries() -> dict[str, str]:
    """Return the words of the glossary with what it says about them."""
    return dict(ENTRY.findall(document("glossary.md")))


def sentences(text: str) -> int:
    """Return how many sentences an entry has; the link at its end is none."""
    return len(re.findall(r"[.!?](?=\s|$)", LINK.sub("", text)))


def test_the_glossary_has_the_words_everybody_needs() -> None:
    """A newcomer finds each word of the design."""
    assert [] == [word for word in NEEDED if word not in entries()]


def test_a_word_is_explained_once() -> None:
    """No word has two entries, under whichever heading."""
    words = [word.lower() for word in re.findall(r"^### (.+)$", document("glossary.md"), re.MULTILINE)]

    assert sorted(set(words)) == sorted(words)
    assert len(words) == len(entries())


def test_an_entry_is_short_and_leads_on() -> None:
    """One to four plain sentences, and a link to where the word is specified."""
    assert {} == {word: text for word, text in entries().items() if not LINK.search(text) or sentences(text) > 4}


def test_the_glossary_has_no_dead_words() -> None:
    """Each word is used in our code: as a name, in a docstring or in what a command prints."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in files(PACKAGE, ".py", ".sql", ".toml")).lower()

    def is_used(word: str) -> bool:
        return re.search("(?<![a-z])" + word.lower().replace(" ", "[ _-]"), code) is not None

    assert [] == [word for word in entries() if not is_used(word)]


def test_documents_and_help_use_the_words_of_the_glossary() -> None:
    """No guide, command or front page has another word for a thing that the glossary names."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, SYNONYMS))})\b", re.IGNORECASE)
    read = (ROOT / "README.md", *files(DOCS / "guide", ".md"), *files(PACKAGE / "cli", ".py"))
    found = {path.name: sorted(set(pattern.findall(path.read_text(encoding="utf-8")))) for path in read}

    assert {} == {name: words for name, words in found.items() if words}
