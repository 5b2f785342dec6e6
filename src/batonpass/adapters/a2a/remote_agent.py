"""A remote A2A agent as the runner of a handoff: asked once, asked again after a crash, told to stop when withdrawn.

Sending is a call of the run, so a grant has to cover it (`call:a2a/NAME/**`) and tiers hold it. Its outcome, the id of
the remote task, is on record before anybody waits for it. The next attempt finds it there and asks that task
instead of sending another. Whatever the agent says is from outside, and taints.
"""

import base64
import json
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final

from batonpass.adapters.a2a.remote_card import fetch_card, require_pinned
from batonpass.adapters.a2a.remote_tasks import ASKS, DONE, OVER, Document, RemoteTasks
from batonpass.dispatch.egress import Egress, EgressLimits
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.errors import (
    EgressFailedError,
    RemoteAskedError,
    RemoteFailedError,
    RemoteRefusedError,
    RemoteWithdrawnError,
)
from batonpass.handoff.history.lineage import read_lineage
from batonpass.handoff.history.travelled_lineage import URI, TravelledLineage, sign_lineage
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import current_call
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.checks import require_text
from batonpass.model.baton.items import Report
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay, desk_of, signer_of
from batonpass.wire.documents import to_document

_FIRST_PAUSE: Final = 0.05  # seconds; it grows
_LONGEST_PAUSE: Final = 5.0
_MOST_TROUBLE: Final = 20  # failed looks in a row, until the attempt fails and can be tried again
_ANSWER_BYTES: Final = 16 * 1024 * 1024


class RemoteAgent:
    """Runs handoffs by asking an A2A agent elsewhere: `relay.register("far", RemoteAgent(relay, url, digest=…))`."""

    def __init__(
        self,
        relay: Relay,
        url: str,
        *,
        digest: str | None = None,
        credential: str | None = None,
        repeatable: bool = False,
        egress: EgressRule | None = None,
        answer: Callable[[str], str | None] | None = None,
    ) -> None:
        """Name the agent by its address. `digest` is that of its card; without it, the error says which it is.

        `credential` is the name of a credential of the relay, whose secret is sent as a bearer token. `repeatable` says
        that the agent takes a message id once, as Batonpass does: then a message that may have arrived is sent again
        after a crash; otherwise a person decides. `answer` answers its questions.
        """
        self._relay = relay
        self._url = require_text("url", url)
        self._digest = digest
        self._credential = credential
        self._repeatable = repeatable
        self._egress = Egress(egress or EgressRule(), limits=EgressLimits(answer_bytes=_ANSWER_BYTES))
        self._answer = answer

    def __call__(self, run: LiveRun) -> Report | None:
        """Work on a handoff: ask the agent, wait, and report its answer."""
        # An attempt before may have ended with a failure of the agent: its record is kept, and the next number is new.
        for number in count(1):
            made: list[bool] = []
            sent = self._send(run, f"{run.baton.handoff}-{number}")
            told = run.call(self._awaiting(run, made), run.agent, str(sent["task"]), sent.get("told"))
            if told["state"] == DONE:
                return _reported(run, told)
            if made:
                raise RemoteFailedError(run.agent, told["state"], told["words"])
        raise AssertionError

    def _send(self, run: LiveRun, message: str) -> Document:
        begun: list[tuple[RemoteTasks, str]] = []
        try:
            return run.call(self._sending(run, begun), run.agent, run.task, message)
        except BaseException:
            # Withdrawn while it was sent: the outcome could not be recorded, and nobody will wait for the task.
            if begun and not self._is_open(run):
                self._stop(*begun[0])
            raise

    def _sending(self, run: LiveRun, began: list[tuple[RemoteTasks, str]]) -> Callable[[str, str, str], Document]:
        @tool(
            f"a2a/{run.agent}/send",
            external=True,
            idempotent=self._repeatable,
            credential=self._credential,
            content=("task",),
        )
        def send(agent: str, task: str, message: str) -> Document:
            """Send a task to a remote agent; return the id of the task there."""
            del agent
            tasks = self._tasks()
            said: Document = {
                "messageId": message,
                "contextId": run.baton.root,
                "role": "ROLE_USER",
                "parts": [{"text": task}, *_beside(run)],
                "extensions": [URI],
                "metadata": {URI: self._lineage(run, message, tasks.card.url)},
            }
            begun = tasks.send(said, URI)
            task = str(begun.get("id", ""))
            began.append((tasks, task))
            return {"task": task, "told": None if task else begun}

        return send

    def _awaiting(self, run: LiveRun, made: list[bool]) -> Callable[[str, str, object], Document]:
        @tool(
            f"a2a/{run.agent}/await",
            reads=True,
            external=True,
            idempotent=True,
            credential=self._credential,
        )
        def wait_for(agent: str, task: str, told: object) -> Document:
            """Wait for the task of a remote agent, and return its last state."""
            del agent
            made.append(True)
            if not task:
                return _outcome(told if isinstance(told, dict) else {})
            return _outcome(self._wait(run, self._tasks(), task))

        return wait_for

    def _wait(self, run: LiveRun, tasks: RemoteTasks, task: str) -> Document:
        pause, troubles = _FIRST_PAUSE, 0
        asked: set[str] = set()
        while True:
            try:
                found, troubles = tasks.get(task), 0
            except EgressFailedError:
                troubles += 1
                if troubles >= _MOST_TROUBLE:
                    raise
                found = {}
            state = str(found.get("status", {}).get("state", ""))
            if state in OVER:
                return found
            if not self._is_open(run):
                self._stop(tasks, task)
                raise RemoteWithdrawnError(f"{run.baton.handoff} is over here; {run.agent} was told to stop")
            if state == ASKS:
                self._reply(run, tasks, found, asked)
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _reply(self, run: LiveRun, tasks: RemoteTasks, found: Document, asked: set[str]) -> None:
        question = _texts(found.get("status", {}).get("message"))
        if question in asked:
            return
        words = None if self._answer is None else self._answer(question)
        if words is None:
            self._stop(tasks, str(found["id"]))
            raise RemoteAskedError(run.agent, question)
        asked.add(question)
        message = f"{run.baton.handoff}-answer-{len(asked)}-{run.attempt}"
        said = {"messageId": message, "taskId": found["id"], "role": "ROLE_USER", "parts": [{"text": words}]}
        tasks.send(said, URI)

    def _stop(self, tasks: RemoteTasks, task: str) -> None:
        if task:
            with suppress(RemoteRefusedError):  # it is over there
                tasks.cancel(task)

    def _is_open(self, run: LiveRun) -> bool:
        with self._relay.store.view() as view:
            return view.get_run(run.id).state is RunState.OPEN

    def _tasks(self) -> RemoteTasks:
        """Return how the agent is asked, after a look at its card. Raises `RemoteCardError`."""
        call = current_call()
        secret = None if call is None else call.credential
        headers = {} if secret is None else {"Authorization": f"Bearer {secret.secret.reveal()}"}
        card = fetch_card(self._egress, self._url, headers)
        require_pinned(card, self._digest, self._url)
        return RemoteTasks(egress=self._egress, card=card, headers=headers)

    def _lineage(self, run: LiveRun, message: str, audience: str) -> dict[str, str]:
        """Return who worked on it before, the most that they grant, and whether something from outside reached them."""
        with self._relay.store.view() as view:
            depth = read_lineage(view, view.get_run(run.id)).depth
        held = run.grant()
        given = None if held.may is None else tuple(dict.fromkeys(one.text for one in held.may))
        said = TravelledLineage(
            message=message,
            audience=audience,
            at=desk_of(self._relay).clock.now().isoformat(),
            depth=depth,
            root=run.baton.root,
            handoff=run.baton.handoff,
            principal=run.principal,
            tainted=bool(run.taint),
            may=given,
            until=None if held.until is None else held.until.isoformat(),
        )
        return sign_lineage(said, signer_of(self._relay))


def _beside(run: LiveRun) -> list[Document]:
    """Return the bounds of the task as data: criteria, constraints and exclusions travel, and nothing else does."""
    baton = run.baton
    told = {
        "criteria": list(baton.brief.criteria),
        "constraints": [to_document(one) for one in baton.constraints],
        "exclusions": [to_document(one) for one in baton.exclusions],
    }
    kept = {name: lines for name, lines in told.items() if lines}
    return [{"data": kept, "mediaType": "application/json"}] if kept else []


def _outcome(task: Document) -> Document:
    status = task.get("status") if isinstance(task.get("status"), dict) else {}
    return {
        "state": str(status.get("state", "")) if isinstance(status, dict) else "",
        "words": _texts(status.get("message")) if isinstance(status, dict) else "",
        "parts": [
            {**part, "name": str(one.get("name", ""))}
            for one in task.get("artifacts") or ()
            for part in one.get("parts") or ()
        ],
    }


def _texts(message: Any) -> str:  # noqa: ANN401 - whatever came
    parts = message.get("parts") if isinstance(message, dict) else None
    return "\n\n".join(str(part["text"]) for part in parts or () if isinstance(part, dict) and "text" in part)


def _reported(run: LiveRun, told: Document) -> Report:
    """Return the answer of the agent as a report; its files are attached with the label of outside content."""
    texts, data = [], []
    for number, part in enumerate(told["parts"], 1):
        name = str(part.get("filename") or part.get("name") or f"part-{number}")[:100]
        if "text" in part:
            texts.append(str(part["text"]))
        elif "data" in part:
            data.append(part["data"])
        elif "raw" in part:
            kind = part.get("mediaType")
            run.attach(name, base64.b64decode(part["raw"]), media_type=kind, source=f"a2a {run.agent}", untrusted=True)
        elif "url" in part:
            run.attach(name, str(part["url"]), media_type="text/plain", source=f"a2a {run.agent}", untrusted=True)
    value = None if not data else json.dumps(data[0] if len(data) == 1 else data)
    words = "\n\n".join(texts) or told["words"] or ("" if value is None else value)
    return Report(result=words, value=value)
