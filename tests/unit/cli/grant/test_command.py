"""`batonpass grant`: who may do what by whose word, how much of it is used, and what would have been enough."""

import re
import unicodedata
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass import Grant
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import AgentId
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Grant as ReadGrant
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.policy.document import parse_document
from batonpass.policy.grant_tables import grants_of
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.testing.clock import NOON, FrozenClock
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk
from tests.unit.handoff.places import ANA, Disk

LIMITS = "at most 50 calls, 5.5 spend"
HOSTILE = "\x1b]0;pwned\x07\x1b[2J\u202e\u2066 evil\r\nsecond\x9b31m line"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a lead of whose grant something is used by an editor, who has its own limit."""
    lead = relay.start(
        "Fix it",
        by=ANA,
        grant=Grant(may=["read:**"], may_delegate=["read:**", "write:src/**; at most 20 calls"], limits=LIMITS),
    )
    editor = lead.hand_off("editor", "Edit", may=["write:src/*; at most 3 calls"]).accept()
    write = tool("write", target="path", cost=lambda _: 1)(lambda path: path)
    editor.call(write, "src/a.py")
    editor.call(write, "src/b.py")
    return lead


def pasted(text: str) -> dict[AgentId, ReadGrant]:
    """Return the grants of a batonpass.toml with this text in it."""
    return grants_of(parse_document(text.encode()))


def token(lead: LiveRun, path: Path) -> str:
    """Return where the proof of a call of a second editor is kept, as a tool server would get it."""
    editor = lead.hand_off("second", "Edit too", may=["write:src/**"]).accept()
    path.write_text(editor.prove(Call("write", "write", "src/a.py"), audience="disk"), encoding="utf-8")
    return str(path)


def revocations(desk: Desk) -> list[StoredReceipt]:
    """Return the receipts by which something was revoked."""
    with desk.relay() as relay, relay.store.view() as view:
        return [*view.find_receipts(ReceiptQuery(kind=Kind.GRANT_REVOKED))]


class TestShow:
    """The chain from the first hop on, and what is used of it."""

    def test_every_hop_says_who_gave_what_and_what_is_used(self, desk: Desk, lead: LiveRun) -> None:
        """A permit a line, each limit with what is used of it, by everybody below as well."""
        shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "…", desk.words("grant", "show", "editor"))
        handoff = desk.answer("handoff", "show", "editor")["id"]

        assert [
            f"lead {lead.id[-4:]} · granted by user:ana · …",
            "  may           read:**",
            "  may delegate  read:**",
            "                write:src/**; at most 20 calls · 2 of 20 calls used",
            "  limits        2 of 50 calls, 2 of 5.5 spend used",
            f"editor {handoff[-4:]} · granted by lead · …",
            "  may           write:src/*; at most 3 calls · 2 of 3 calls used",
            "  may delegate  nothing",
            "  limits        2 of 50 calls, 2 of 5.5 spend used",
        ] == shown.splitlines()

    def test_programs_get_exact_values(self, desk: Desk, lead: LiveRun) -> None:
        """The account, the mode, and for each hop both rights, limits, use and who gave it."""
        answer = desk.answer("grant", "show", "editor")
        first, second = answer["chain"]

        assert ("enforced", lead.id) == (answer["mode"], first["account"])
        assert (ANA, "lead", LIMITS) == (first["granted_by"], second["granted_by"], second["limits"])
        assert ({"calls": 2, "spend": "2"}, {"write:src/*; at most 3 calls": {"calls": 2}}) == (
            first["used"],
            second["permits"],
        )
        assert (["write:src/*; at most 3 calls"], [], None) == (
            second["may"],
            second["may_delegate"],
            second["revoked"],
        )

    def test_ends_are_shown(self, desk: Desk, relay: Relay) -> None:
        """How long, how much of the time is used, and that it is over."""
        clock = FrozenClock()
        with Relay(relay.store, home=desk.ledger.parent, clock=clock) as earlier:
            until = NOON + timedelta(hours=1)
            run = earlier.start(
                "Fix it", by=ANA, grant=Grant(may=["read:**"], limits="at most 60 seconds", until=until)
            )
            shown = desk.words("grant", "show", run.id)

        assert (True, True) == (" · ended\n" in shown, "\n  until         20" in shown)
        assert re.search(r"  limits        \d+ of 60 seconds used\n", shown)

    @pytest.mark.parametrize(
        ("mode", "said"),
        [
            pytest.param("observed", "only changes to the ledger are blocked", id="observed"),
            pytest.param("enforced", "its constraints, its budget and the policy are enforced", id="enforced"),
        ],
    )
    def test_without_a_grant_it_says_what_may_be_done(self, desk: Desk, relay: Relay, mode: str, said: str) -> None:
        """That nothing was granted is an answer, and not an error; of a run and of a handoff."""
        lead = relay.start("Look", by=ANA, mode=mode)
        lead.hand_off("helper", "Help")
        for name in ("lead", "helper"):
            shown = desk.words("grant", "show", name)
            answer = desk.answer("grant", "show", name)

            assert (True, True) == (f" · no grant · {mode}\n" in shown, said in shown)
            assert (mode, []) == (answer["mode"], answer["chain"])

    def test_a_grant_that_is_only_tried_out_says_so(self, desk: Desk, relay: Relay) -> None:
        """Nobody who reads it thinks that it holds anybody."""
        lead = relay.start("Look", by=ANA, grant=Grant(may_delegate=["write:**"]), mode="observed")
        lead.hand_off("editor", "Edit", may=["write:src/**"])

        assert desk.words("grant", "show", "editor").endswith(
            "  tried out     it denies nothing; calls that it would have denied are recorded\n"
        )

    def test_what_is_not_there_is_not_found(self, desk: Desk, lead: LiveRun) -> None:  # noqa: ARG002
        """It says what was looked for, and exits with 1."""
        for words in ((), ("--json",)):
            done = desk.run("grant", "show", "nobody", *words)

            assert (1, True) == (done.exit_code, "no handoff or run 'nobody'" in done.output)


class TestVerify:
    """Whether a grant holds, and why not."""

    def test_a_chain_that_holds(self, desk: Desk, lead: LiveRun) -> None:  # noqa: ARG002
        """Signed, linked, narrowed and in force, each on a line; for programs, that it holds."""
        labels = [line.split("  ")[0] for line in desk.words("grant", "verify", "editor").splitlines()]

        assert ["signed", "linked", "narrowed", "in force"] == labels
        assert {"holds": True, "principal": ANA, "chain": ["lead", "editor"]} == desk.answer(
            "grant", "verify", "editor"
        )

    def test_without_a_grant_there_is_nothing_to_verify(self, desk: Desk, relay: Relay) -> None:
        """Exit code 1, and which command says what may be done then."""
        relay.start("Look", by=ANA)
        done = desk.run("grant", "verify", "lead")

        assert (1, True) == (
            done.exit_code,
            "`batonpass grant show` shows what is allowed without a grant" in done.stderr,
        )

    def test_a_token_that_holds(self, desk: Desk, lead: LiveRun, tmp_path: Path) -> None:
        """With nothing but the root key, whose id is named."""
        shown = desk.words("grant", "verify", "--token", token(lead, tmp_path / "token"))

        assert "lead → second on behalf of user:ana, each hop by a relay that root key " in shown

    def test_a_token_of_another_ledger(self, desk: Desk, lead: LiveRun, tmp_path: Path) -> None:
        """Another root key let its relay grant: it does not hold here."""
        elsewhere = Desk(tmp_path / "elsewhere")
        with elsewhere.relay() as other:
            other.start("Something else", by=ANA)
        done = elsewhere.run("grant", "verify", "--token", token(lead, tmp_path / "token"))

        assert (1, True) == (done.exit_code, "[grant.root]" in done.stderr)
        assert 0 == desk.run("grant", "verify", "--token", str(tmp_path / "token")).exit_code

    @pytest.mark.parametrize("text", ["", "x", "aGVsbG8.aGVsbG8", HOSTILE])
    def test_a_token_that_is_none(self, desk: Desk, lead: LiveRun, tmp_path: Path, text: str) -> None:  # noqa: ARG002
        """Whatever the file holds, it is one sentence and exit code 1."""
        (tmp_path / "token").write_text(text, encoding="utf-8")
        done = desk.run("grant", "verify", "--token", str(tmp_path / "token"))

        assert (1, True, []) == (done.exit_code, "[grant." in done.stderr, obeyed(done.stderr))

    def test_what_is_asked_must_be_clear(self, desk: Desk, lead: LiveRun, tmp_path: Path) -> None:  # noqa: ARG002
        """Neither, both, or a file that is not there is wrong usage."""
        asked = [(), ("editor", "--token", "x"), ("--token", str(tmp_path / "missing"))]

        assert [2, 2, 2] == [desk.run("grant", "verify", *words).exit_code for words in asked]


class TestRevoke:
    """What is revoked holds no more, and everybody is told by whom and why."""

    def test_it_is_told_everywhere(self, desk: Desk, lead: LiveRun, tmp_path: Path) -> None:
        """By the one who is revoked, by those who hang from it, by its verification, and by its tokens."""
        file = token(lead, tmp_path / "token")
        done = desk.run("grant", "revoke", "lead", "--by", ANA, "--reason", f"wrong tree {HOSTILE}")
        shown = desk.words("grant", "show", "editor")
        first, second = desk.answer("grant", "show", "editor")["chain"]
        refused = [desk.run("grant", "verify", *words) for words in (("editor",), ("--token", file))]

        assert (0, f"lead {lead.id[-4:]} · revoked by user:ana\n") == (done.exit_code, done.stdout)
        assert "from now on, no call is made under it or under a grant below it" in done.stderr
        assert re.search(r'\n  revoked       by user:ana · [\d-]+ [\d:]+ · "wrong tree ', shown)
        assert f" · fell with lead {lead.id[-4:]}\n" in shown
        assert (ANA, True, None) == (
            first["revoked"]["by"],
            first["revoked"]["reason"].startswith("wrong tree"),
            second["revoked"],
        )
        assert [(1, True)] * 2 == [(done.exit_code, "[grant.revoked]" in done.stderr) for done in refused]
        assert [] == obeyed(shown + "".join(done.stderr for done in refused))

    def test_programs_get_what_was_revoked(self, desk: Desk, lead: LiveRun) -> None:
        """The account, whose it was, and what was said."""
        answer = desk.answer("grant", "revoke", "lead", "--by", ANA, "--reason", "no")

        assert {"account": lead.id, "agent": "lead", "by": ANA, "reason": "no"} == answer

    def test_once_is_enough(self, desk: Desk, lead: LiveRun) -> None:  # noqa: ARG002
        """The second one is told whose word holds, and nothing more is recorded."""
        asked = ("grant", "revoke", "lead", "--by", ANA, "--reason")
        _, done = [desk.run(*asked, reason) for reason in ("wrong tree", "to be sure")]
        answer = desk.answer("grant", "revoke", "lead", "--by", "user:bob", "--reason", "no")

        assert (0, True) == (done.exit_code, " · is already revoked, by user:ana · " in done.stdout)
        assert (ANA, "wrong tree") == (answer["by"], answer["reason"])
        assert ["wrong tree"] == [
            desk.answer("receipt", "show", stored.id)["content"]["reason"]["text"] for stored in revocations(desk)
        ]

    def test_who_and_why_are_needed(self, desk: Desk, lead: LiveRun) -> None:  # noqa: ARG002
        """Without them, with an ID and `--list`, or by nobody, it is wrong usage, and nothing is revoked."""
        asked = [
            ("lead",),
            ("lead", "--by", ANA),
            ("lead", "--by", "nobody", "--reason", "no"),
            (),
            ("lead", "--list"),
        ]

        assert [2] * 5 == [desk.run("grant", "revoke", *words).exit_code for words in asked]
        assert 0 == desk.run("grant", "verify", "editor").exit_code

    def test_what_has_no_grant_cannot_be_revoked(self, desk: Desk, relay: Relay) -> None:
        """It says so, and exits with 1."""
        relay.start("Look", by=ANA)
        done = desk.run("grant", "revoke", "lead", "--by", ANA, "--reason", "no")

        assert (1, True) == (done.exit_code, "no grant of" in done.stderr)

    def test_the_list_needs_the_root_key(self, desk: Desk, lead: LiveRun) -> None:  # noqa: ARG002
        """Where it is, the list is printed, and nothing else; where it is not, that is said."""
        listed = desk.words("grant", "revoke", "--list")
        (desk.ledger.parent / "root.key").unlink()
        done = desk.run("grant", "revoke", "--list")

        assert re.fullmatch(r"[\w-]+\n", listed)
        assert (1, "", True) == (done.exit_code, done.stdout, "[key.missing]" in done.stderr)


class TestSuggest:
    """The least grants that would have been enough, as TOML that can be used as it is."""

    @pytest.fixture
    def observed(self, desk: Desk, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> LiveRun:
        """Return a run that did this and that, some of it by whole paths, some of it beyond any grant."""
        monkeypatch.chdir(desk.directory)
        disk, lead = Disk(), relay.start("Look", by=ANA)
        for path in ("src/a.py", f"{desk.directory}/src/a.py", "docs/index.md", "src/*", "/etc/hosts"):
            lead.call(disk.write, path, "")
        lead.call(disk.mail, "ana")
        return lead

    def test_it_is_toml_with_counts(self, desk: Desk, observed: LiveRun) -> None:  # noqa: ARG002
        """A path in the work tree is relative to it; what no permit can name is counted, apart from the data."""
        done = desk.run("grant", "suggest")

        assert [
            "[grant.lead]",
            "may = [",
            '    "call:mail",  # 1 call',
            '    "write:/etc/hosts",  # 1 call',
            '    "write:docs/index.md",  # 1 call',
            '    "write:src/a.py",  # 2 calls',
            "]",
            "may_delegate = []",
        ] == done.stdout.splitlines()
        paste, uncovered = done.stderr.splitlines()
        assert (True, "not covered: 1 call whose text is gone, or that no permit can name") == (
            paste.startswith("this is a part of batonpass.toml; read it before you paste it"),
            uncovered,
        )
        assert ["lead"] == list(pasted(done.stdout))

    def test_programs_get_counts(self, desk: Desk, observed: LiveRun) -> None:  # noqa: ARG002
        """By agent and permit."""
        answer = desk.answer("grant", "suggest", "--agent", "lead", "--since", "7d")

        assert (2, 1) == (answer["grants"]["lead"]["may"]["write:src/a.py"], answer["uncovered"])

    @pytest.mark.slow
    def test_more_places_than_a_grant_holds_are_told(self, desk: Desk, observed: LiveRun) -> None:
        """The table can be pasted, and what it leaves out is said beside it."""
        disk = Disk()
        for number in range(300):
            observed.call(disk.write, f"f{number}", "")
        done = desk.run("grant", "suggest")

        assert (0, 256) == (done.exit_code, len(pasted(done.stdout)[AgentId("lead")].may.permits))
        assert "left out for lead: the 48 permits with the fewest calls; a grant holds 256 of each" in done.stderr

    def test_agents_are_apart(self, desk: Desk, observed: LiveRun) -> None:
        """Each has a table of its own, and all of it is one document."""
        with observed.hand_off("editor", "Edit") as editor:
            editor.call(Disk().write, "src/b.py", "")
        printed = desk.words("grant", "suggest")

        assert ["editor", "lead"] == list(pasted(printed))

    @pytest.mark.parametrize("words", [("--agent", "nobody"), ("--since", "2999-01-01"), ("--agent", HOSTILE)])
    def test_nothing_recorded_is_no_grant(self, desk: Desk, observed: LiveRun, words: tuple[str, ...]) -> None:  # noqa: ARG002
        """Nothing is printed where data goes, and why is said beside it."""
        done = desk.run("grant", "suggest", *words)

        assert (0, "", "no calls are recorded\n") == (done.exit_code, done.stdout, done.stderr)

    def test_a_time_that_is_none(self, desk: Desk, observed: LiveRun) -> None:  # noqa: ARG002
        """It is wrong usage."""
        assert 2 == desk.run("grant", "suggest", "--since", "soon").exit_code


def obeyed(text: str) -> list[str]:
    """Return the characters that a terminal would obey or hide."""
    return [character for character in text if unicodedata.category(character) in {"Cc", "Cf"} and character != "\n"]
