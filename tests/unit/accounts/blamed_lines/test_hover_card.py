"""A card says all that a short answer says, and nothing in it is live."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from batonpass.accounts.blamed_lines.hover_card import card_of, inert
from tests.unit.accounts.shop import ANA, BEFORE, Shop

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
HOSTILE = [
    "[click](command:workbench.action.terminal.new)",
    "![x](http://evil.example/pixel.png)",
    "<img src=http://evil.example/x onerror=alert(1)><b>bold</b>",
    "http://evil.example www.evil.example eve@evil.example",
    "&lt;script&gt; &#x5b;",
    "`code` ~~gone~~ *b* __b__ $(bug) $x$ | a | b |",
    "\\[not escaped\\](command:x)",
    "first\n\n# heading\n- item\n```\nfence",
    "# heading",
    "- item",
    "12. item",
    "--- ",
    "=== ",
    "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \u202e",
]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a directory with one file."""
    monkeypatch.chdir(tmp_path)
    shop = Shop(tmp_path)
    shop.path().write_text(BEFORE, encoding="utf-8")
    return shop


def _card(shop: Shop, line: int = 2, *, markdown: bool = True) -> str:
    blame = shop.blame()
    return card_of(blame, blame.lines[line - 1], now=NOW, markdown=markdown)


def test_a_card_has_the_whole_answer(shop: Shop) -> None:
    """Who, what kind of knowledge, task, chain and human; grant and approval; call and proof."""
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)
    head, chain, leave, call = _card(shop).split("  \n")

    assert (True, True) == (
        head.startswith("**editor "),
        head.endswith("** · written by an agent: recorded and signed"),
    )
    assert chain.endswith('"Shout" ← lead ← ana: "Fix it"')
    assert r"unverified · may write:\*\* (granted by lead) · approval: none needed" == leave
    assert call.endswith(" receipts verified")


def test_a_long_task_is_there_in_full(shop: Shop) -> None:
    """The row above has only its beginning."""
    task = "Round half-even, " * 20 + "as the tax office asks"
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead, task=task)

    assert f"task: {task}" == _card(shop, markdown=False).splitlines()[-1]


@pytest.mark.parametrize("words", HOSTILE)
def test_words_of_others_stay_words(shop: Shop, words: str) -> None:
    """Whatever could be live in Markdown is escaped; controls are spelled out."""
    with shop.relay.start(words, by=ANA) as lead:
        shop.edits(lead, task=words)
    card = _card(shop)
    bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", card.partition("** · ")[2])

    assert [] == re.findall(r"[`*\[\]<>&~|$@]|://|www\.|^\s*(?:[#+=-]|\d+[.)])", bare, re.MULTILINE)
    assert [] == [letter for letter in card if (ord(letter) < 0x20 and letter != "\n") or letter == "\u202e"]
    assert "\n\n" not in card


def test_what_is_harmless_is_left_alone() -> None:
    """Some editors show the backslashes."""
    assert "write_file 9c1e · a: b, c. (d) - e" == inert("write_file 9c1e · a: b, c. (d) - e")


def test_nobody_is_told_too(shop: Shop) -> None:
    """In a sentence."""
    with shop.relay.start("Fix it", by=ANA) as lead:
        shop.edits(lead)

    assert "**unexplained** · nothing recorded wrote it, and it is in no commit" == _card(shop, 1).split("  \n")[0]
