"""Approving and denying what waits, from the command line."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import click
import pytest

from batonpass import Constraint
from batonpass.cli.handoff import approval as handoff_deciding
from batonpass.errors import CallDeniedError, CallSuspendedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.lifecycle import State
from batonpass.relay import Relay
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk


@tool(reversible=False, target="place")
def deploy(place: str) -> str:
    """Pretend to deploy."""
    return f"deployed {place}"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "batonpass.toml").write_text("[policy]\nenforce = true\n", encoding="utf-8")
    return a_desk(tmp_path)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    with desk.relay() as opened:
        yield opened


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    return relay.start("Fix", by="user:ana", items=[Constraint("never on Fridays")])


def test_an_approval_is_unproven(desk: Desk, lead: LiveRun) -> None:
    """It says who, by default whoever is logged in, and that no key proves it."""
    lead.hand_off("mailer", "Tell everybody", hold=True)
    held = desk.words("handoff", "show", "mailer")
    done = desk.run("handoff", "approve", "mailer", "--reason", "they know")

    assert ("mailer", True) == (done.stdout.split()[0], done.stdout.endswith("approved by user:tess (unproven)\n"))
    assert "approval    waiting: batonpass handoff approve " in held
    shown = desk.words("handoff", "show", "mailer")
    told = 'by user:tess · unproven: no approver\'s key signed · was shown nothing: "they know"'
    assert f"\napproval    {told}\n" in shown


def test_a_person_is_shown_what_is_approved(desk: Desk, lead: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the handoff is shown first, and the digest of exactly that is kept."""
    lead.hand_off("mailer", "Tell everybody", hold=True)
    monkeypatch.setattr(handoff_deciding, "can_be_asked", lambda: True)
    done = desk.run("handoff", "approve", "mailer", typed="y\n")
    approval = desk.answer("handoff", "show", "mailer")["approval"]["acts"][0]
    *shown, said = click.unstyle(done.stdout).splitlines(keepends=True)

    assert (sha256("".join(shown).encode()).hexdigest(), True) == (approval["shown"], approval["looked_ms"] >= 0)
    assert (True, ["approval.unproven"]) == (approval["measured_ms"] >= 0, approval["flags"])
    assert said.endswith("approved by user:tess (unproven)\n")


def test_a_person_may_say_no(desk: Desk, lead: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does not confirm has approved nothing."""
    handoff = lead.hand_off("mailer", "Tell everybody", hold=True)
    monkeypatch.setattr(handoff_deciding, "can_be_asked", lambda: True)

    assert (130, State.HELD) == (desk.run("handoff", "approve", "mailer", typed="n\n").exit_code, handoff.state())


def test_a_denial_says_why(desk: Desk, lead: LiveRun) -> None:
    """A held handoff that is denied is over, and its reason is shown."""
    lead.hand_off("mailer", "Tell everybody", hold=True)
    desk.words("handoff", "deny", "mailer", "--reason", "not today")

    assert '\napproval    denied by user:tess: "not today"\n' in desk.words("handoff", "show", "mailer")


def held(lead: LiveRun, place: str = "prod") -> str:
    with pytest.raises(CallSuspendedError) as suspended:
        lead.call(deploy, place)
    return suspended.value.call


def test_a_held_call_of_a_root_is_listed(desk: Desk, lead: LiveRun) -> None:
    """It waits beside the handoffs that wait, with what it would be made on; decided, it is gone from there."""
    call = held(lead)
    shown = desk.words("handoff", "list", "--state", "held")
    told = desk.answer("handoff", "list", "--open")

    assert [call[-4:], "lead", lead.id[-4:], "held"] == shown.splitlines()[-1].split()[:4]
    assert 'deploy "prod"' in shown
    assert [(call, lead.id, "deploy", "tier.irreversible")] == [
        (each["call"], each["run"], each["tool"], each["rule"]) for each in told
    ]
    assert [] == desk.answer("handoff", "list", "--state", "held", "--root", relay_of_another(desk))
    desk.words("handoff", "deny", call, "--reason", "no")
    assert [] == desk.answer("handoff", "list", "--state", "held")


def relay_of_another(desk: Desk) -> str:
    """Return another root."""
    with desk.relay() as relay:
        return relay.start("Other", by="user:ben").id


def test_a_root_goes_on_with_what_another_process_let_be_made(desk: Desk, lead: LiveRun) -> None:
    """The command records it where it may write; the root's next such call sees it."""
    call = held(lead)
    with pytest.raises(CallSuspendedError) as again:
        lead.call(deploy, "prod")
    done = desk.run("handoff", "approve", call[-6:], "--reason", "it is time")

    assert (call, 0, f"call {call[-4:]} · approved by user:tess (unproven)\n") == (
        again.value.call,
        done.exit_code,
        done.stdout,
    )
    assert "deployed prod" == lead.call(deploy, "prod")
    told = 'by user:tess · unproven: no approver\'s key signed · was shown nothing: "it is time"'
    assert f"approved  {told}" in desk.words("why", call)
    assert "held: tier.irreversible · approved by user:tess (unproven)" in desk.words("trail", "last")


def test_a_refused_call_is_refused_for_good(desk: Desk, lead: LiveRun) -> None:
    """The root gets an error that says who, and the record a denial."""
    call = held(lead)
    desk.words("handoff", "deny", call, "--reason", "never")

    for _ in range(2):
        with pytest.raises(CallDeniedError, match="user:tess denied deploy"):
            lead.call(deploy, "prod")
    again = desk.run("handoff", "approve", call)
    assert (1, True) == (again.exit_code, f"user:tess has already refused {call}" in again.stderr)


def test_an_id_that_names_nothing_or_too_much_is_refused(desk: Desk, lead: LiveRun) -> None:
    """Neither a handoff nor a held call: the sentence says where to look."""
    held(lead)

    assert [1, 1, 1] == [
        desk.run("handoff", "approve", given).exit_code for given in ("nobody", "call_" + "0" * 26, "last")
    ]


def test_a_call_is_meant_by_its_tool_if_one_waits(desk: Desk, lead: LiveRun) -> None:
    """Two calls of a tool are listed to choose from; so are a call and an agent of that name."""
    held(lead)
    held(lead, "staging")
    two = desk.run("handoff", "approve", "deploy")
    lead.hand_off("deploy", "Deploy it", hold=True)
    both = desk.run("handoff", "approve", "deploy")

    assert ([1, 1], [3, 4]) == (
        [two.exit_code, both.exit_code],
        [len(done.stderr.splitlines()) for done in (two, both)],
    )


def test_a_name_means_what_waits(desk: Desk, lead: LiveRun) -> None:
    """What the same agent did before cannot be meant; two that wait are listed, and one that is over says so."""
    with lead.hand_off("mailer", "Tell the office") as mailer:
        mailer.report("told the office")
    over = desk.run("handoff", "approve", "mailer")
    lead.hand_off("mailer", "Tell everybody", hold=True)
    lead.hand_off("mailer", "Tell the press", hold=True)
    two = desk.run("handoff", "approve", "mailer")
    ids = [line.split()[0] for line in two.stderr.splitlines()[1:]]
    denied = desk.run("handoff", "deny", ids[0], "--reason", "not them")
    last = desk.run("handoff", "approve", "mailer")

    assert [1, 1, 0, 0] == [done.exit_code for done in (over, two, denied, last)]
    assert ("is completed" in over.stderr, 2) == (True, len(ids))
    assert last.stdout.startswith(f"mailer {ids[1]} · offered · approved by user:tess")


def test_what_is_shown_of_a_call_is_all_that_is_material(
    desk: Desk, lead: LiveRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for whom, tool, arguments and target, rule and gate, and what binds it; all of it made harmless."""
    call = held(lead, "prod\x1b[2J\u202e")
    monkeypatch.setattr(handoff_deciding, "can_be_asked", lambda: True)
    shown = desk.run("handoff", "deny", call, "--reason", "no", typed="n\n").stdout

    for part in (
        f"lead {lead.id[-4:]} ← user:ana",
        "who wants Fix",
        "deploy · changes something: irreversible",
        "on        prod\\x1b[2J\\u202e",
        'place = "prod\\u001b[2J\\u202e"',
        "gate      rule tier.irreversible · a person has to approve it",
        "written   the shipped policy",
        "if yes    this call may be made once, within 1 day",
        "if no     it is refused for good; its run goes on",
        "undo      it cannot be undone",
        "bound by  never on Fridays · nothing checks it",
    ):
        assert part in shown
    assert "\x1b[2J" not in shown


def test_an_approval_that_takes_a_proof_is_refused_without_one(desk: Desk, relay: Relay) -> None:
    """Whoever says yes without a terminal proves nothing, and the sentence says what would."""
    (desk.directory / "batonpass.toml").write_text("[policy]\nenforce = true\nproven = true\n", encoding="utf-8")
    with desk.relay() as strict:
        handoff = strict.start("Fix", by="user:ana").hand_off("mailer", "Tell everybody", hold=True)
    for more in (["--yes"], ["--json"], []):
        done = desk.run("handoff", "approve", "mailer", *more)
        assert (1, True) == (done.exit_code, "batonpass approver add user:tess" in done.output)

    assert State.HELD is relay.handoff(handoff.id).state()
    assert 0 == desk.run("handoff", "deny", "mailer", "--reason", "no").exit_code


def test_what_cannot_be_shown_is_not_asked(desk: Desk, lead: LiveRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody types, and the output goes into a file: nobody would see what they approve."""
    handoff = lead.hand_off("mailer", "Tell everybody", hold=True)
    monkeypatch.setattr(handoff_deciding, "is_person", lambda: True)
    done = desk.run("handoff", "approve", "mailer", typed="y\n")

    assert (2, True, State.HELD) == (done.exit_code, "stdout is not a terminal" in done.stderr, handoff.state())


def test_a_held_call_of_an_attempt_that_stays_open_is_decided_like_a_root_s(desk: Desk, lead: LiveRun) -> None:
    """It is listed with its run, found by its id, and made once the command let it."""
    helper = lead.hand_off("helper", "Ship it").accept()
    helper._holding.stays_open = True
    call = held(helper)
    shown = desk.words("handoff", "list", "--state", "held")
    assert [call[-4:], "helper", helper.id[-4:], "held"] == shown.splitlines()[-1].split()[:4]
    desk.words("handoff", "approve", call[-6:], "--reason", "it is time")

    assert "deployed prod" == helper.call(deploy, "prod")
    assert desk.run("handoff", "approve", call[-6:]).exit_code == 1


def test_what_takes_two_people_waits_on_after_the_first(desk: Desk, tmp_path: Path) -> None:
    """The command says so, of a call and of a handoff, and refuses the same person a second time."""
    rule = '[[rules]]\nname = "two"\non = "call"\ngate = "approve"\ntool = "deploy"\napprovals = 2\n'
    (tmp_path / "batonpass.toml").write_text(f"[policy]\nenforce = true\n\n{rule}", encoding="utf-8")
    with desk.relay() as relay:
        other = relay.start("Ship it", by="user:ana")
        call = held(other)
        handoff = other.hand_off("shipper", "Ship it", run=lambda run: run.call(deploy, "prod"))
        handoff.wait()
        for each in (call, handoff.id):
            first = desk.run("handoff", "approve", each, "--by", "user:ben")
            again = desk.run("handoff", "approve", each, "--by", "user:ben")
            own = desk.run("handoff", "approve", each, "--by", "user:ana")
            assert (0, True) == (first.exit_code, "somebody else has to approve it too" in first.stderr)
            assert [1, 1] == [done.exit_code for done in (again, own) if "[handoff.four_eyes]" in done.stderr]
        told = desk.answer("handoff", "approve", call, "--by", "user:eve")
        desk.words("handoff", "approve", handoff.id, "--by", "user:eve")

        assert (False, "deployed prod", "deployed prod") == (
            told["waits"],
            other.call(deploy, "prod"),
            handoff.wait().value,
        )
        shown = desk.words("handoff", "show", handoff.id)
        assert ("by user:ben" in shown, "by user:eve" in shown) == (True, True)
        relay.verify()


def test_a_call_that_only_waited_changes_nothing(desk: Desk, lead: LiveRun) -> None:
    """It is not counted among those that changed something."""
    handoff = lead.hand_off("shipper", "Ship it", run=lambda run: run.call(deploy, "prod"))
    handoff.wait()
    waiting = desk.words("handoff", "show", "shipper")
    handoff.approve(by="user:ben")
    handoff.wait()

    assert "reversible: " not in waiting
    assert "reversible: 0 of 1 changing call\n" in desk.words("handoff", "show", "shipper")


def test_the_rule_that_held_an_offer_is_told(desk: Desk, tmp_path: Path) -> None:
    """Whoever offered it did not hold it."""
    rule = '[policy]\nenforce = true\n[[rules]]\nname = "mail"\non = "handoff"\ngate = "approve"\nagent = "mailer"\n'
    (tmp_path / "batonpass.toml").write_text(rule, encoding="utf-8")
    with desk.relay() as relay:
        lead = relay.start("Fix", by="user:ana")
        lead.hand_off("mailer", "Tell everybody")

    said = desk.words("trail", "mailer")

    assert " offered by lead " in said
    assert " · held: rule mail · " in said
