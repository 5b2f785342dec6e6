"""Providers that are overloaded, broken, silent or cut off: asked again, or recorded; never lost."""

from datetime import timedelta
from typing import Any

import pytest

from batonpass.agents import ToolRegistry
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.integration.agents.messages_api import (
    Asked,
    Cut,
    MessagesApi,
    Said,
    Script,
    Silence,
    Status,
    Text,
    Use,
    serving,
)
from tests.integration.agents.support import House, run_async

STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "as a stream"])


def script_of(*said: Said) -> Script:
    """Return a script in which support hands to billing, whose provider says these things in turn."""
    rest = iter(said)

    def script(asked: Asked) -> Said:
        if "You are billing" in asked.system:
            return next(rest)
        return Use("handoff_to_billing", {"task": "Mend it"}) if asked.answers == 0 else Text("answered")

    return script


def count(sku: int) -> str:
    """Count what is there."""
    return f"{sku}: 7"


def played(script: Script, **options: Any) -> tuple[MessagesApi, House, str, list[str]]:  # noqa: ANN401 - of a house
    """Return what was asked, where it was recorded, what was said, and which events there are."""
    with serving(script) as api:
        house = House(api, **options)
        house.agent("billing", tools=[count])
        house.agent("support", tools=[house.to("billing")])

        async def main() -> tuple[str, list[str]]:
            return await house.ask("support", "Mend my invoice"), await house.kinds()

        said, kinds = run_async(main)
        house.relay.verify()
        return api, house, said, kinds


@STREAMS
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Status(429), id="too many requests"),
        pytest.param(Status(500), id="an error of the server"),
        pytest.param(Status(529), id="overloaded"),
        pytest.param(Cut(), id="a cut answer"),
    ],
)
def test_what_may_pass_is_asked_for_again(fault: Said, *, stream: bool) -> None:
    """The child's model is asked again, and delivers."""
    api, _, said, kinds = played(script_of(fault, Text("mended")), stream=stream)

    assert ("answered", 1, 0) == (said, kinds.count("handoff.completed"), kinds.count("handoff.failed"))
    assert 2 == len(api.of("You are billing"))


@STREAMS
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param(Status(500), "model-server", id="an error of the server"),
        pytest.param(Status(400), "model-request-rejected", id="a request that is refused"),
        pytest.param(Cut(), None, id="cut answers"),
    ],
)
def test_what_does_not_pass_is_recorded(fault: Said, error: str | None, *, stream: bool) -> None:
    """A child whose provider never answers has failed, with the reason; its parent is told and answers the user."""
    api, house, said, kinds = played(script_of(*[fault] * 9), stream=stream, retries=1)
    with house.relay.store.view() as view:
        (failed,) = [
            decode_receipt(stored.payload) for stored in view.find_receipts(ReceiptQuery(kind="handoff.failed"))
        ]

    assert ("answered", 0) == (said, kinds.count("handoff.completed"))
    assert error in {None, failed.body.error}  # type: ignore[union-attr]
    assert "message" in failed.content
    (result,) = api.of("You are support")[-1].results
    assert "billing gave back nothing: the handoff" in str(result["content"])


def test_a_provider_that_says_nothing_times_out_and_is_recorded() -> None:
    """Silence is a failure like any other."""
    _, _, said, kinds = played(script_of(Silence()), timeout=timedelta(seconds=0.3), retries=0)

    assert ("answered", 1) == (said, kinds.count("handoff.failed"))


@STREAMS
def test_malformed_arguments_are_recorded_and_corrected(*, stream: bool) -> None:
    """A call that does not fit is denied in the record, and the model is told what is wrong."""
    api, _, said, kinds = played(
        script_of(Use("count", {"sku": "not a number"}), Use("count", {"sku": 42}), Text("7 are there")), stream=stream
    )

    assert ("answered", 1, 1, 1) == (
        said,
        kinds.count("tool.denied"),
        kinds.count("tool.completed"),
        kinds.count("handoff.completed"),
    )
    assert "sku" in str(api.of("You are billing")[1].results[0]["content"])


def test_arguments_that_are_no_json_are_recorded_and_corrected() -> None:
    """In a stream a model may write anything; half an object is told back to it."""
    _, _, said, kinds = played(
        script_of(Use("count", '{"sku": 4'), Use("count", {"sku": 42}), Text("7 are there")), stream=True
    )

    assert ("answered", 1, 1) == (said, kinds.count("tool.completed"), kinds.count("handoff.completed"))


def test_a_report_that_does_not_fit_is_corrected() -> None:
    """A model that reports a field that is none is told which there are."""
    api, _, said, kinds = played(
        script_of(Use("report_back", {"result": "x", "feeling": "good"}), Use("report_back", {"result": "mended"}))
    )

    assert ("answered", 1) == (said, kinds.count("handoff.completed"))
    assert "is not a field of a report" in str(api.of("You are billing")[1].results[0]["content"])


def test_a_model_that_never_stops_is_stopped() -> None:
    """As many answers as the configuration allows, and the attempt has failed."""
    _, _, said, kinds = played(script_of(*[Use("count", {"sku": number}) for number in range(30)]))

    assert ("answered", 1, 10) == (said, kinds.count("handoff.failed"), kinds.count("tool.completed"))


def test_a_failed_child_is_tried_again_from_where_it_stopped() -> None:
    """The next attempt has the messages of the last: its finished call is not made again, and its parent not asked."""
    calls: list[int] = []

    def charge(amount: int) -> str:
        """Charge a card."""
        calls.append(amount)
        return "charged"

    charges = script_of(Use("charge", {"amount": 5}), Status(400), Text("charged once"))
    with serving(charges) as api:
        house = House(api, retries=0)
        house.agent("billing", tools=[charge])
        house.agent("support", tools=[house.to("billing")])
        house.registry.serve(house.relay)

        async def main() -> None:
            await house.ask("support", "Charge me")

        run_async(main)
        with house.relay.store.view() as view:
            (handoff,) = view.find_handoffs()
        again = house.relay.handoff(handoff.id)
        again.retry(by="user:ana")
        result = again.run()

    assert ("completed", 2, [5]) == (result.state, result.attempt, calls)
    assert ["user", "assistant", "user"] == [message["role"] for message in api.asked[-1].messages]


def test_an_unknown_tool_of_an_agent_is_named() -> None:
    """An agent that names a tool which nobody registered does not begin, and the reason says which there are."""
    registry = ToolRegistry([count])

    with pytest.raises(Exception, match="there are count"):
        registry.get("cuont")
