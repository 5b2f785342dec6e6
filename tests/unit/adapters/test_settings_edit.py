"""Edits of several files: all are written, or none."""

import stat
from pathlib import Path

import pytest

from batonpass.adapters.settings_edit import Edit, apply_all
from batonpass.errors import InvalidValueError


def an_edit(path: Path, before: str | None, after: str | None) -> Edit:
    """Return an edit of a file that is there as it should be."""
    if before is not None:
        path.write_text(before, encoding="utf-8")
    return Edit(path=path, before=before, after=after)


def edits_in(place: Path) -> list[Edit]:
    """Return four edits: two files are changed, one is made, one is removed."""
    return [
        an_edit(place / "a", "1", "2"),
        an_edit(place / "new", None, "2"),
        an_edit(place / "gone", "1", None),
        an_edit(place / "b", "1", "2"),
    ]


def files_in(place: Path) -> dict[str, str]:
    """Return what is in a directory, leftovers included."""
    return {path.name: path.read_text(encoding="utf-8") for path in place.iterdir()}


def test_all_files_are_written(tmp_path: Path) -> None:
    """And nothing else is left behind; a file keeps who may read it."""
    edits = edits_in(tmp_path)
    (tmp_path / "a").chmod(0o640)

    apply_all(edits)

    assert ({"a": "2", "new": "2", "b": "2"}, 0o640) == (
        files_in(tmp_path),
        stat.S_IMODE((tmp_path / "a").stat().st_mode),
    )


def test_none_is_written_if_one_cannot_be(tmp_path: Path) -> None:
    """There is no room beside the last for a name that is any longer."""
    edits = [*edits_in(tmp_path), an_edit(tmp_path / ("x" * 250), "1", "2")]
    before = files_in(tmp_path)

    with pytest.raises(InvalidValueError, match="cannot be written: File name too long; nothing was changed"):
        apply_all(edits)

    assert before == files_in(tmp_path)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["a disk", "a person"])
@pytest.mark.parametrize("fails", ["new", "b"])
def test_what_was_written_is_put_back_if_a_later_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, fails: str
) -> None:
    """Also if it is a disk that breaks between two of them, or a person who gives up."""
    edits, replace = edits_in(tmp_path), Path.replace
    before = files_in(tmp_path)
    broken = [True]

    def failing(self: Path, target: Path) -> Path:
        if target.name == fails and broken.pop():
            broken.append(False)
            raise error
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises((InvalidValueError, KeyboardInterrupt)):
        apply_all(edits)

    assert before == files_in(tmp_path)


def test_what_cannot_be_put_back_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said where, and the others are put back all the same."""
    edits, replace = edits_in(tmp_path), Path.replace

    def failing(self: Path, target: Path) -> Path:
        text = self.read_text(encoding="utf-8")
        if (target.name, text) in {("b", "2"), ("gone", "1")}:
            raise OSError(5, "Input/output error")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(InvalidValueError, match=r"the old .*gone is in .*\.gone\."):
        apply_all(edits)

    found = files_in(tmp_path)
    (kept,) = (name for name in found if name.startswith("."))
    assert ({"a": "1", "b": "1", kept: "1"}, True) == (found, kept.startswith(".gone."))


def test_what_somebody_else_changed_meanwhile_stops_all(tmp_path: Path) -> None:
    """Nobody's edit is lost."""
    edits = edits_in(tmp_path)
    (tmp_path / "b").write_text("theirs", encoding="utf-8")
    before = files_in(tmp_path)

    with pytest.raises(InvalidValueError, match="was changed by another program meanwhile"):
        apply_all(edits)

    assert before == files_in(tmp_path)
