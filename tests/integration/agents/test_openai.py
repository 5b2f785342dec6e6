"""The same desk on the Chat Completions API: briefings in the user's role, reports by the schema."""

from batonpass.agents import OpenAIClient
from tests.integration.agents.messages_api import Asked, Said, Text, Use, serving
from tests.integration.agents.support import House, run_async


def roles(asked: Asked) -> dict[str, str]:
    """Return what stands in each role, all of it together."""
    told: dict[str, str] = {}
    for message in asked.messages:
        told[message["role"]] = told.get(message["role"], "") + str(message.get("content"))
    return told


def script(asked: Asked) -> Said:
    """Support hands to billing and answers."""
    operator = roles(asked).get("system", "") + roles(asked).get("developer", "")
    if "You are billing" in operator:
        return Use("report_back", {"result": "paid"})
    return Text("It is paid.") if "tool" in roles(asked) else Use("handoff_to_billing", {"task": "Is 42 paid?"})


def test_a_handoff_over_chat_completions() -> None:
    """The child reads its task as a user's message, and the parent the report as a tool's."""
    with serving(script) as api:
        house = House(api)
        house.client = OpenAIClient(api_key="k", base_url=f"{api.url}/v1")  # type: ignore[assignment]
        house.agent("billing")
        house.agent("support", tools=[house.to("billing")])

        async def main() -> str:
            return await house.ask("support", "Is my invoice paid?")

        assert "It is paid." == run_async(main)
    _, child, parent = map(roles, api.asked)
    assert ("- Is 42 paid?" in child["user"], "- Is my invoice paid? [" in child["user"]) == (True, True)
    assert "billing reports (unverified" in parent["tool"]
