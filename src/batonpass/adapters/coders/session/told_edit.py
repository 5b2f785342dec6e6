"""An editor's own account of its change, for a file that somebody else changed at the same time."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from batonpass.adapters.claude_code.transcripts.patches import patch_of_input, read_patch
from batonpass.attribution.changes.change import digest_of, lines_of
from batonpass.attribution.worktree.tree_difference import Difference


class ToldEdit(Struct, frozen=True):
    """The bytes before and after an edit, as the editor reports them; None for no file."""

    before: bytes | None
    after: bytes

    def difference(self, seen: Difference) -> Difference:
        """Return the editor's own part of the difference between two sights of the file."""
        # The editor reports text with normalised line ends. If the file has others, the digests would be of bytes that
        # never existed.
        exact = b"\r" not in (seen.before or b"") and b"\r" not in (seen.after or b"")
        return replace(
            seen,
            before=self.before,
            after=self.after,
            before_digest=digest_of(self.before) if exact and self.before is not None else None,
            after_digest=digest_of(self.after) if exact else None,
        )


def told_edit(tool: str, given: Mapping[str, Any], result: object, seen: Difference) -> ToldEdit | None:
    """Return the editor's own account if the file is now different; None if all of the change is its work.

    If the editor gives no account, all of the change counts as its work.
    """
    if seen.too_large or seen.after is None:
        return None
    try:
        before, after = (seen.before or b"").decode(), seen.after.decode()
    except UnicodeDecodeError:
        return None
    told = list(_accounts(tool, given, result, None if seen.before is None else before))
    sides = lines_of(before), lines_of(after)
    # Compare both sides: somebody may also have saved the file between our look and the editor's.
    if not told or any((_lines(one.before or b""), _lines(one.after)) == sides for one in told):
        return None
    return told[0]


def _accounts(tool: str, given: Mapping[str, Any], result: object, before: str | None) -> Iterator[ToldEdit]:
    """Yield the edit according to the result, then according to the arguments; some versions leave one out."""
    patch = read_patch(tool, result)
    if patch is not None and patch.after is not None and (patch.hunks or tool == "Write"):
        began = None if patch.created else before if patch.before is None else patch.before
        yield ToldEdit(None if began is None else _bytes(began), _bytes(patch.after))
    asked = patch_of_input(tool, given, before, created=before is None)
    if asked is not None and asked.after is not None:
        yield ToldEdit(None if before is None else _bytes(before), _bytes(asked.after))


def _lines(data: bytes) -> list[str]:
    return lines_of(data.decode("utf-8", "surrogateescape"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
