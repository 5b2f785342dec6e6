"""What a text may mean as a path: worked out once, where nothing can change it."""

from pathlib import Path

import pytest

from batonpass.handoff.files.path_spellings import spellings


@pytest.mark.parametrize("text", ["~/.batonpass/relay.key", "--from=~/.batonpass", "x:~/.batonpass"])
def test_a_home_is_looked_for_whenever_it_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose home it is may change between two calls."""
    for name in ("one", "two"):
        monkeypatch.setenv("HOME", str(tmp_path / name))

        assert any(one.startswith(f"{tmp_path / name}/") for one in spellings(text))


def test_the_same_text_means_the_same_again() -> None:
    """What is kept is what was worked out, and all of it."""
    text = "file:///etc/hosts?mode=ro"

    assert [*spellings(text)] == [*spellings(text)]
    assert "/etc/hosts" in [*spellings(text)]
