"""What reaches a terminal is harmless, and stands in columns."""

import sys

import pytest

from batonpass.cli.output.terminal import Painted, cut, folded, paint, say, say_json, say_text, table, width
from batonpass.model.base.visible import visible


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        pytest.param("plain text, naïve, 中文, 🎉", "plain text, naïve, 中文, 🎉", id="what people write stays"),
        pytest.param("\\x1b[31mred\\x1b[0m", "\x1b[31mred\x1b[0m", id="a colour is spelled out"),
        pytest.param("\\x1b]0;title\\x07", "\x1b]0;title\x07", id="a window title is spelled out"),
        pytest.param("\\x9b2J", "\x9b2J", id="so is an escape in one character"),
        pytest.param("a\\nb\\rc\\x08d\\te", "a\nb\rc\bd\te", id="so is what moves the cursor"),
        pytest.param("\\u202egpj.exe", "\u202egpj.exe", id="so is what turns the direction around"),
        pytest.param("a\\u200bb\\ufeff", "a\u200bb\ufeff", id="so is what nobody sees"),
        pytest.param("\\u2028\\u2029", "\u2028\u2029", id="so are other ends of a line"),
        pytest.param("\\udce4", "\udce4", id="so is half a character"),
        pytest.param("\\U000e0041", "\U000e0041", id="so are invisible tags"),
        pytest.param("\\U000e0141x\\ufe01", "\U000e0141x\ufe01", id="so are selectors of nothing that can be selected"),
        pytest.param("\\u3164\\u115f\\u034f", "\u3164\u115f\u034f", id="so are letters without a shape"),
        pytest.param("DE89\\u200d3704", "DE89\u200d3704", id="so is a joiner in a number"),
        pytest.param(
            "\u0645\u06cc\\u200c\\u200d\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u200d\u062e\u0648\u0627\u0647\u0645",
            id="so is one of two joiners, which could carry words",
        ),
        pytest.param(
            "👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3",
            "👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3",
            id="a joined emoji stays",
        ),
        pytest.param(
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u845b\U000e0100",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u845b\U000e0100",
            id="so do words that need them",
        ),
    ],
)
def test_text_is_made_visible(expected: str, text: str) -> None:
    """A terminal gets nothing that it would obey or hide."""
    assert expected == visible(text)


def test_no_control_character_survives() -> None:
    """Of all characters below U+3000, none that is a control reaches a terminal."""
    shown = visible("".join(map(chr, range(0x3000))))

    assert [] == [ord(character) for character in shown if ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F]


def test_saying_escapes_what_was_not_painted(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever forgets about hostile text is safe all the same."""
    say("a\x1b[2J", paint("b\x1b[2J"), Painted("c"))

    assert "a\\x1b[2Jb\\x1b[2Jc\n" == capsys.readouterr().out


def test_painted_text_is_coloured_and_safe() -> None:
    """Our own colours are the only escape sequences in a painted text."""
    assert "\x1b[31mred\\x1b\x1b[0m" == paint("red\x1b", "red")


def test_text_without_a_style_has_no_codes() -> None:
    """Nothing is put around what has no style."""
    assert ("", "plain") == (paint("", "red"), paint("plain"))


def test_somebodys_text_stands_behind_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """A text cannot pose as our own output, nor fill the screen."""
    say_text("whole: 3 receipts\r\n\tb\nc\nd\n", at_most=2)

    assert "  │ whole: 3 receipts\\r\n  │     b\n  │ … 2 more lines\n" == capsys.readouterr().out


def test_json_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON on a terminal is as harmless as text."""
    say_json({"a": "\x1b\x9b\u202e"}, line=True)

    assert '{"a": "\\u001b\\u009b\\u202e"}\n' == capsys.readouterr().out


def test_a_table_has_columns_by_what_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """Wide characters and colours do not push a column aside."""
    table([["中文", "x"], [paint("é", "red"), "y"], ["e\u0301e", ""]], header=("a", "b"), indent=" ")

    assert " a     b\n 中文  x\n é     y\n e\u0301e\n" == capsys.readouterr().out


def test_an_empty_table_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without rows and without a header nothing is printed."""
    table([])

    assert "" == capsys.readouterr().out


def test_a_pipe_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Only a terminal has an end of the line."""
    table([["a", "b" * 500]])

    assert f"a  {'b' * 500}\n" == capsys.readouterr().out


def test_a_terminal_gets_the_last_column_cut(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a terminal a table stays within its lines."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")

    table([["a", "b" * 500]])

    assert f"a  {'b' * 36}…\n" == capsys.readouterr().out


@pytest.mark.parametrize(
    ("expected", "text", "room"),
    [
        pytest.param("abc", "abc", 3, id="what fits stays"),
        pytest.param("ab…", "abcd", 3, id="what does not is cut"),
        pytest.param("中…", "中文字", 4, id="a wide character is not cut in half"),
        pytest.param("a…", "a bcd", 3, id="no space before the end"),
        pytest.param("…", "abc", 0, id="no room at all"),
    ],
)
def test_texts_are_cut(expected: str, text: str, room: int) -> None:
    """A cut text says so and has room."""
    assert expected == cut(text, room)


def test_width_is_what_is_seen() -> None:
    """Colours and combining marks take no room; wide characters take two columns."""
    assert (0, 1, 4, 3) == (width(""), width("e\u0301"), width("中文"), width(click_red("abc")))


def click_red(text: str) -> str:
    return paint(text, "red")


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (["all of it"], "all of it"),
        (["between", "words and", "not in one"], "between words and not in one"),
        (["0123456789", "abc and", "more"], "0123456789abc and more"),
        (["漢字漢字漢", "字漢字"], "漢字漢字漢字漢字"),
        (["e" + "\u0301" * 30 + "123456789", "0"], "e" + "\u0301" * 30 + "1234567890"),
    ],
    ids=["fits", "between words", "a long word", "wide characters", "marks that take no room"],
)
def test_texts_are_folded(expected: list[str], text: str) -> None:
    """Each line fits into ten columns by what is seen, and nothing is lost."""
    assert expected == folded(text, 10)
