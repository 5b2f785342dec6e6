"""Hooks for Schemathesis: its requests meet things that there are, and nobody takes its own token away.

Schemathesis makes up names of runs and handoffs, of which there are none, so most of its requests would end at the
look-up. Here every other request gets the name of something that an agent has just made. Things are used up (a run is
closed, a handoff is cancelled), so new ones are made again and again. What was answered is counted.
"""

import atexit
import http.client
import json
import os
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any, Final

import schemathesis
from schemathesis.core.parameters import ParameterLocation

PLACE: Final = Path(os.environ["TRIED_PLACE"])
KNOWN: Final[dict[str, Any]] = json.loads((PLACE / "known.json").read_text())
ROLE: Final = os.environ["TRIED_ROLE"]
FRESH_FOR: Final = 24  # requests, until new things are made
PROOF: Final = "Batonpass-Proof"
SIGNER: Final = "Batonpass-Signer"
ENDS: Final = frozenset(
    {"closeRun", "cancelHandoff", "declineHandoff", "acceptHandoff", "revokeGrant", "ask", "answer"}
)

ITEMS: Final = (
    *("constraints", "exclusions", "completed", "open_questions", "rejected_paths", "decisions", "assumptions"),
    *("claims", "criteria", "stop_when", "verify_by", "none"),
)
# Fields whose words are checked further than their type: made-up ones would all be refused there.
RIGHT: Final[dict[str, dict[str, Any]]] = {
    "handOff": {
        "to": "editor",
        "task": "Help",
        "may": ["read:src/a"],
        "may_delegate": [],
        "limits": None,
        "until": None,
        "relation": "lead-to-worker",
        "reasoning": None,
        "serves": None,
        "inputs": [],
        "expects": [],
        "needs_tools": [],
        "needs_skills": [],
        **{name: [] for name in ITEMS},
        "again": 0,
        "retries": None,
        "deadline": None,
        "budget": None,
        "hold": False,
    },
    "attach": {"name": "b.txt", "text": "b", "base64": None, "media_type": None, "source": None},
    "recordItem": {"item": {"type": "Decision", "value": {"what": "half-even"}}},
    "beginCall": {"tool": "look", "target": None, "action": None, "effect": None, "scripts": [], "readers": None},
    "finishCall": {"cost": None, "error": None},
    "startRun": {"agent": "lead", "may": [], "may_delegate": [], "limits": None, "until": None},
    "claimHandoff": {"agents": ["worker"]},
    "ask": {"question": "Which?"},
    "declineHandoff": {"code": "declined", "lease": None, "reason": "no"},
    "acceptHandoff": {"lease": None},
    "answer": {"text": "this"},
    "retryHandoff": {"repeat": [], "skip": [], "reason": "again"},
    "replaceAgent": {"to": "another", "repeat": [], "skip": [], "reason": "again"},
    "judgeResult": {"words": "seen"},
    "cancelHandoff": {"reason": "no"},
    "revokeGrant": {"reason": "no"},
    "rule": {"shown": None, "looked_ms": None},
    "addWebhook": {"url": KNOWN["hook"], "kinds": []},
    "addToken": {"principal": "user:eve", "lasts": "1h", "agents": [], "may": [], "may_delegate": []},
}
RIGHT_QUERY: Final[dict[str, dict[str, Any]]] = {"readText": {"ref": "task"}, "search": {"pattern": "Fix"}}
# What these are about: handoffs in the state that they take.
STATES: Final = {
    "answer": "asked",
    "ask": "offered",
    "declineHandoff": "offered",
    "acceptHandoff": "offered",
    "retryHandoff": "failed",
    "replaceAgent": "failed",
    "judgeResult": "completed",
    "takeResult": "completed",
    "readResult": "completed",
}

answered: Counter[str] = Counter()
numbers = count()


class Scene:
    """Things of one tree: a run, handoffs of it in several states, a call under way, one that is held."""

    def __init__(self) -> None:
        self.used = 0
        begun = _post("/v1/runs", {"intent": "Fix it"})
        self.proof: str = begun["proof"]
        run = begun["run"]["id"]
        offered, asked = (self._handed(run, to) for to in ("editor", "asked"))
        call = _post(f"/v1/runs/{run}/calls", {"tool": "look"}, self.proof)["call"]
        item = _post(f"/v1/runs/{run}/artifacts", {"name": "a.txt", "text": "a"}, self.proof)["item"]
        _post(f"/v1/handoffs/{asked}/question", {"question": "Which?"}, self.proof)
        self.child = _post(f"/v1/handoffs/{self._handed(run, 'child')}/attempts", {}, self.proof)
        held, completed, failed = (self._handed(run, to) for to in ("held", "checked", "failing"))
        ended = {completed: {}, failed: {"outcome": "failed", "error": {"code": "broken", "message": "x"}}}
        for handoff, how in ended.items():
            begun = _post(f"/v1/handoffs/{handoff}/attempts", {}, self.proof)
            _post(f"/v1/runs/{begun['run']['id']}/close", how, begun["proof"])
        self.states = {"offered": offered, "asked": asked, "completed": completed, "failed": failed}
        receipt = _get(f"/v1/receipts?run={run}", self.proof)["items"][0]["id"]
        self.names = {
            "run": [run, self.child["run"]["id"]],
            "handoff": [offered, asked, held, completed, failed],
            "account": [run],
            "held": [held],
            "call": [call],
            "content": [item],
            "receipt": [receipt],
            "name": ["a.txt"],
            "finding": ["ghost-task", "unclosed-run"],
            "token": KNOWN["spare_tokens"],
            "webhook": KNOWN["webhooks"],
        }

    def _handed(self, run: str, to: str) -> str:
        said = {"to": to, "task": f"Help, {next(numbers)}", "may": ["read:src/a"]}
        return str(_post(f"/v1/runs/{run}/handoffs", said, self.proof)["id"])


def _post(path: str, said: object, proof: str | None = None) -> Any:
    return _asked("POST", path, json.dumps(said), proof)


def _get(path: str, proof: str | None = None) -> Any:
    return _asked("GET", path, None, proof)


def _asked(method: str, path: str, body: str | None, proof: str | None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", KNOWN["port"], timeout=60)
    headers = {"Authorization": f"Bearer {KNOWN['tokens']['agent']}", "Content-Type": "application/json"}
    headers |= {} if proof is None else {PROOF: proof}
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status >= 300:
        raise ConnectionError(f"{method} {path}: {told}")
    return told


scenes: list[Scene] = []  # the last one is in use


def _living() -> Scene:
    if not scenes or scenes[-1].used >= FRESH_FOR:
        scenes[:] = [Scene()]
    scenes[-1].used += 1
    return scenes[-1]


def _name(case: Any) -> str:
    return str(case.operation.definition.raw.get("operationId", ""))


def _is_wrong(case: Any, where: ParameterLocation) -> bool:
    """Return whether a part of a request is wrong on purpose."""
    return case.meta is not None and bool(case.meta.is_negative_at(where))


def _put_right(said: Any, right: dict[str, Any], *, wrong: bool) -> None:
    if isinstance(said, dict) and not wrong:
        said.update({name: value for name, value in right.items() if name in said})


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Let every other request be about something that there is, and no request about the token in use."""
    turn = next(numbers)
    scene = _living()
    if turn % 2 and not _is_wrong(case, ParameterLocation.PATH):
        for name in case.path_parameters or {}:
            known = scene.names.get(name)
            if known:
                case.path_parameters[name] = known[turn // 2 % len(known)]
        operation = _name(case)
        if operation in STATES:
            case.path_parameters["handoff"] = scene.states[STATES[operation]]
        _put_right(case.body, RIGHT.get(operation, {}), wrong=_is_wrong(case, ParameterLocation.BODY))
        _put_right(case.query, RIGHT_QUERY.get(operation, {}), wrong=_is_wrong(case, ParameterLocation.QUERY))
    if (case.path_parameters or {}).get("token") in KNOWN["kept_tokens"]:
        case.path_parameters["token"] = "tok_of_somebody_else"
    if case.headers is not None and SIGNER in case.headers and turn % 10:
        # Nobody signs here. What waits for a signature waits its time, and only so many may.
        del case.headers[SIGNER]
    if ROLE == "agent" and turn % 20:
        own = scene.child if scene.child["run"]["id"] in (case.path_parameters or {}).values() else None
        case.headers[PROOF] = scene.proof if own is None else own["proof"]


@schemathesis.hook  # type: ignore[untyped-decorator]
def after_call(context: Any, case: Any, response: Any) -> None:
    """Count what was answered; what was used up is made anew."""
    name = _name(case)
    answered[f"{name} {response.status_code}"] += 1
    if scenes and name in ENDS and response.status_code < 300:
        scenes[-1].used = FRESH_FOR


@atexit.register
def _written() -> None:
    with (PLACE / f"answered-{ROLE}-{os.getpid()}.json").open("w") as file:
        json.dump(answered, file)
