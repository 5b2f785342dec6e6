"""`batonpass ledger`: verify, seal, carry away, erase."""

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from batonpass.ledger.seal_growth import parse_growth
from batonpass.model.base.ids import AgentId
from batonpass.relay import Relay, recording_of
from batonpass.testing.plain_acts import plainly
from tests.unit.cli.desk import ANA, Desk, record_in


def test_a_whole_ledger_is_said_to_be_whole(desk: Desk) -> None:
    """The evidence is in words: how much, signed by whom, and what to compare; what it does not tell is on stderr."""
    done = desk.run("ledger", "verify")
    lines = done.stdout.splitlines()

    assert [
        "whole: 10 receipts in 3 streams, 19 signatures by 1 relay and their runs",
        "  2 runs, 1 handoff, 9 contents as committed",
    ] == lines[:2]
    assert (0, True) == (done.exit_code, done.stderr.startswith("only a seal kept elsewhere"))


def test_programs_get_the_evidence(desk: Desk) -> None:
    """JSON has every count."""
    evidence = desk.answer("ledger", "verify")["evidence"]

    assert (10, 19, 3, 2, 9) == tuple(
        evidence[name] for name in ("receipts", "signatures", "streams", "runs", "contents")
    )


def test_a_seal_is_printed_and_checked(desk: Desk, tmp_path: Path) -> None:
    """The note is the only thing on stdout, and fits the ledger that it was made from, also when that has grown."""
    done = desk.run("ledger", "seal")
    (tmp_path / "seal").write_text(done.stdout, encoding="utf-8")
    desk.run("ledger", "seal", "-o", str(tmp_path / "again"))
    with desk.relay() as relay:
        recording_of(relay).start("Look", agent=AgentId("scout"), by=ANA)
    seals = ["--seal", str(tmp_path / "seal"), "--seal", str(tmp_path / "again")]

    assert (done.stdout, "sealed 10 receipts") == (
        (tmp_path / "again").read_text(encoding="utf-8"),
        done.stderr.partition(";")[0],
    )
    assert "  2 seals match: nothing that was sealed is gone\n" in desk.words("ledger", "verify", *seals)


def test_verification_goes_on_from_a_seal(desk: Desk, tmp_path: Path) -> None:
    """From the latest, from one by its size, or from one in a file; it is said what was not verified again."""
    (tmp_path / "seal").write_text(desk.words("ledger", "seal"), encoding="utf-8")
    with desk.relay() as relay:
        recording_of(relay).start("Look", agent=AgentId("scout"), by=ANA)
    ways = [("--since-seal",), ("--since-seal", "10"), ("--since-seal", str(tmp_path / "seal"))]
    lines = [desk.words("ledger", "verify", *words).splitlines() for words in ways]

    assert (
        "whole: 11 receipts, 2 of them verified in full in 2 streams, 4 signatures by 1 relay and their runs"
        == (lines[0][0])
    )
    assert lines[0] == lines[1] == lines[2]
    assert lines[0][2].startswith("  9 receipts in trees that have not changed since the seal")
    assert 9 == desk.answer("ledger", "verify", "--since-seal")["evidence"]["sealed"]


def test_a_seal_to_go_on_from_must_be_there(desk: Desk, tmp_path: Path) -> None:
    """Before the first seal, with another size, and with what is no seal; a bundle has none."""
    (tmp_path / "seal").write_text("hello\n", encoding="utf-8")
    results = [
        desk.run("ledger", "verify", "--since-seal"),
        desk.run("ledger", "verify", "--since-seal", "7"),
        desk.run("ledger", "verify", "--since-seal", str(tmp_path / "seal")),
        desk.run("ledger", "verify", "--since-seal", "--bundle", "x"),
    ]

    assert [1, 1, 2, 2] == [done.exit_code for done in results]
    assert "`batonpass ledger seal` makes a seal" in results[0].stderr


def test_a_verification_that_is_stopped_says_how_far_it_came(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is no finding and no success; scripts see it by its exit code."""

    def stopped(*_: object, progress: Callable[[int, int], None], **__: object) -> None:
        progress(3_000, 9_000)
        raise KeyboardInterrupt

    monkeypatch.setattr(Relay, "verify", stopped)
    done = desk.run("ledger", "verify")

    assert (130, "", "batonpass: stopped after 3,000 of 9,000 receipts: no damage found so far, and ") == (
        done.exit_code,
        done.stdout,
        done.stderr.removesuffix("nothing is proven\n"),
    )


def test_programs_get_the_seal(desk: Desk, tmp_path: Path) -> None:
    """With a file, the note is written there as well."""
    made = desk.answer("ledger", "seal")
    again = desk.answer("ledger", "seal", "-o", str(tmp_path / "seal"))

    assert (10, 0, None, str(tmp_path / "seal")) == (made["size"], made["previous"], made["file"], again["file"])
    assert made["note"] == again["note"] == (tmp_path / "seal").read_text(encoding="utf-8")


def test_programs_are_told_what_was_exported(desk: Desk, tmp_path: Path) -> None:
    """The bundle goes to a file then; on stdout there is one object."""
    told = desk.answer("ledger", "export", "--run", "lead", "-o", str(tmp_path / "bundle"))

    assert (len((tmp_path / "bundle").read_text(encoding="utf-8").splitlines()), True) == (told["lines"], told["words"])
    assert 2 == desk.run("ledger", "export", "--run", "lead", "--json").exit_code


def test_words_in_files_are_counted(desk: Desk) -> None:
    """A body that is too large for a row is a file, and takes room as any other."""
    before = desk.answer("ledger", "stats")
    with desk.relay() as relay:
        recording = plainly(recording_of(relay))
        run = recording.start("Look", agent=AgentId("scout"), by=ANA)
        recording.finish(run, recording.request(run, "read", "{}"), "x" * 3_000_000)
    after = desk.answer("ledger", "stats")

    assert (0, 0, 1, 3_000_000) == tuple(stats[name] for stats in (before, after) for name in ("blobs", "blob_bytes"))
    assert 3_000_000 < after["content_bytes"] - before["content_bytes"] < 3_000_100
    assert "blobs     1, 2.9 MiB in files\n" in desk.words("ledger", "stats")


def test_a_file_that_is_no_seal_is_wrong_usage(desk: Desk, tmp_path: Path) -> None:
    """A mistyped file name is not a finding."""
    (tmp_path / "seal").write_text("hello\n", encoding="utf-8")
    done = desk.run("ledger", "verify", "--seal", str(tmp_path / "seal"))

    assert (2, True) == (done.exit_code, "is not a seal" in done.stderr)


def test_the_root_key_can_be_pinned_by_its_id_or_itself(desk: Desk) -> None:
    """Whoever noted what a verification printed can use it; another key is another ledger."""
    stats = desk.answer("ledger", "stats")
    results = [
        desk.run("ledger", "verify", "--root-key", key)
        for key in (stats["root_key"], stats["root_key_id"], "ab" * 32, "nothing")
    ]

    assert [0, 0, 1, 2] == [done.exit_code for done in results]
    assert "compare it" not in results[0].stdout


def test_a_bundle_verifies_alone(desk: Desk, tmp_path: Path) -> None:
    """An exported tree is verified without its ledger, and kept in a new one."""
    bundle = str(tmp_path / "bundle.jsonl")
    desk.run("ledger", "export", "--run", "editor", "-o", bundle)
    root = desk.answer("ledger", "stats")["root_key_id"]
    alone = Desk(tmp_path / "elsewhere")
    alone.directory.mkdir()
    results = [
        alone.run("ledger", "verify", "--bundle", bundle, "--root-key", root),
        alone.run("ledger", "import", bundle, "--root-key", root),
        alone.run("run", "list"),
        alone.run("ledger", "import", bundle),
    ]

    assert [0, 0, 0, 1] == [done.exit_code for done in results]
    assert ("whole: 10 receipts", 3) == (results[1].stdout.partition(" in ")[0], len(results[2].stdout.splitlines()))
    assert "not that there is nothing else" in results[0].stderr


def test_a_bundle_can_leave_the_words_out(desk: Desk, tmp_path: Path) -> None:
    """Digests alone verify, and say that the words are left out."""
    printed = desk.words("ledger", "export", "--run", "last", "--digests-only")
    (tmp_path / "bundle").write_text(printed, encoding="utf-8")

    assert "invoice rounding" not in printed
    assert "0 contents as committed, 9 left out of the bundle" in desk.words(
        "ledger", "verify", "--bundle", str(tmp_path / "bundle")
    )


@pytest.mark.parametrize("text", ["", "[]\n", "hello\n", '{"root_key": 7}\n'])
def test_what_is_no_bundle_is_a_finding(desk: Desk, tmp_path: Path, text: str) -> None:
    """Whatever the file holds, the answer is a finding in our words."""
    (tmp_path / "bundle").write_text(text, encoding="utf-8")
    done = desk.run("ledger", "verify", "--bundle", str(tmp_path / "bundle"), "--root-key", "ab" * 32)

    assert (1, True) == (done.exit_code, "[verify.edited]" in done.stderr)


def test_a_bundle_takes_no_seal(desk: Desk) -> None:
    """A seal covers a whole ledger, so it cannot be asked of a part."""
    assert 2 == desk.run("ledger", "verify", "--bundle", "x", "--seal", "git").exit_code


def test_words_are_erased_and_the_chain_stays(desk: Desk) -> None:
    """A run, a receipt and a content can be erased; the ledger is whole and counts them."""
    content = desk.answer("receipt", "show", "last")["content"]["report"]["id"]
    failed = json.loads(desk.words("receipt", "grep", "^tool.failed$", "--json"))[0]["receipt"]
    results = [
        desk.run("ledger", "erase", content, "--reason", "privacy", "--by", "user:ana"),
        desk.run("ledger", "erase", failed[-10:], "--reason", "privacy"),
        desk.run("ledger", "erase", "editor", "--reason", "privacy", "--yes"),
    ]

    assert [(0, 1), (0, 1), (0, 4)] == [(done.exit_code, len(done.stdout.splitlines())) for done in results]
    assert ("content", f"{content} erased\n") == (results[0].stdout.partition("_")[0], results[0].stdout)
    assert "  2 runs, 1 handoff, 6 contents as committed, 6 erased\n" in desk.words("ledger", "verify")


def test_erasing_twice_is_erasing_once(desk: Desk) -> None:
    """What is gone already is no error, and no second receipt."""
    desk.run("ledger", "erase", "editor", "--reason", "privacy")
    before = desk.answer("ledger", "stats")["receipts"]
    done = desk.run("ledger", "erase", "editor", "--reason", "privacy")

    assert (0, "", before) == (done.exit_code, done.stdout, desk.answer("ledger", "stats")["receipts"])
    assert "erased before" in done.stderr


def test_who_erases_is_recorded(desk: Desk) -> None:
    """The receipt of an erasure names who wanted it: whoever is logged in, unless told."""
    desk.run("ledger", "erase", "editor", "--reason", "privacy")
    wrong = desk.run("ledger", "erase", "lead", "--reason", "privacy", "--by", "nobody")

    assert ("user:tess", 2) == (desk.answer("receipt", "show", "last")["body"]["by"], wrong.exit_code)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        pytest.param((0, 5), "y\n", id="yes"),
        pytest.param((130, 0), "n\n", id="no"),
        pytest.param((130, 0), "", id="nothing"),
    ],
)
def test_a_person_is_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch, expected: tuple[int, int], answer: str) -> None:
    """On a terminal nothing is erased without a yes."""
    monkeypatch.setattr("batonpass.cli.ledger.command.is_person", lambda: True)
    done = desk.run("ledger", "erase", "editor", "--reason", "privacy", typed=answer)

    assert expected == (done.exit_code, done.stdout.count(" erased\n"))


def test_stats_say_how_much_there_is(desk: Desk) -> None:
    """Counts, and how much of it is under a seal."""
    before = desk.words("ledger", "stats")
    desk.run("ledger", "seal")
    sealed = desk.words("ledger", "stats")
    with desk.relay() as relay:
        recording_of(relay).start("Look", agent=AgentId("scout"), by=ANA)
    grown = desk.words("ledger", "stats")

    lines = [next(line for line in text.splitlines() if line.startswith("sealed")) for text in (before, sealed, grown)]
    assert [
        "sealed    nothing yet: `batonpass ledger seal`",
        "sealed    the first 10, by 1 seal",
        "sealed    the first 10, by 1 seal, 1 receipt since",
    ] == lines


def test_migrations_are_listed_and_applied(desk: Desk) -> None:
    """Every step of the schema has its time; applying again changes nothing."""
    steps = desk.answer("ledger", "migrations")
    done = desk.run("ledger", "migrate")

    assert (1, "ledger", True) == (steps[0]["version"], steps[0]["name"], steps[0]["applied_at"].endswith("Z"))
    assert (0, f"the schema is at step {len(steps):04}\n") == (done.exit_code, done.stderr)
    assert "0001  ledger  " in desk.words("ledger", "migrations")


def test_reading_makes_no_ledger(tmp_path: Path) -> None:
    """Commands that only read leave an empty directory empty, and say where they looked."""
    nowhere = Desk(tmp_path)
    results = [nowhere.run(*words.split()) for words in ("run list", "ledger verify", "ledger stats", "key list")]

    assert [3] * 4 == [done.exit_code for done in results]
    assert [] == [done for done in results if str(nowhere.ledger) not in done.stderr]
    assert [] == [*tmp_path.iterdir()]


def test_a_file_where_nothing_was_recorded_is_said(tmp_path: Path) -> None:
    """An empty ledger is not reported as whole."""
    desk = Desk(tmp_path)
    desk.relay().close()
    results = [desk.run("ledger", "verify"), desk.run("run", "list")]

    assert [3, 0] == [done.exit_code for done in results]
    assert "no runs yet\n" == results[1].stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
def test_a_bundle_that_does_not_fit_is_said(desk: Desk) -> None:
    """A full disk under the output is one sentence."""
    done = desk.run("ledger", "export", "--run", "last", "-o", "/dev/full")

    assert (3, True) == (done.exit_code, "No space left" in done.stderr)


def test_a_newer_seal_extends_an_older_one_without_the_ledger(desk: Desk, tmp_path: Path) -> None:
    """A proof, the older seal and a key are enough to see that nothing was taken away between two seals."""
    old, proof = tmp_path / "old", tmp_path / "proof"
    desk.run("ledger", "seal", "-o", str(old))
    with desk.relay() as relay:
        recording_of(relay).start("Look", agent=AgentId("scout"), by=ANA)
    desk.run("ledger", "seal", "--extends", str(old), "-o", str(proof))
    key = desk.answer("key", "list")["here"]["seal_key"]
    done = desk.run("ledger", "extends", str(old), str(proof), "--key", key)
    told = desk.answer("ledger", "extends", str(old), str(proof), "--key", key)

    assert (0, "proven: the seal of 11 receipts covers the 10 of the older one, unchanged\n") == (
        done.exit_code,
        done.stdout,
    )
    assert (10, 11) == (told["old"]["size"], told["new"]["size"])
    assert parse_growth(proof.read_text()).seal in desk.words("ledger", "seal")


def test_a_seal_that_is_not_extended_is_refused(desk: Desk, tmp_path: Path) -> None:
    """Another hash, another older seal, a key that nobody gave, a seal of another ledger, and a text that is none."""
    old, proof, other = tmp_path / "old", tmp_path / "proof", tmp_path / "other"
    desk.run("ledger", "seal", "-o", str(old))
    with desk.relay() as relay:
        recording_of(relay).start("Look", agent=AgentId("scout"), by=ANA)
    desk.run("ledger", "seal", "--extends", str(old), "-o", str(proof))
    newer = proof.read_text().split("\n\n", 1)[1]
    lines = proof.read_text().split("\n")
    broken = tmp_path / "broken"
    broken.write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]))
    (tmp_path / "newer").write_text(newer)
    beside = record_in(tmp_path / "beside")
    beside.run("ledger", "seal", "-o", str(other))
    key = desk.answer("key", "list")["here"]["public_key"]
    answers = [
        desk.run("ledger", "extends", str(old), str(broken), "--key", key),
        desk.run("ledger", "extends", str(tmp_path / "newer"), str(proof), "--key", key),
        desk.run("ledger", "extends", str(old), str(proof), "--key", "0" * 64),
        desk.run("ledger", "extends", str(old), str(old), "--key", key),
        desk.run("ledger", "seal", "--extends", str(other)),
    ]

    assert 2 == desk.run("ledger", "seal", "--extends", str(proof)).exit_code
    assert ["verify.seal", "verify.seal", "verify.untrusted_key", "value.invalid", "verify.seal"] == [
        str(one.stderr).strip().rpartition("[")[2].partition("]")[0] for one in answers
    ]


def test_a_ledger_with_a_hole_extends_no_seal(desk: Desk, tmp_path: Path) -> None:
    """A sealed receipt that was removed from the middle is missing from the seal, whatever came after it."""
    old = tmp_path / "old"
    desk.run("ledger", "seal", "-o", str(old))
    with closing(apsw.Connection(str(desk.ledger))) as edited:
        edited.execute("DELETE FROM receipts WHERE position = 4")
    done = desk.run("ledger", "seal", "--extends", str(old))

    assert (1, True) == (done.exit_code, "at least 1 were deleted [verify.seal]" in done.stderr), done.stderr


def test_a_ledger_that_lost_receipts_extends_no_seal_of_them(desk: Desk, tmp_path: Path) -> None:
    """Whoever deleted sealed receipts, or recorded others in their place, gets no proof from the ledger."""
    shorter = tmp_path / "shorter"
    shutil.copytree(desk.ledger.parent, shorter / ".batonpass")
    with desk.relay() as relay:
        recording_of(relay).start("Look", agent=AgentId("scout"), by=ANA)
    desk.run("ledger", "seal", "-o", str(tmp_path / "seal"))
    rewritten = Desk(shorter)
    gone = rewritten.run("ledger", "seal", "--extends", str(tmp_path / "seal"))
    with rewritten.relay() as relay:
        recording_of(relay).start("Look elsewhere", agent=AgentId("scout"), by=ANA)
    replaced = rewritten.run("ledger", "seal", "--extends", str(tmp_path / "seal"))

    assert (1, 1) == (gone.exit_code, replaced.exit_code)
    assert "at least 1 were deleted [verify.seal]" in gone.stderr
    assert "[verify.seal]" in replaced.stderr
