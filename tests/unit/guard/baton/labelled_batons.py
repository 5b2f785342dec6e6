"""Reads the labelled set: batons with a problem planted in prose, and batons without."""

from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from batonpass.guard.baton.declared_format import parse_declared
from batonpass.guard.baton.known_facts import KeptContent, KnownFacts
from batonpass.guard.baton.problem import Problem
from batonpass.guard.baton.referential_drift import find_open_references
from batonpass.guard.baton.validation import validate_baton
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import ErrorType
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import Claim, Decision, ItemValue, OpenQuestion, RejectedPath, WorkItem
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import NOON, a_baton, a_brief, an_artifact, body_id, kept

HERE: Final = Path(__file__).parent / "labelled"
_TYPES: Final = {"csv": "text/csv", "json": "application/json"}


class Labelled(Struct, frozen=True, kw_only=True):
    """One baton of the set: the card of its receiver, and the type of its problem if it has one."""

    id: str
    error: ErrorType | None
    planted: str
    baton: Baton
    card: Card
    known: KnownFacts

    def questions(self) -> list[Problem]:
        """Return the problems about which its receiver would ask."""
        found = validate_baton(self.baton, known=self.known, policy=HandoffPolicy(asks=True), card=self.card)
        return [problem for problem in found if problem.blocking or problem.doubtful]


def read_set(name: str) -> list[Labelled]:
    """Return the batons in a file of the set."""
    blocks = (HERE / f"{name}.txt").read_text("utf-8").split("\n== ")
    return [_read(block.removeprefix("== ")) for block in blocks if block.strip()]


def _read(block: str) -> Labelled:
    head, *lines = block.strip().splitlines()
    name, _, label = head.partition(" ")
    error, _, planted = label.partition(" | ")
    fields = [f"{line} ".partition(": ")[::2] for line in lines]
    fields = [(key, value.removesuffix(" ")) for key, value in fields]
    single = {key: value.replace("\\n", "\n") for key, value in fields if key in {"to", "task", "why", "context"}}
    agent, description, *skills = (part.strip() for part in single["to"].split("|"))
    card = Card(
        agent=AgentId(agent),
        description=description,
        skills=tuple(one.strip() for one in skills[0].split(",")) if skills else None,
    )
    values: list[ItemValue] = []
    contents: dict[Any, KeptContent] = {}
    files = [(key.removeprefix("file "), text.replace("\\n", "\n")) for key, text in fields if key.startswith("file ")]
    if "context" in single:
        files.append(("context", single["context"]))
    for number, (file, text) in enumerate(files, 1):
        data = text.encode()
        media_type = _TYPES.get(file.rpartition(".")[2], "text/plain")
        artifact = an_artifact(file, number=number, data=data, media_type=media_type)
        parsed = parse_declared(artifact, data)
        values.append(artifact)
        contents[body_id(number)] = kept(data, fault=parsed.fault, rows=parsed.rows, text=text)
    values += [made for key, text in fields for made in _item(key, text)]
    criteria = tuple(text for key, text in fields if key == "criteria")
    baton = a_baton(
        *values, task=single["task"], to=card.agent, brief=a_brief(criteria=criteria, rationale=single.get("why"))
    )
    return Labelled(
        id=name,
        error=ErrorType(error.replace("_", "-")) if error else None,
        planted=planted,
        baton=baton,
        card=card,
        known=KnownFacts(now=NOON, contents=contents, references=find_open_references(baton)),
    )


def _item(key: str, text: str) -> list[ItemValue]:
    what, _, why = text.partition(" | ")
    match key:
        case "decided":
            return [Decision(what, why=why)]
        case "tried":
            return [RejectedPath(what, why=why)]
        case "done":
            return [WorkItem(text)]
        case "claim":
            return [Claim(text)]
        case "question":
            return [OpenQuestion(text)]
        case _:
            return []
