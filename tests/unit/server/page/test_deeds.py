"""What people do on the page: by role, once, with their name, and only what they were shown."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.model.base.lifecycle import State
from batonpass.records.hold import find_handoff_holds
from batonpass.relay import Relay
from batonpass.server.page.deed import DEEDS
from tests.page.scene import play
from tests.unit.server.conftest import House, a_house
from tests.unit.server.page.browser import Browser, a_browser, path_of
from tests.unit.server.visitor import Answered


class Stage:
    """A task in which there is something to decide, and everybody who may."""

    def __init__(self, relay: Relay) -> None:
        self.house: House = a_house(relay)
        self.relay = relay
        with relay.store.view() as view:
            self.root = next(iter(view.find_runs(roots=True))).id
            self.handoffs = {str(one.to): one.id for one in view.find_handoffs(root=self.root)}

    def browser(self, role: str = "operator") -> Browser:
        """Return somebody who has come in."""
        return a_browser(self.house, role)

    def state(self, agent: str) -> State:
        """Return the state of an agent's handoff."""
        with self.relay.store.view() as view:
            return view.get_handoff(self.handoffs[agent]).state

    def recorded(self) -> int:
        """Return how many receipts there are."""
        self.relay.store.sequence()
        with self.relay.store.view() as view:
            return view.last_position()

    @property
    def held(self) -> str:
        """Return the address of what is held."""
        return f"/approvals/{self.handoffs['mailer']}"

    def shown(self, browser: Browser) -> str:
        """Return the digest of the sheet that somebody is shown."""
        found = re.search('data-shown="([0-9a-f]{64})"', browser.get(self.held).body.decode())
        assert found is not None
        return found[1]

    def rule(self, browser: Browser, ruling: str, **fields: str) -> Answered:
        """Send the form of the decision."""
        said = {"reason": "I know them", "shown": self.shown(browser), "looked_ms": "4200", "decision": ruling}
        return browser.submit(self.held, self.held, **{**said, **fields})


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Play the task, so that it can be changed."""
    play(tmp_path, stores=2)
    home = tmp_path / ".batonpass"
    with Relay.open(
        home / "ledger.db", home=home, policy=tmp_path / "batonpass.toml", work_tree=tmp_path, keys_in_files=True
    ) as relay:
        yield Stage(relay)


def test_an_approval_is_recorded_with_what_was_shown_and_by_whom(stage: Stage) -> None:
    """The page turns into the answer, with the receipt."""
    browser = stage.browser()
    shown = stage.shown(browser)
    answer = stage.rule(browser, "approved")
    with stage.relay.store.view() as view:
        (hold,) = find_handoff_holds(view, view.get_handoff(stage.handoffs["mailer"]))
    (ruling,) = hold.approvals
    after = browser.get(stage.held).body.decode()

    assert (303, stage.held) == (answer.status, path_of(answer))
    assert ("user:operator", True, shown, 4200, False) == (
        ruling.by,
        ruling.is_for,
        ruling.shown,
        ruling.body.looked_ms,
        ruling.is_proven,
    )
    assert ("operator approved it" in after, "Approve</button>" in after, ruling.receipt.id in after) == (
        True,
        False,
        True,
    )


def test_how_long_somebody_looked_is_measured_from_when_they_came(stage: Stage) -> None:
    """Neither the refreshing of the page nor the sending of the form begins it anew."""
    browser = stage.browser()
    shown = stage.shown(browser)
    secrets = browser.secrets("/")
    browser.get(stage.held, hx_request="true")
    browser.post(stage.held, {**secrets, "key": "k", "reason": "r", "shown": shown, "decision": "denied"})
    with stage.relay.store.view() as view:
        (hold,) = find_handoff_holds(view, view.get_handoff(stage.handoffs["mailer"]))

    assert hold.approvals[0].is_measured
    assert (hold.approvals[0].body.measured_ms or 0) >= 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"reason": " "}, "value.invalid", id="without a reason"),
        pytest.param({"shown": ""}, "value.invalid", id="without what was on the screen"),
        pytest.param({"shown": "0" * 64}, "handoff.hold_changed", id="of another sheet"),
        pytest.param({"decision": "maybe"}, "value.invalid", id="of neither kind"),
        pytest.param({"key": ""}, "value.invalid", id="without a key"),
        pytest.param({"form": "x"}, "access.form", id="with another session's secret"),
    ],
)
def test_a_decision_is_refused(stage: Stage, fields: dict[str, str], code: str) -> None:
    """Nothing is recorded, and the page says why."""
    browser = stage.browser()
    before = stage.recorded()
    answer = stage.rule(browser, "approved", **fields)

    assert (True, State.HELD, before) == (code.encode() in answer.body, stage.state("mailer"), stage.recorded())


def test_denying_needs_no_script(stage: Stage) -> None:
    """Without a digest of the screen it is denied all the same."""
    stage.rule(stage.browser(), "denied", shown="", looked_ms="")

    assert State.DENIED is stage.state("mailer")


def test_pressing_twice_decides_once(stage: Stage) -> None:
    """The same form gets the same answer, and there is one receipt."""
    browser = stage.browser()
    fields = {
        **browser.secrets(stage.held),
        "reason": "I know them",
        "shown": stage.shown(browser),
        "decision": "denied",
    }
    first = browser.post(stage.held, fields)
    between = stage.recorded()
    second = browser.post(stage.held, fields)

    assert (303, 303, between) == (first.status, second.status, stage.recorded())


def test_two_people_at_once_get_one_decision(stage: Stage) -> None:
    """The second is told who decided, and nothing changes."""
    first, second = stage.browser("operator"), stage.browser("admin")
    shown, secrets = stage.shown(second), second.secrets(stage.held)
    stage.rule(first, "denied")
    late = second.post(stage.held, {**secrets, "reason": "fine", "shown": shown, "decision": "approved"})

    assert (409, State.DENIED) == (late.status, stage.state("mailer"))
    assert "operator denied it" in second.get(stage.held).body.decode()


def test_every_deed_asks_for_the_role_of_its_operation(stage: Stage) -> None:
    """An auditor decides nothing, whatever form they send; nobody does without a session."""
    auditor, nobody = stage.browser("auditor"), a_browser(stage.house)
    names = {
        "held": stage.handoffs["mailer"],
        "handoff": stage.handoffs["biller"],
        "account": stage.handoffs["biller"],
        "call": "call_01m7p9f5fxfbtrvdxzs3dzvt9p",
        "root": stage.root,
        "finding": "0" * 12,
    }
    secrets = auditor.secrets("/") | {"key": "k", "reason": "r", "answer": "a", "decision": "denied", "to": "x"}
    secrets |= {"settlement": "skip", "holds": "yes"}
    before = stage.recorded()
    told = {
        deed.name: (
            auditor.post(deed.path.format(**names), secrets).status,
            nobody.post(deed.path.format(**names), secrets).status,
        )
        for deed in DEEDS
    }

    assert {deed.name: (403, 401) for deed in DEEDS if deed.name != "verify"} | {"verify": (303, 401)} == told
    assert before == stage.recorded()


def test_a_question_is_answered(stage: Stage) -> None:
    """The work waits to be taken again, with the answer in its baton."""
    browser = stage.browser()
    asked = f"/questions/{stage.handoffs['printer']}"
    browser.submit(asked, f"/handoffs/{stage.handoffs['printer']}/answer", answer="For Ana")
    shown = browser.get(f"/handoffs/{stage.handoffs['printer']}").body.decode()

    assert (State.OFFERED, True) == (stage.state("printer"), "For Ana" in shown)


def test_a_call_in_doubt_is_settled_and_the_handoff_tried_again(stage: Stage) -> None:
    """Settled as done, it is not asked about in the form that tries again."""
    browser, biller = stage.browser(), stage.handoffs["biller"]
    (address,) = set(re.findall(rf"/handoffs/{biller}/calls/call_\w+", browser.get("/").body.decode()))
    retry = f"/handoffs/{biller}/retry"
    before = browser.get(retry).body.decode()
    browser.submit(address, f"{address}/settle", settlement="skip", reason="the bank says so")
    after = browser.get(retry).body.decode()
    browser.submit(retry, retry, reason="again")

    assert ("doubt:call_" in before, "doubt:call_" in after) == (True, False)
    assert (State.OFFERED, True) == (
        stage.state("biller"),
        "settled it: it happened, and counts as done" in browser.get(address).body.decode(),
    )


def test_trying_again_settles_what_is_in_doubt(stage: Stage) -> None:
    """In one form."""
    browser, biller = stage.browser(), stage.handoffs["biller"]
    address = f"/handoffs/{biller}/retry"
    (field,) = set(re.findall(r"doubt:call_\w+", browser.get(address).body.decode()))
    browser.submit(address, address, reason="again", **{field: "repeat"})

    assert State.OFFERED is stage.state("biller")


def test_another_agent_takes_over(stage: Stage) -> None:
    """And what nobody can do any more leads back to the handoff."""
    browser, biller = stage.browser(), stage.handoffs["biller"]
    address = f"/handoffs/{biller}/replace"
    (field,) = set(re.findall(r"doubt:call_\w+", browser.get(address).body.decode()))
    browser.submit(address, address, to="cashier", reason="the biller is down", **{field: "skip"})
    with stage.relay.store.view() as view:
        handoff = view.get_handoff(biller)
    gone = browser.ask("GET", address)

    assert ("cashier", State.OFFERED) == (handoff.to, handoff.state)
    assert (303, f"/handoffs/{biller}") == (gone.status, path_of(gone))


def test_a_handoff_is_cancelled(stage: Stage) -> None:
    """With a reason."""
    browser, printer = stage.browser(), stage.handoffs["printer"]
    address = f"/handoffs/{printer}/cancel"
    browser.submit(address, address, reason="not needed")

    assert State.CANCELLED is stage.state("printer")


@pytest.mark.parametrize(("holds", "state"), [("yes", State.VERIFIED), ("no", State.REFUTED)])
def test_a_result_is_judged(stage: Stage, holds: str, state: State) -> None:
    """By the person whose session it is."""
    browser, writer = stage.browser(), stage.handoffs["writer"]
    address = f"/handoffs/{writer}/judge"
    browser.submit(address, address, holds=holds, reason="I read it")

    assert state is stage.state("writer")
    assert "by operator" in browser.get(f"/tasks/{stage.root}").body.decode()


def test_a_grant_is_revoked(stage: Stage) -> None:
    """The page of the handoff says by whom, and no longer offers it."""
    browser, analyst = stage.browser(), stage.handoffs["analyst"]
    address = f"/handoffs/{analyst}/revoke"
    browser.submit(address, f"/grants/{analyst}/revoke", reason="stop")
    shown = browser.get(f"/handoffs/{analyst}").body.decode()

    assert ("revoked by operator" in shown, "Revoke its grant" in shown) == (True, False)


def test_the_ledger_is_sealed_and_verified(stage: Stage) -> None:
    """An administrator makes a seal; the verification goes on by itself, and the page says what it found."""
    browser = stage.browser("admin")
    sealed = browser.submit("/ledger/seals", "/ledger/seals")
    browser.submit("/ledger/verify", "/ledger/verify")
    shown = browser.get("/ledger/verify").body.decode()
    for _ in range(2000):
        if "Verifying" not in shown:
            break
        shown = browser.get("/ledger/verify").body.decode()

    assert (303, 1) == (sealed.status, browser.get("/ledger/seals").body.decode().count('aria-label="The seal over'))
    assert "It is whole" in shown
    assert b"whole, as verified" in browser.get("/tasks").body  # every page says so, below


def test_a_finding_is_acknowledged(stage: Stage) -> None:
    """It is no longer listed, and who left it as it is stands below."""
    browser = stage.browser()
    listed = browser.get(f"/review?root={stage.root}").body.decode()
    address = re.findall(rf"/review/{stage.root}/[0-9a-f]{{12}}", listed)[0]
    browser.submit(address, address, reason="we know")
    shown = browser.get(f"/review?root={stage.root}").body.decode()

    assert (address in shown, "operator" in shown, "acknowledged it" in browser.get(address).body.decode()) == (
        False,
        True,
        True,
    )
