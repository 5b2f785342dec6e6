"""`batonpass git`: name the runs and the ledger's seal in every commit, which makes its readers witnesses."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from batonpass.accounts.blame.committed_runs import find_committed_runs, find_touched
from batonpass.attribution.git.file_git import TRAILER as RUN_TRAILER
from batonpass.cli.git import commit_hook
from batonpass.cli.git.repository import TRAILER, GitError, fallback_program, git, hooks_directory, read_staged
from batonpass.cli.input.ledger_access import ledger_word, opened_relay, settings, viewed
from batonpass.cli.input.options import ledger_and_json, ledger_option
from batonpass.cli.output.exits import tell_error
from batonpass.cli.output.terminal import tell
from batonpass.cli.output.units import counted
from batonpass.errors import BatonpassError
from batonpass.ledger.note import to_trailer
from batonpass.model.base.ids import RunId
from batonpass.model.ledger.seal import Seal
from batonpass.store.factory import MEMORY, SQLITE

if TYPE_CHECKING:
    from batonpass.relay import Relay

# Not another trailer of the same name: readers may rely on each of those being a run.
MORE_TRAILER: Final = "Batonpass-More-Runs"
MOST_RUNS: Final = 20

# The diff follows below this line of `git commit --verbose`.
_SCISSORS: Final = re.compile(r"^. -{24} >8 -{24}$", re.MULTILINE)


def _seal_options(wrapped: Callable[..., None]) -> Callable[..., None]:
    newest = click.option("--newest-seal", is_flag=True, help="Do not seal; use the newest existing seal.")
    seal = click.option(
        "--seal/--no-seal", default=True, show_default=True, help="Seal the ledger, or leave the seal out."
    )
    return seal(newest(wrapped))


@click.group()
def command() -> None:
    """Name the runs and the seal in every commit. Once pushed, the remote is a witness."""


@command.command()
@_seal_options
@click.option("--share", is_flag=True, help="Share who wrote which lines, as git notes that are pushed with commits.")
@click.option("--words", is_flag=True, help="With --share: share the words of tasks too, with secrets removed.")
@click.option("--undo", is_flag=True, help="Remove our lines from the hooks; with --share, those about notes.")
@ledger_option
def install(*, seal: bool, newest_seal: bool, share: bool, words: bool, undo: bool) -> None:
    """Install a hook for commits. It adds the runs and the seal to each; with --share, other hooks share notes.

    Existing hooks are kept and still run. If our lines fail, the commit or the push continues.
    """
    if words and not share:
        raise click.UsageError("--words needs --share")
    if share:
        from batonpass.cli.git.share import install_share, remove_share  # noqa: PLC0415 - most commits do not need it

        remove_share() if undo else install_share(words=words)
        return
    hooks = hooks_directory()
    if undo:
        if not commit_hook.remove(hooks):
            raise GitError(f"there are no lines of batonpass in {hooks / commit_hook.HOOK}")
        tell(f"removed our lines from {hooks / commit_hook.HOOK}")
        return
    fallback = fallback_program(hooks)
    chosen = ["--newest-seal"] if newest_seal and seal else [] if seal else ["--no-seal"]
    ledger = ledger_word()
    said = [*(() if ledger is None else ("--ledger", ledger)), "git", "trailer", *chosen]
    try:
        path = commit_hook.install(hooks, said, fallback)
    except FileExistsError as error:
        raise GitError(f"{error.filename} already exists: an older hook was set aside there; move it") from None
    if not seal:
        tell(f"{path} names the runs in a {RUN_TRAILER} trailer of every commit {_from_when()}")
        return
    tell(f"{path} adds {RUN_TRAILER} and {TRAILER} trailers to every commit {_from_when()}")
    tell("once pushed, the remote is a witness; `batonpass ledger verify --seal git` uses its seals")


def _from_when() -> str:
    return "from now on" if _has_ledger() else "once something is recorded here"


@command.command()
@click.argument("message", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_seal_options
@ledger_option
def trailer(message: Path, *, seal: bool, newest_seal: bool) -> None:
    """Add the runs and the seal to a commit message, for the hook.

    Nothing is added, and nothing fails, if there is no ledger, nothing recorded, or no message.
    """
    try:
        if not _has_ledger() or not _has_words(message):
            return
        with opened_relay() as relay:
            if not relay.store.founded():
                return
            # One after the other: if one fails, the other is still added.
            _add_runs(message, relay)
            if seal:
                _add_seal(message, relay, newest=newest_seal)
    except (BatonpassError, GitError) as error:
        _go_on(error, "our trailers")


def _add_runs(message: Path, relay: "Relay") -> None:
    try:
        runs = _find_runs(relay)
        if runs:
            lines = [f"{RUN_TRAILER}: {run}" for run in runs[:MOST_RUNS]]
            _interpret(message, *_different(lines), *_more(len(runs) - MOST_RUNS))
    except (BatonpassError, GitError) as error:
        _go_on(error, "its runs")
    else:
        if runs:
            tell(f"batonpass: this commit names {counted(len(runs), 'run')}")


def _add_seal(message: Path, relay: "Relay", *, newest: bool) -> None:
    try:
        found = _newest(relay) if newest else relay.admin.seal()
        if found is not None:
            _interpret(message, "--if-exists", "replace", "--trailer", f"{TRAILER}: {to_trailer(found.note)}")
    except (BatonpassError, GitError) as error:
        _go_on(error, "a seal")
    else:
        if found is not None:
            tell(f"batonpass: this commit carries a seal over {counted(found.size, 'receipt')}")


def _go_on(error: BatonpassError | GitError, without: str) -> None:
    if isinstance(error, BatonpassError):
        tell_error(error)
        tell(f"batonpass: this commit continues without {without}")
    else:
        tell(f"batonpass: {error.message}; this commit continues without {without}")


def _find_runs(relay: "Relay") -> list[RunId]:
    staged = read_staged()
    with viewed(relay.store) as view:
        touched = list(find_touched(view, staged.root, staged.files))
        return find_committed_runs(view, staged.root, staged.sides(touched), since=staged.since)


def _different(lines: Iterable[str]) -> Iterator[str]:
    # An amended, squashed or cherry-picked message already has its trailers, also of runs in other ledgers.
    yield from ("--if-exists", "addIfDifferent")
    for line in lines:
        yield from ("--trailer", line)


def _more(left_out: int) -> Iterator[str]:
    if left_out > 0:
        yield from ("--if-exists", "replace", "--trailer", f"{MORE_TRAILER}: {left_out}")


def _interpret(message: Path, *arguments: str) -> None:
    # No divider: in a commit message, a line of three dashes is an ordinary line.
    git("interpret-trailers", "--in-place", "--no-divider", *arguments, str(message))


def _has_ledger() -> bool:
    url = settings().ledger
    return url != MEMORY and not (url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).expanduser().exists())


def _newest(relay: "Relay") -> Seal | None:
    with relay.store.view() as view:
        return max(view.find_seals(), key=lambda seal: seal.size, default=None)


def _has_words(message: Path) -> bool:
    """Return whether a message is not empty: an empty one stops the commit, and a trailer must not change that."""
    text = _SCISSORS.split(message.read_text(encoding="utf-8", errors="replace"), maxsplit=1)[0]
    return bool(git("stripspace", "--strip-comments", text=text).strip())


@command.command(short_help="Sum up who wrote the lines of commits.")
@click.argument("span", metavar="COMMIT|BASE..HEAD")
@click.option("--md", "as_markdown", is_flag=True, help="Markdown, for a comment on a pull request.")
@ledger_and_json
def summary(span: str, *, as_markdown: bool, as_json: bool) -> None:
    """Sum up who wrote the lines that commits add: agents and for whom, verified, approved, unexplained.

    BASE...HEAD counts from where both parted, as a pull request does.
    """
    from batonpass.cli.git.summary import summarise  # noqa: PLC0415 - a commit's hook does not need it

    summarise(span, as_markdown=as_markdown, as_json=as_json)


@command.command()
@click.argument("span", metavar="[COMMIT|BASE..HEAD]", default="HEAD")
@click.option("--words", is_flag=True, help="Share the words of tasks too, with secrets removed.")
@click.option("--drafts", is_flag=True, help="Open every change in the proofs, also text that was never committed.")
@ledger_and_json
def note(span: str, *, words: bool, drafts: bool, as_json: bool) -> None:
    """Write a note about a commit: which agents wrote its lines. The hook of `git install --share` runs this.

    For commits that were made before, give BASE..HEAD. Nothing is sent; `git sync` and the next push do that.
    """
    from batonpass.cli.git.share import write_note  # noqa: PLC0415 - as above

    write_note(span, words=words, drafts=drafts, as_json=as_json)


@command.command(short_help="Write the authors of lines for other tools.")
@click.argument("span", metavar="[COMMIT|BASE..HEAD]", default="HEAD")
@click.option("--git-ai", "as_git_ai", is_flag=True, help="Write notes of git-ai for commits that have none.")
@click.option("--agent-trace", "as_trace", is_flag=True, help="Print records of Agent Trace, one line for each commit.")
@ledger_and_json
def export(span: str, *, as_git_ai: bool, as_trace: bool, as_json: bool) -> None:
    """Export the authors of the lines of commits in the formats of other tools.

    Only lines with a certain author are named. These formats hold no signatures: their readers have to believe them.
    """
    if as_git_ai == as_trace:
        raise click.UsageError("give one of --git-ai, --agent-trace")
    from batonpass.cli.git.export import export_notes, print_traces  # noqa: PLC0415 - a commit's hook does not need it

    if as_git_ai:
        export_notes(span, as_json=as_json)
    else:
        print_traces(span)


@command.command()
@click.argument("remote", metavar="[REMOTE]", required=False)
@click.option("--fetch-only", is_flag=True, help="Fetch and merge; send nothing.")
@click.option("--hook", is_flag=True, hidden=True)
@ledger_and_json
def sync(remote: str | None, *, fetch_only: bool, hook: bool, as_json: bool) -> None:
    """Exchange notes with a remote. Fetch those of others, merge them with those here, and send both.

    If somebody else sends at the same moment, it is done again. Branches are left alone.
    """
    from batonpass.cli.git.share import sync_notes  # noqa: PLC0415 - as above

    sync_notes(remote, sends=not fetch_only, in_hook=hook, as_json=as_json)
