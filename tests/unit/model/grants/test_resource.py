"""Resources: one spelling for one thing, and no spelling that somebody else reads as another."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError
from batonpass.model.grants.condition import Under
from batonpass.model.grants.pattern import read_pattern
from batonpass.model.grants.resource import LONGEST, Resource, read_resource


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        pytest.param("src/a.py", "src/a.py", id="as it is"),
        pytest.param("./src//a.py", "src/a.py", id="a dot and two slashes"),
        pytest.param("src/a/./b/", "src/a/b", id="a slash at the end"),
        pytest.param("/etc/hosts", "/etc/hosts", id="an absolute one stays absolute"),
        pytest.param("//etc//hosts", "/etc/hosts", id="two slashes in front are one"),
        pytest.param("cafe\u0301/x", "caf\u00e9/x", id="letters and their accents are composed"),
        pytest.param(".github/ci.yml", ".github/ci.yml", id="a hidden file is a file"),
        pytest.param("app/[id]/a b.tsx", "app/[id]/a b.tsx", id="brackets and spaces within"),
        pytest.param("100%/50% off", "100%/50% off", id="a percent sign that encodes nothing"),
        pytest.param(".", ".", id="the work tree itself"),
        pytest.param("", ".", id="nothing is the work tree itself"),
        pytest.param("данные/Δt.csv", "данные/Δt.csv", id="other scripts, also side by side in a call"),
    ],
)
def test_a_resource_has_one_spelling(spelled: str, read: str) -> None:
    """Whatever names the same thing for every system is read as the same."""
    assert read == str(read_resource("resource", spelled))
    assert read_resource("resource", read) == read_resource("resource", spelled)


TRICKS = {
    "up": "src/../.github/ci.yml",
    "up at the end": "src/..",
    "up in front": "../x",
    "a backslash": "src\\..\\x",
    "percent-encoded dots": "src/%2e%2e/x",
    "percent-encoded slash": "src%2Fx",
    "percent-encoded twice": "src/%252e%252e/x",
    "percent-encoded as some servers do": "src/%u002e%u002e/x",
    "a NUL": "src/a.py\0.txt",
    "a new line": "src/a\nb",
    "a dot behind": "src/a.py.",
    "dots that some systems drop": "src/.../x",
    "a space behind": "src/.. /x",
    "a space in front": "src/ ../x",
    "a space before a name": "src/ a",
    "a wildcard": "src/*",
    "a wildcard within": "src/*.py",
    "the home directory": "~/x",
    "somebody's home directory": "~root/x",
    "a zero-width space": "src/a\u200b.py",
    "a joiner": "src/a\u200d.py",
    "text that runs backwards": "src/\u202egpj.py",
    "a soft hyphen": "s\u00adrc/x",
    "a variation selector": "src/a\ufe0f",
    "a tag character": "src/a\U000e0041",
    "a Hangul filler": "src/\u3164",
    "a blank braille": "src/\u2800",
    "a no-break space": "src/a\u00a0b",
    "full-width dots": "src/\uff0e\uff0e/x",
    "a full-width slash": "src\uff0fx",
    "a one-dot leader": "src/\u2024\u2024/x",
    "an ellipsis": "src/\u2026/x",
    "a full-width backslash": "src\uff3cx",
    "a private character": "src/\ue000",
    "an unassigned character": "src/\U000effff",
    "half a pair": "src/\ud800",
    "too long": "a/" * LONGEST,
    "too deep": "/".join("a" * 65),
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS.keys())
def test_a_trick_is_refused(trick: str) -> None:
    """What some tool or file system reads as something else is no resource, in a call or under a place."""
    with pytest.raises(InvalidValueError) as caught:
        read_resource("resource", trick)

    assert "resource" == caught.value.field
    assert not Under("path", ".").allows(trick)


@pytest.mark.parametrize(
    "other",
    ["SRC/x", "Src/x", "sr\u0441/x", "\u0455rc/x", "src", "src2/x", "/src/x", "a/src/x", "SRC\u0307/x"],
)
def test_another_name_is_not_under_a_place(other: str) -> None:
    """Upper case, letters that look alike, a longer name and another root are other places."""
    assert not read_pattern("write:src/**").matches("write", read_resource("resource", other))
    assert "src" == other or not Under("path", "src").allows(other)


@pytest.mark.parametrize("mixed", ["sr\u0441/**", "\u0455rc/x", "\u03b1dmin/*", "\u0440\u0430ypal"])
def test_a_pattern_mixes_no_letters_that_look_alike(mixed: str) -> None:
    """A person who grants `src` reads it as such, so it is not spelled with a letter of another alphabet."""
    with pytest.raises(InvalidValueError, match="mixes Latin letters"):
        read_pattern(f"write:{mixed}")


@given(st.text(max_size=30))
def test_whatever_is_read_cannot_leave_its_place(text: str) -> None:
    """A text is refused, or every way to fold and split it stays where it seems to be."""
    try:
        found = read_resource("resource", f"src/{text}")
    except InvalidValueError:
        return
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        folded = unicodedata.normalize(form, str(found))
        assert found.segments[0] == folded.split("/")[0] == "src"
        assert not {"..", "."} & set(folded.split("/"))
        assert "\\" not in folded
    assert found == read_resource("resource", str(found))


def test_a_resource_that_is_no_text_is_refused() -> None:
    """A number, or a list that cannot even be remembered, is refused like any other wrong value."""
    for wrong in (7, None, ["src"]):
        with pytest.raises(InvalidValueError):
            read_resource("resource", wrong)  # type: ignore[arg-type]


def test_the_root_of_the_file_system_is_not_the_work_tree() -> None:
    """No segments at all mean two different things."""
    assert Resource(absolute=True, segments=()) == read_resource("resource", "/")
    assert Resource(absolute=False, segments=()) == read_resource("resource", "./")
    assert "/" == str(read_resource("resource", "/"))
