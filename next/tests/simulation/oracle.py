"""What has to be true after each run. It reads the receipts by itself, and knows the states of a handoff by itself."""

from collections import Counter, defaultdict
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct, field, json

from batonpass.verify.verifier import verify
from tests.simulation.scheduler import open_ledger
from tests.simulation.world import World

# What a kind needs a handoff to be, and what it makes of it.
_STEPS: Final = {
    "handoff.accepted": ({"offered"}, "running"),
    "handoff.completed": ({"running"}, "completed"),
    "handoff.failed": ({"running"}, "failed"),
    "handoff.retried": ({"running", "failed"}, "offered"),
    "handoff.cancelled": ({"offered", "running"}, "cancelled"),
}
_ENDS: Final = {"run.closed", "handoff.completed", "handoff.failed"}
_OUTCOMES: Final = {"tool.completed", "tool.failed"}


class Line(Struct, frozen=True):
    """A receipt, as the oracle reads it."""

    position: int
    stream: str
    kind: str
    seq: int
    epoch: int
    body: dict[str, Any]
    digest: str
    content: dict[str, str]

    def __str__(self) -> str:
        return f"{self.kind} of {self.stream} #{self.seq} at {self.position}"


class Handoff(Struct):
    """What the oracle knows of a handoff."""

    parent: str
    state: str = "offered"
    attempt: int = 0
    runs: list[str] = field(default_factory=list)


class Call(Struct):
    """What the oracle knows of a call."""

    line: Line
    owner: str
    outcome: str = ""
    has_result: bool = False
    settled: str = ""


def judge(world: World) -> list[str]:
    """Return what is wrong, as `kind: words`."""
    wrong: list[str] = []
    store = open_ledger(world.directory / "ledger.db")
    try:
        verify(store)
    except Exception as error:  # noqa: BLE001 - whatever it is
        wrong.append(f"verify: {error!r}")
    finally:
        store.close()
    lines = _read(world)
    digests = {line.digest for line in lines}
    wrong += [f"lost: {what}" for digest, what in world.acknowledged.items() if digest not in digests]
    return [*wrong, *Lives(world, lines).judge(), *world.wrong]


def _read(world: World) -> list[Line]:
    lines = []
    for position, payload in world.look("SELECT position, payload FROM receipts ORDER BY position"):
        statement = json.decode(payload)
        said = statement["predicate"]
        content = said.get("content", {})
        place = (position, statement["subject"][0]["name"], said["kind"], said["seq"], said["epoch"])
        lines.append(Line(*place, said["body"], sha256(payload).hexdigest(), content))
    return lines


class Lives:
    """What happened to runs, handoffs and calls, receipt by receipt."""

    def __init__(self, world: World, lines: list[Line]) -> None:
        self._world = world
        self._lines = lines
        self._wrong: list[str] = []
        self._length: Counter[str] = Counter()
        self._epoch: dict[str, int] = {}  # of runs
        self._ended: dict[str, Line] = {}  # runs, with what ended them
        self._handoffs: dict[str, Handoff] = {}
        self._handoff_of: dict[str, str] = {}  # by run
        self._offers: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)  # by owner: position, handoff
        self._began: dict[str, int] = {}  # the position of a handoff's first acceptance
        self._calls: dict[str, Call] = {}
        self._keys: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)  # by owner and key
        self._revoked: set[str] = set()
        self._heads: dict[tuple[str, int], str] = {}

    def judge(self) -> list[str]:
        """Return what is wrong."""
        for line in self._lines:
            self._judge_stream(line)
            for rule in (self._judge_handoff, self._judge_end, self._judge_call, self._judge_decision):
                rule(line)
        self._judge_world()
        return self._wrong

    def _say(self, kind: str, words: str) -> None:
        self._wrong.append(f"{kind}: {words}")

    def _owner(self, run: str) -> str:
        return self._handoff_of.get(run, run)

    def _judge_stream(self, line: Line) -> None:
        stream = line.stream
        self._length[stream] += 1
        if line.seq != self._length[stream]:
            self._say("order", f"{line} is number {self._length[stream]}")
        if stream in self._ended:
            self._say("fenced", f"{line}, which ended by {self._ended[stream]}")
        self._heads[stream, line.seq] = line.digest
        if stream.startswith("run_"):
            due = self._epoch.get(stream, 0) + (line.kind == "run.rekeyed")
            if line.epoch != due:
                self._say("fenced", f"{line} in epoch {line.epoch}, and it is {due}")
            self._epoch[stream] = due
        if line.kind in _ENDS:
            self._ended[stream] = line

    def _judge_handoff(self, line: Line) -> None:
        body, kind = line.body, line.kind
        if kind == "handoff.initiated":
            if body["handoff"] in self._handoffs:
                self._say("lifecycle", f"{line} offers it again")
            self._handoffs[body["handoff"]] = Handoff(line.stream)
            self._offers[self._owner(line.stream)].append((line.position, body["handoff"]))
        if kind not in _STEPS:
            return
        handoff = self._handoffs.get(body["handoff"])
        before, after = _STEPS[kind]
        attempt = body["attempt"] - (kind == "handoff.accepted")
        if handoff is None or handoff.state not in before or handoff.attempt != attempt:
            self._say("lifecycle", f"{line} in {handoff}")
            return
        handoff.state = after
        if kind == "handoff.accepted":
            handoff.attempt = body["attempt"]
            handoff.runs.append(line.stream)
            self._handoff_of[line.stream] = body["handoff"]
            self._began.setdefault(body["handoff"], line.position)
        elif kind in _ENDS and handoff.runs[-1] != line.stream:
            self._say("lifecycle", f"{line} ends the attempt of another: {handoff}")
        if "ended_run" in body:
            self._judge_fence(line, handoff)
        if kind == "handoff.cancelled":
            self._judge_withdrawal(line, handoff)

    def _judge_fence(self, line: Line, handoff: Handoff) -> None:
        ended = line.body["ended_run"]
        run = ended["run"]
        if run != handoff.runs[-1]:
            self._say("fenced", f"{line} ends {run}, and {handoff.runs[-1]} is at work")
        if (ended["seq"], ended["head"]) != (self._length[run], self._heads.get((run, self._length[run]))):
            self._say("fenced", f"{line} ends {run} at #{ended['seq']}, which had written more")
        self._ended.setdefault(run, line)

    def _judge_withdrawal(self, line: Line, handoff: Handoff) -> None:
        holder = line.body["holder"]
        if not self._has_offered(holder, handoff):
            self._say("withdrawal", f"{line} by {holder}, which has not offered it")
        end = self._ended.get(holder)
        if end is None or end.stream != holder or end.kind == "handoff.failed":
            self._say("withdrawal", f"{line} by {holder}, which has not closed: {end}")
        elif end.epoch != line.body["holder_epoch"]:
            self._say("withdrawal", f"{line} in another epoch than {end}")
        if handoff.runs and handoff.runs[-1] not in self._ended:
            self._say("withdrawal", f"{line} ends no run, and {handoff.runs[-1]} is at work")

    def _has_offered(self, holder: str, handoff: Handoff | None) -> bool:
        """Return whether a run, or an attempt before it, offered a handoff, or one above it that is withdrawn too."""
        while handoff is not None and self._owner(holder) != self._owner(handoff.parent):
            handoff = self._handoffs.get(self._handoff_of.get(handoff.parent, ""))
            if handoff is not None and handoff.state != "cancelled":
                return False
        return handoff is not None

    def _judge_end(self, line: Line) -> None:
        if line.kind not in _ENDS:
            return
        # Those that had begun when the close did: it reads heads before its commit.
        since = self._world.closed.get(line.stream, 0)
        offers = self._offers[self._owner(line.stream)]
        due = {handoff for _, handoff in offers if self._began.get(handoff, since + 1) <= since}
        heads = line.body.get("children", [])
        if missing := due - {self._handoff_of.get(head["run"], "") for head in heads}:
            self._say("children", f"{line} does not name {sorted(missing)}")
        for head in heads:
            if self._heads.get((head["run"], head["seq"])) != head["head"]:
                self._say("children", f"{line} names a head that {head['run']} never had")

    def _judge_call(self, line: Line) -> None:
        body = line.body
        if line.kind == "tool.requested":
            owner = self._owner(line.stream)
            call = Call(line, owner)
            same = self._keys[owner, body["key"]]
            for other in same:
                self._judge_repetition(line, other, body["tool"])
            same.append(call)
            self._calls[body["call"]] = call
            for account in body.get("charges", []):
                if account in self._revoked:
                    self._say("revoked", f"{line} needs the grant of {account}")
        elif line.kind in _OUTCOMES:
            call = self._calls[body["call"]]
            if call.outcome or call.settled:
                self._say("outcome", f"{line}, and it was {call.outcome or call.settled}")
            call.outcome, call.has_result = line.kind, "result" in line.content

    def _judge_repetition(self, line: Line, other: Call, tool: str) -> None:
        if tool == "idempotent" and line.stream == other.line.stream:
            return  # made again without asking, also at the moment at which an equal one ends or is decided
        if other.settled == "skip":
            self._say("skipped", f"{line}, and {other.line} was to be skipped")
        elif other.has_result:
            self._say("doubled", f"{line}, and {other.line} has its result")
        elif not other.settled and other.outcome != "tool.failed" and tool != "idempotent":
            self._say("doubled", f"{line}, and {other.line} is in doubt")

    def _judge_decision(self, line: Line) -> None:
        body = line.body
        if line.kind == "tool.settled":
            call = self._calls.get(body["call"])
            if call is None:
                self._say("settled", f"{line}, which was never requested")
                return
            if call.settled:
                self._say("settled", f"{line}, and it was {call.settled}")
            if call.owner != self._owner(line.stream):
                self._say("settled", f"{line}, which is of {call.owner}")
            # An outcome that another process recorded at the same moment was first: then it has no effect.
            is_over = call.has_result or call.outcome == "tool.failed"
            call.settled = "" if is_over else body["settlement"]
        elif line.kind == "tool.late_result":
            call = self._calls.get(body["call"])
            if call is None or call.outcome or not (body["run"] in self._ended or call.settled):
                self._say("late", f"{line}, and {body['run']} is at work, or has an outcome: {call}")
        elif line.kind == "grant.revoked":
            self._revoked.add(body["account"])

    def _judge_world(self) -> None:
        world = self._world
        made: Counter[str] = Counter()
        for charge in world.charges:
            if not charge.call:
                continue  # of an observed run, while nothing could be written
            made[charge.step] += 1
            call = self._calls.get(charge.call)
            if call is None or call.line.stream != charge.run:
                self._say("unrecorded", f"{charge} was made without a request")
        for number, times in Counter(charge.call for charge in world.charges if charge.call).items():
            if times > 1:
                self._say("doubled", f"{number} was made {times} times")
        repeated = Counter(world.step_of[number] for number, call in self._calls.items() if call.settled == "repeat")
        for step, times in made.items():
            if times > world.times[step] + repeated[step] and step not in world.idempotent:
                self._say("doubled", f"{step} was made {times} times, with {repeated[step]} decisions")
        for number in world.delivered:
            if number not in self._calls or self._calls[number].outcome != "tool.completed":
                self._say("unrecorded", f"{number} was delivered, and its outcome is not recorded")
