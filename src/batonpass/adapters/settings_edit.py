"""Edits other programs' settings files: shows the difference, and writes all files or none."""

import difflib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from batonpass.errors import InvalidValueError


class Edit(Struct, frozen=True, kw_only=True):
    """The change of a settings file; None is no file."""

    path: Path
    before: str | None
    after: str | None
    private: bool = False  # a new file is readable only by its owner
    executable: bool = False  # a new file is a program

    @property
    def is_change(self) -> bool:
        """Return whether the edit changes anything."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the difference as a unified diff."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        name, gone = str(self.path), "/dev/null"
        lines = difflib.unified_diff(
            old,
            new,
            fromfile=gone if self.before is None else name,
            tofile=gone if self.after is None else name,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def apply(self) -> None:
        """Write the file atomically. Raises `InvalidValueError` if somebody else changed it meanwhile."""
        apply_all([self])


def apply_all(edits: Iterable[Edit]) -> None:
    """Write all files, each atomically, or none of them.

    Raises `InvalidValueError` if one cannot be written, or if somebody else changed it meanwhile.
    """
    staged: list[_Staged] = []
    try:
        # All or none: first write every new text, and a copy of every old one, next to its file. Everything that fails
        # for lack of space or permission fails here. Then only renames are left, and each can be undone by a rename.
        for edit in edits:
            if edit.is_change:
                staged.append(_Staged.of(edit))  # noqa: PERF401 - if one fails, those before it are cleared
        for each in staged:
            each.replace()
    except BaseException as error:
        if left := [each for each in reversed(staged) if not each.put_back()]:
            staged = [each for each in staged if each not in left]
            where = ", ".join(f"the old {each.target} is in {each.old}" for each in left)
            raise InvalidValueError("some files", f"were changed and cannot be restored; {where}") from error
        if isinstance(error, OSError):
            what = error.filename or "one of the files"
            raise InvalidValueError(str(what), f"cannot be written: {error.strerror}; nothing was changed") from None
        raise
    finally:
        for each in staged:
            each.clear()


def read_settings(path: Path) -> str | None:
    """Return the content of a file; None if it does not exist. Raises `InvalidValueError` if it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValueError(str(path), f"cannot be read: {error}") from None


class _Staged(Struct, frozen=True):
    """The new and the old text of a file, both written next to it, so that a rename suffices in either direction."""

    target: Path
    new: Path | None
    old: Path | None

    @classmethod
    def of(cls, edit: Edit) -> "_Staged":
        target = edit.path.resolve()
        if read_settings(target) != edit.before:
            raise InvalidValueError(str(edit.path), "was changed by another program meanwhile; try again")
        target.parent.mkdir(parents=True, exist_ok=True)
        made = 0o600 if edit.private else (0o777 if edit.executable else 0o666) & ~_umask()
        mode = made if edit.before is None else target.stat().st_mode & 0o7777
        old = _written(target, edit.before, mode)
        try:
            return cls(target, _written(target, edit.after, mode), old)
        except BaseException:
            _remove(old)
            raise

    def replace(self) -> None:
        if self.new is None:
            self.target.unlink()
        else:
            self.new.replace(self.target)

    @property
    def is_replaced(self) -> bool:
        # The new text is a separate file until it replaces the target.
        return not self.target.exists() if self.new is None else not self.new.exists()

    def put_back(self) -> bool:
        """Restore the file. Return whether that worked."""
        try:
            if self.is_replaced and self.old is None:
                self.target.unlink(missing_ok=True)
            elif self.is_replaced and self.old is not None:
                self.old.replace(self.target)
        except OSError:
            return False
        return True

    def clear(self) -> None:
        for path in (self.new, self.old):
            _remove(path)


def _remove(path: Path | None) -> None:
    if path is not None:
        path.unlink(missing_ok=True)


def _written(target: Path, text: str | None, mode: int) -> Path | None:
    if text is None:
        return None
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
