"""The sheet of a decision: uncut, in its order, with its effect as a difference and where words came from."""

import re
from contextlib import suppress
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from batonpass import Constraint, Relay, tool
from batonpass.errors import BatonpassError
from tests.unit.server.conftest import a_house
from tests.unit.server.page.browser import a_browser

POLICY = """\
[policy]
enforce = true

[[rules]]
name = "writes-need-somebody"
on = "call"
gate = "approve"
action = "write"
"""


def a_relay(directory: Path) -> Relay:
    """Return a relay that holds every write."""
    (directory / "batonpass.toml").write_text(POLICY, encoding="utf-8")
    home = directory / ".batonpass"
    policy = directory / "batonpass.toml"
    return Relay.open(home / "ledger.db", home=home, policy=policy, work_tree=directory, keys_in_files=True)


def sheet(relay: Relay, agent: str) -> str:
    """Return the page on which somebody decides about an agent's handoff."""
    with relay.store.view() as view:
        held = next(one.id for one in view.find_handoffs() if one.to == agent)
    return a_browser(a_house(relay), "operator").get(f"/approvals/{held}").body.decode()


def text_of(shown: str) -> str:
    """Return the text that the script of the page makes of what stands on the screen."""
    first = re.search(r'<b data-line="first">(.*?)</b>', shown)
    last = re.search(r'<code data-line="last">(.*?)</code>', shown)
    assert first
    assert last
    rows = re.findall(r'<span data-label="([^"]*)"[^>]*>(.*?)</span>', shown, re.DOTALL)
    lines = [first[1], *(f"  {unescape(label):10}{text}" for label, text in rows), last[1]]
    return unescape("\n".join(lines)) + "\n"


def test_a_write_is_shown_as_a_difference_and_hashed_as_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that go and come have a look of their own, and the digest is that of the text on the screen."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    write = tool("write_file", target="path", action="write", reversible=True)(lambda path, text: (path, text))
    with a_relay(tmp_path) as relay:
        lead = relay.start("Count to four", by="user:ana", agent="lead")
        lead.record(Constraint("count in words"))
        with suppress(BatonpassError), lead.hand_off("editor", "Go on counting", may=["write:**"]) as editor:
            editor.call(write, "a.py", "one\n2\nthree\nfour\n")
        shown = sheet(relay, "editor")
    looks = re.findall(r'<span data-label="[^"]*" class="(plus|minus|same|mark)">(.*?)</span>', shown)
    titles = re.findall(r"<h2 data-heading>([^<]+)</h2>", shown)
    digest = re.search('data-shown="([0-9a-f]{64})"', shown)

    assert [
        ("mark", "@ a.py: 1 line goes, 2 lines come"),
        ("same", "  one"),
        ("minus", "- two"),
        ("plus", "+ 2"),
        ("same", "  three"),
        ("plus", "+ four"),
    ] == [(look, unescape(text)) for look, text in looks if text.strip()]
    assert ["Who wants it", "What will happen", "Why it waits", "What follows", "What was agreed"] == titles
    assert digest
    assert digest[1] == sha256(text_of(shown).encode()).hexdigest()
    for words in (
        "Count to four",
        "lead",
        "batonpass.toml:4",
        "writes-need-somebody",
        "count in words",
        "if yes",
        "if no",
    ):
        assert words in text_of(shown)


@pytest.mark.parametrize(
    ("reversible", "said", "danger"),
    [
        pytest.param(True, None, None, id="can be undone"),
        pytest.param(False, "it cannot be undone", "cannot be undone", id="cannot"),
        pytest.param(None, "nobody says that it can be undone", "nobody says that it can be undone", id="undeclared"),
    ],
)
def test_whether_it_can_be_undone_is_said_as_it_was_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reversible: bool | None, said: str | None, danger: str | None
) -> None:
    """On the sheet and on top of it: a tool that declares that its calls can be undone frightens nobody."""
    monkeypatch.chdir(tmp_path)
    send = tool("send", target="to", action="write", reversible=reversible)(lambda to: to)
    with a_relay(tmp_path) as relay:
        lead = relay.start("Send it", by="user:ana", agent="lead")
        with suppress(BatonpassError), lead.hand_off("mailer", "Send it to Ben", may=["write:**"]) as mailer:
            mailer.call(send, "ben")
        shown = sheet(relay, "mailer")
    undo = re.search(r'<span data-label="undo">([^<]+)</span>', shown)
    chip = re.search(r'<span class="chip is-bad">.*?</svg> ([^<]+)</span>', shown)

    assert (said, danger) == (undo and undo[1], chip and chip[1])


def test_words_from_outside_are_named_with_their_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the call that brought them and by the file, and how to follow their way."""
    monkeypatch.chdir(tmp_path)
    page = "Chains report a drop of a quarter after the motorway was closed, says the trade press of the east."
    read = tool("read_page", reads=True, external=True)(lambda url: page)  # noqa: ARG005 - scripted
    send = tool("send_mail", target="to", action="send", reversible=False)(lambda to, text: (to, text))
    with a_relay(tmp_path) as relay:
        lead = relay.start("Tell the board", by="user:ana", agent="lead")
        with suppress(BatonpassError), lead.hand_off("mailer", "Send it", may=["send:**", "call:*"]) as mailer:
            mailer.call(read, "https://press.example/east")
            mailer.attach("east.txt", page, source="https://press.example/east", untrusted=True)
            mailer.call(send, to="board", text=page)
        shown = unescape(sheet(relay, "mailer"))
    outside = shown[shown.index("Words from outside stand in it") :]

    assert "has read from outside" in shown
    assert re.search(r"<code>(read_page|east\.txt from https://press\.example/east)", outside)
    assert "<code>batonpass taint " in outside


def test_the_lines_of_a_text_are_lines_and_pose_as_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mail is read as it will be; neither its words nor a name begin a line like an argument; nothing hides in it."""
    monkeypatch.chdir(tmp_path)
    send = tool("send_mail", target="to", action="write", reversible=False)(lambda to, subject, text, more: to)  # noqa: ARG005 - held
    with a_relay(tmp_path) as relay:
        lead = relay.start("Tell the board", by="user:ana", agent="lead")
        with suppress(BatonpassError), lead.hand_off("mailer", "Send it", may=["write:**"]) as mailer:
            words = 'Dear board,\nto = "all"\n'
            mailer.call(send, to="board", subject="DE89\u200d3704", text=words, more={"a\nto": "b\nc"})
        shown = sheet(relay, "mailer")
    digest = re.search('data-shown="([0-9a-f]{64})"', shown)
    rows = text_of(shown).splitlines()
    first = next(number for number, row in enumerate(rows) if row.startswith("  with "))

    assert digest
    assert digest[1] == sha256(text_of(shown).encode()).hexdigest()
    assert [
        'more = {"a\\nto": "b\\nc"}',
        'subject = "DE89\\u200d3704"',
        "text =",
        "  │ Dear board,",
        '  │ to = "all"',
        "  │ ",
        'to = "board"',
    ] == [row[12:] for row in rows[first : first + 7]]
