"""Claims of other tools about lines that no record and no note explains. They are shown; the lines stay unexplained."""

from msgspec.structs import replace

from batonpass.accounts.blame.blame_text import Blame
from batonpass.accounts.blame.blame_values import HowKnown
from batonpass.accounts.blame.file_blame import AskedFile
from batonpass.attribution.git.git_history import History
from batonpass.attribution.git.git_process import GitSilentError
from batonpass.notes.foreign.foreign_claims import ForeignClaims
from batonpass.notes.note_store import NoteRepository


class HearsayTellers:
    """The other tools of one repository, asked for any number of files."""

    def __init__(self, claims: ForeignClaims) -> None:
        self._claims = claims

    @classmethod
    def find(cls, asked: AskedFile) -> "HearsayTellers | None":
        """Return the tellers of a file's repository; None if it is in none."""
        known = asked.repository
        if known is None:
            return None
        return cls(ForeignClaims(NoteRepository(known.root, known.environment, known.answer_within, known.at)))

    def fill(self, blame: Blame, names: History) -> Blame:
        """Return an answer with the claims of other tools about unexplained lines, and about no others."""
        wanted = {line.number for line in blame.lines if line.known is HowKnown.UNEXPLAINED}
        origins = {number: one for number, one in names.origins.items() if number in wanted}
        if not origins:
            return blame
        try:
            heard = self._claims.read(origins)
        except GitSilentError as error:
            return replace(blame, notes=(*blame.notes, f"the claims of other tools could not be read: {error}"))
        lines = tuple(
            replace(line, said=heard.lines[line.number]) if line.number in heard.lines else line for line in blame.lines
        )
        return replace(blame, lines=lines, notes=(*blame.notes, *heard.remarks))
