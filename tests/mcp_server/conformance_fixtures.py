"""What the official conformance suite asks a server for, added to ours: tools, resources and prompts for tests alone.

The handlers of the real server stay: whatever has another name than these goes to them.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

Asked = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
THREE: Final = ((1, "First"), (2, "Second"), (3, "Third"))
ENUMS: Final = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": f"value{n}", "title": f"{name} Option"} for n, name in THREE],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": [{"const": f"value{n}", "title": f"{name} Choice"} for n, name in THREE]},
    },
}
DEFAULTS: Final = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def said(text: str, *, failed: bool = False) -> types.CallToolResult:
    """Return a text."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=failed)


def embedded(uri: str, media_type: str, text: str) -> types.EmbeddedResource:
    """Return a resource inside of a result."""
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=media_type, text=text))


def form(message: str, required: tuple[str, ...] = (), /, **properties: Any) -> types.ElicitRequest:  # noqa: ANN401 - a schema
    """Return a form for a person."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str, most: int) -> types.CreateMessageRequest:
    """Return a question to the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


TEXT: Final = {"type": "string"}
SURE: Final = form("Please confirm", ("ok",), ok={"type": "boolean"})
NAME: Final = form("What is your name?", ("name",), name=TEXT)
ROUNDS: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "test_input_required_result_elicitation": ({"user_name": NAME},),
    "test_input_required_result_sampling": ({"capital_question": sample("What is the capital of France?", 100)},),
    "test_input_required_result_list_roots": ({"client_roots": types.ListRootsRequest()},),
    "test_input_required_result_request_state": ({"confirm": SURE},),
    "test_input_required_result_tampered_state": ({"confirm": SURE},),
    "test_input_required_result_multiple_inputs": (
        {"user_name": NAME, "greeting": sample("Generate a greeting", 50), "client_roots": types.ListRootsRequest()},
    ),
    "test_input_required_result_multi_round": (
        {"step1": form("Step 1: What is your name?", ("name",), name=TEXT)},
        {"step2": form("Step 2: What is your favorite color?", ("color",), color=TEXT)},
    ),
    "test_streaming_elicitation": ({"user_name": NAME},),
    "test_input_required_result_capabilities": ({"user_name": NAME, "greeting": sample("Generate a greeting", 50)},),
}


async def in_rounds(asked: Asked, name: str, params: Any) -> Answer:  # noqa: ANN401 - params of a tool or a prompt
    """Ask for input until all of it is there. The state says how far it came; the server seals it."""
    number = 0 if params.request_state is None else int(params.request_state)
    rounds, given = ROUNDS[name], params.input_responses or {}
    capabilities = asked.session.client_capabilities
    wanted = {key: one for key, one in rounds[number].items() if _can(capabilities, one)}
    if set(wanted) <= set(given):
        number += 1
        if number == len(rounds):
            shown = {key: one.model_dump(mode="json") for key, one in given.items() if key in wanted}
            return said(f"Hello, state-ok {json.dumps(shown)}")
        wanted = rounds[number]
    return types.InputRequiredResult(input_requests=wanted, request_state=str(number))


def _can(capabilities: types.ClientCapabilities | None, request: object) -> bool:
    if capabilities is None:
        return False
    kinds = {types.ElicitRequest: capabilities.elicitation, types.CreateMessageRequest: capabilities.sampling}
    return kinds.get(type(request), capabilities.roots) is not None  # type: ignore[call-overload]


async def with_logging(asked: Asked, _: Mapping[str, Any]) -> Answer:
    """Log three times."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await asked.session.send_log_message("info", text, related_request_id=asked.request_id)
    return said("logged")


async def needs_sampling(asked: Asked, _: Mapping[str, Any]) -> Answer:
    """Refuse a client that did not say that it can ask its model."""
    capabilities = asked.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        needed: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This needs sampling.", needed)
    return said("sampled")


async def with_progress(asked: Asked, _: Mapping[str, Any]) -> Answer:
    """Tell how far it is."""
    for done in (0, 50, 100):
        await asked.session.report_progress(done, 100)
    return said("done")


async def sampling(asked: Asked, given: Mapping[str, Any]) -> Answer:
    """Ask the client's model."""
    request = sample(str(given["prompt"]), 100)
    metadata = types_metadata(asked)
    told = await asked.session.send_request(request, types.CreateMessageResult, metadata=metadata)
    return said(f"LLM response: {told.content.text if isinstance(told.content, types.TextContent) else told.content}")


def types_metadata(asked: Asked) -> Any:  # noqa: ANN401 - the SDK's
    """Return where an answer of the client belongs."""
    from mcp.shared.message import ServerMessageMetadata  # noqa: PLC0415 - only here

    return ServerMessageMetadata(related_request_id=asked.request_id)


def elicits(message: str | None, properties: Mapping[str, Any], required: tuple[str, ...], prefix: str) -> Any:  # noqa: ANN401 - a tool
    """Return a tool that asks the person."""

    async def act(asked: Asked, given: Mapping[str, Any]) -> Answer:
        schema = {"type": "object", "properties": dict(properties), "required": list(required)}
        told = await asked.session.elicit_form(
            message or str(given["message"]), schema, related_request_id=asked.request_id
        )
        return said(f"{prefix}: action={told.action}, content={json.dumps(told.content)}")

    return act


def answers(*content: Any, failed: bool = False) -> Any:  # noqa: ANN401 - content, and a tool
    """Return a tool that always answers the same."""

    async def act(_: Asked, __: Mapping[str, Any]) -> Answer:
        return types.CallToolResult(content=list(content), is_error=failed)

    return act


IMAGE: Final = types.ImageContent(data=PIXEL, mime_type="image/png")
PERSON: Final = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
Act = Callable[[Asked, Mapping[str, Any]], Awaitable[Answer]]
CALLED: Final[dict[str, Act]] = {
    "test_simple_text": answers(types.TextContent(text="This is a simple text response for testing.")),
    "test_image_content": answers(IMAGE),
    "test_audio_content": answers(types.AudioContent(data=SOUND, mime_type="audio/wav")),
    "test_embedded_resource": answers(
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": answers(
        types.TextContent(text="Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_error_handling": answers(
        types.TextContent(text="This tool intentionally returns an error for testing"), failed=True
    ),
    "test_tool_with_logging": with_logging,
    "test_logging_tool": with_logging,
    "test_missing_capability": needs_sampling,
    "test_tool_with_progress": with_progress,
    "test_sampling": sampling,
    "test_elicitation": elicits(None, PERSON, ("username", "email"), "User response"),
    "test_elicitation_sep1034_defaults": elicits("Please review", DEFAULTS, (), "Elicitation completed"),
    "test_elicitation_sep1330_enums": elicits("Please choose", ENUMS, (), "Elicitation completed"),
}
ARGUMENTS: Final = {"test_sampling": "prompt", "test_elicitation": "message"}
PROMPTS: Final = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


def _schema(name: str) -> dict[str, Any]:
    argument = ARGUMENTS.get(name)
    named = {} if argument is None else {argument: TEXT}
    return {"type": "object", "properties": named, "required": [*named]}


def _prompt(name: str, given: Mapping[str, str]) -> list[Any]:
    if name == "test_prompt_with_arguments":
        return [types.TextContent(text=f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
    if name == "test_prompt_with_embedded_resource":
        content = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [content, types.TextContent(text="Please process the embedded resource above.")]
    if name == "test_prompt_with_image":
        return [IMAGE, types.TextContent(text="Please analyze the image above.")]
    return [types.TextContent(text="This is a simple prompt for testing.")]


class ConformanceFixtures:
    """Answers what the suite asks for, and passes everything else on to the handlers of the real server."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server
        self._real: dict[str, Any] = {}

    def add(self, method: str, params_type: Any, handler: Any) -> None:  # noqa: ANN401 - as the SDK has them
        """Put a handler before the real one, if there is one."""
        self._real[method] = getattr(self._server.get_request_handler(method), "handler", None)
        self._server.add_request_handler(method, params_type, handler)

    async def list_tools(self, asked: Asked, params: Any) -> Any:  # noqa: ANN401 - as above
        """List the tools of both."""
        found = await self._real["tools/list"](asked, params)
        more = [
            types.Tool(name=name, description=f"For tests: {name}.", input_schema=_schema(name))
            for name in (*CALLED, *ROUNDS)
        ]
        return found.model_copy(update={"tools": [*found.tools, *more]})

    async def call_tool(self, asked: Asked, params: Any) -> Any:  # noqa: ANN401 - as above
        """Call a tool."""
        if params.name in ROUNDS:
            return await in_rounds(asked, params.name, params)
        if params.name in CALLED:
            return await CALLED[params.name](asked, params.arguments or {})
        return await self._real["tools/call"](asked, params)

    async def list_prompts(self, asked: Asked, params: Any) -> Any:  # noqa: ANN401 - as above
        """List the prompts of both."""
        found = await self._real["prompts/list"](asked, params)
        more = [
            types.Prompt(
                name=name,
                description="For tests.",
                arguments=[types.PromptArgument(name=one, description="For tests.", required=True) for one in needed],
            )
            for name, needed in PROMPTS.items()
        ]
        return found.model_copy(update={"prompts": [*found.prompts, *more]})

    async def get_prompt(self, asked: Asked, params: Any) -> Any:  # noqa: ANN401 - as above
        """Return a prompt."""
        if params.name not in PROMPTS:
            return await self._real["prompts/get"](asked, params)
        if params.name == "test_input_required_result_prompt" and not params.input_responses:
            wanted = form("What context should the prompt use?", ("context",), context=TEXT)
            return types.InputRequiredResult(input_requests={"user_context": wanted})
        contents = _prompt(params.name, params.arguments or {})
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=one) for one in contents])

    async def list_resources(self, asked: Asked, params: Any) -> Any:  # noqa: ANN401 - as above
        """List the resources of both."""
        found = await self._real["resources/list"](asked, params)
        more = [
            types.Resource(uri=uri, name=uri.rpartition("/")[2], description="For tests.", mime_type=kind)
            for uri, kind in (("test://static-text", "text/plain"), ("test://static-binary", "image/png"))
        ]
        return found.model_copy(update={"resources": [*found.resources, *more]})

    async def read_resource(self, asked: Asked, params: Any) -> Any:  # noqa: ANN401 - as above
        """Return a resource."""
        uri = str(params.uri)
        known: dict[str, Any] = {
            "test://static-text": types.TextResourceContents(
                uri=uri, mime_type="text/plain", text="This is the content of the static text resource."
            ),
            "test://static-binary": types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL),
            "test://template/123/data": types.TextResourceContents(
                uri=uri,
                mime_type="application/json",
                text='{"id":"123","templateTest":true,"data":"Data for ID: 123"}',
            ),
        }
        if uri in known:
            return types.ReadResourceResult(contents=[known[uri]])
        return await self._real["resources/read"](asked, params)


async def nothing(_: Asked, __: Any) -> types.EmptyResult:  # noqa: ANN401 - as above
    """Answer what our server does not offer, and the suite of 2025-11-25 wants to see answered."""
    return types.EmptyResult()


def furnish(server: Server[Any]) -> None:
    """Add everything to a server."""
    own = ConformanceFixtures(server)
    own.add("tools/list", types.PaginatedRequestParams, own.list_tools)
    own.add("tools/call", types.CallToolRequestParams, own.call_tool)
    own.add("prompts/list", types.PaginatedRequestParams, own.list_prompts)
    own.add("prompts/get", types.GetPromptRequestParams, own.get_prompt)
    own.add("resources/list", types.PaginatedRequestParams, own.list_resources)
    own.add("resources/read", types.ReadResourceRequestParams, own.read_resource)
    own.add("resources/subscribe", types.SubscribeRequestParams, nothing)
    own.add("resources/unsubscribe", types.UnsubscribeRequestParams, nothing)
    own.add("logging/setLevel", types.SetLevelRequestParams, nothing)
