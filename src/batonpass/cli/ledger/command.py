"""`batonpass ledger`: verify, seal, export and erase."""

from pathlib import Path

import click
from msgspec.structs import asdict

from batonpass.audit.meant_ids import find_erasable, get_run
from batonpass.cli.input.id_types import RUN_ID
from batonpass.cli.input.ledger_access import opened_relay, viewed
from batonpass.cli.input.options import (
    by_option,
    checked,
    is_person,
    ledger_and_json,
    ledger_option,
    output_option,
    read_lines,
    reason_option,
    written,
)
from batonpass.cli.ledger.seal import extends, is_on_server, seal
from batonpass.cli.ledger.verification import pinned, say_evidence, verify
from batonpass.cli.output.terminal import paint, say, say_json, table, tell
from batonpass.cli.output.units import counted, moment, size
from batonpass.model.base.checks import require_digest
from batonpass.model.base.ids import ContentId, PrincipalId
from batonpass.model.ledger.content import Place
from batonpass.model.ledger.projection import key_id
from batonpass.records.json_shapes import exact
from batonpass.store.port import ContentSizes, LedgerView
from batonpass.telemetry.export_format import ExportFormat

# One receipt names at most this many erased contents; for more, there are several receipts.
_ERASED_AT_ONCE = 500


@click.group()
def command() -> None:
    """Verify the ledger, seal it, export it, and erase contents."""


command.add_command(verify)
command.add_command(seal)
command.add_command(extends)


@command.command()
@click.option("--run", "run", metavar="ID", type=RUN_ID, required=True, help="A run of the tree to export.")
@output_option
@click.option(
    "--format",
    "form",
    type=click.Choice([str(one) for one in ExportFormat]),
    default=str(ExportFormat.BUNDLE),
    show_default=True,
    help="What to write.",
)
@click.option("--digests-only", is_flag=True, help="Leave the contents of a bundle out; keep their digests.")
@click.option("--words", is_flag=True, help="Add tasks, arguments, results and reports to the spans of otlp.")
@ledger_and_json
def export(run: str, output: Path | None, *, form: str, digests_only: bool, words: bool, as_json: bool) -> None:
    """Export the tree of a run as a bundle, or for other systems.

    A bundle can be verified on a machine that has nothing else. The other formats have no words: dsse (in-toto
    statements), cloudevents (an event for each receipt), otlp (spans of OpenTelemetry; open work is left out) and prov
    (PROV-JSON). With -o and --json, a summary is printed.
    """
    is_bundle = form == ExportFormat.BUNDLE
    if as_json and output is None:
        raise click.UsageError("the export itself is JSON on stdout; use --json together with -o")
    if digests_only and not is_bundle:
        raise click.UsageError(f"--digests-only is for bundles; {form} has no words by itself")
    if words and form != ExportFormat.OTLP:
        raise click.UsageError("--words is for --format otlp")
    with opened_relay() as relay:
        with viewed(relay.store) as view:
            found = get_run(view, run)
        count = 0
        with written(output) as file:
            for line in relay.admin.export(found.id, form=form, with_content=not digests_only if is_bundle else words):
                file.write(f"{line}\n")
                count += 1
    if as_json:
        has_words = not digests_only if is_bundle else words
        told = {"run": found.id, "root": found.root, "file": str(output), "format": form}
        say_json({**told, "lines": count, "words": has_words})
    elif output is not None and not is_bundle:
        tell(f"wrote {counted(count, 'line')}")
    elif output is not None:
        tell(f"wrote {counted(count, 'line')}; verify it anywhere with `batonpass ledger verify --bundle {output}`")


@command.command("import")
@click.argument("bundle", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--root-key",
    metavar="HEX",
    callback=checked(lambda given: require_digest("root_key", given)),
    help="The root key that the bundle must have.",
)
@ledger_option
def import_(bundle: Path, root_key: str | None) -> None:
    """Verify a bundle and store it as a ledger.

    It needs a ledger of its own: name a new one with --ledger.
    """
    lines = list(read_lines(bundle))
    with opened_relay(create=True) as relay:
        evidence = relay.admin.import_(lines, root_key=pinned(root_key, lines))
    say_evidence(evidence, pinned=root_key is not None)


@command.command()
@click.argument("what", metavar="ID", type=RUN_ID)
@reason_option()
@by_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@ledger_option
def erase(what: str, *, reason: str, by: str, yes: bool) -> None:
    """Erase contents for good. Their receipts stay, the chain still verifies, and the erasure is recorded.

    ID is a content, a receipt (all its contents) or a run (all contents in its stream).
    """
    with opened_relay() as relay:
        with viewed(relay.store) as view:
            meant, contents = find_erasable(view, what)
            left = _kept(view, contents)
        if not left:
            tell(f"nothing to erase: {meant} has no words, or they were erased before")
            return
        tell(f"{meant}: {counted(len(left), 'content')} to erase, for good")
        if not yes and is_person():
            click.confirm("Erase?", abort=True, err=True)
        for start in range(0, len(left), _ERASED_AT_ONCE):
            relay.admin.erase(left[start : start + _ERASED_AT_ONCE], by=PrincipalId(by), reason=reason)
    for content in left:
        say(f"{content} erased")
    if meant.startswith("run_"):
        tell("the task of a run stands in the stream of the run that offered it, and was not erased")


@command.command()
@ledger_and_json
def stats(*, as_json: bool) -> None:
    """Show how much is recorded, and how much of it is sealed."""
    with opened_relay() as relay:
        url = relay.store.url
        with viewed(relay.store) as view:
            info, counts, words = view.info(), view.counts(), view.content_sizes()
            sealed = max((seal.size for seal in view.find_seals()), default=0)
            latest = next(view.find_runs(), None)
    if as_json:
        say_json(
            {
                "ledger": info.id,
                "url": url,
                "root_key": info.root_key,
                "root_key_id": key_id(info.root_key),
                **asdict(counts),
                "content_bytes": words.row_bytes + words.file_bytes,
                "blobs": words.files,
                "blob_bytes": words.file_bytes,
                "erased": words.erased,
                "sealed": sealed,
                "latest_run_at": None if latest is None else exact(latest.started_at),
            },
        )
        return
    rows = [
        ["ledger", f"{info.id} at {url}"],
        ["receipts", f"{counts.receipts:,} in {counted(counts.streams, 'stream')}"],
        ["sealed", _sealed(counts.receipts, sealed, counts.seals)],
        ["runs", f"{counts.runs:,}" + ("" if latest is None else f", the latest at {moment(latest.started_at)}")],
        ["handoffs", f"{counts.handoffs:,}"],
        ["contents", _contents(words)],
        ["blobs", f"{words.files:,}" + (f", {size(words.file_bytes)} in files" if words.files else "")],
        ["size", size(counts.bytes) + (f", and {size(words.file_bytes)} of blobs" if words.files else "")],
        ["root key", key_id(info.root_key)],
    ]
    table([[paint(name, dim=True), value] for name, value in rows])


@command.command()
@ledger_and_json
def migrations(*, as_json: bool) -> None:
    """List the schema migrations."""
    with opened_relay() as relay:
        steps = relay.store.migrations()
    if as_json:
        say_json(
            [{"version": step.version, "name": step.name, "applied_at": exact(step.applied_at)} for step in steps],
        )
        return
    table(
        [
            [f"{step.version:04}", step.name, "not yet" if step.applied_at is None else moment(step.applied_at)]
            for step in steps
        ],
        header=("step", "name", "applied"),
    )


@command.command()
@ledger_option
def migrate() -> None:
    """Apply the missing schema migrations.

    Opening a SQLite ledger does this automatically.
    """
    with opened_relay(create=is_on_server()) as relay:
        relay.store.migrate()
        steps = relay.store.migrations()
    tell(f"the schema is at step {max((step.version for step in steps), default=0):04}")


def _kept(view: LedgerView, contents: tuple[ContentId, ...]) -> list[ContentId]:
    return [content.id for content in view.find_contents(contents) if content.place is not Place.ERASED]


def _contents(words: ContentSizes) -> str:
    erased = f", {words.erased:,} erased" if words.erased else ""
    return f"{words.rows + words.files:,}, {size(words.row_bytes + words.file_bytes)} of words{erased}"


def _sealed(receipts: int, sealed: int, seals: int) -> str:
    if not seals:
        return "nothing yet: `batonpass ledger seal`"
    since = "" if sealed == receipts else f", {counted(receipts - sealed, 'receipt')} since"
    return f"the first {sealed:,}, by {counted(seals, 'seal')}{since}"
