"""The table `[claude-code]` of earlier versions, read as the `[[rules]]` that say the same, and written as them."""

import json
import re
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from batonpass.errors import InvalidValueError, PolicyFileError
from batonpass.model.base.ids import as_agent
from batonpass.model.base.kinds import Gate
from batonpass.model.policy.policy_rules import LONGEST_NAME, NOT, DoorName, Rule, Subject
from batonpass.model.policy.tool_pattern import read_tools
from batonpass.policy.document import CLAUDE_CODE, Document, DocumentPlace

MAIN: Final = "main"
_ALLOW: Final = "allow"
_DENY: Final = "deny"
_CODE: Final = re.compile(r"[a-z][a-z0-9_-]*")
_LONGEST_KIND: Final = LONGEST_NAME - len(f"{CLAUDE_CODE}.agents..not-allowed")
_HEADER: Final = re.compile(r"\s*\[")
_RULES: Final = re.compile(r"\s*\[\[\s*rules\s*\]\]")
_REMARK: Final = re.compile(r"\s*(?:#|$)")
_FORMER: Final = re.compile(rf'\s*\[\s*"?{CLAUDE_CODE}"?\s*[\].]')


def agent_rules(document: Document, lines: dict[str, int]) -> tuple[Rule, ...]:
    """Return the rules that `[claude-code]` stands for. They come before all others. Raises `PolicyFileError`."""
    rules = tuple(_rules(document))
    lines.update({rule.name: rule.line for rule in rules if rule.line is not None})
    return rules


def find_former(document: Document) -> str | None:
    """Return the advice for a file with tables of earlier versions; None if it has none."""
    if CLAUDE_CODE not in document.content:
        return None
    where = f"{document.file}:{document.table(CLAUDE_CODE).line}"
    return f"{where}: [{CLAUDE_CODE}] is deprecated: `batonpass policy upgrade` writes it as [[rules]]"


def upgrade(text: str, document: Document) -> str:
    """Return a file with `[[rules]]` in the place of `[claude-code]`; all else stays as it is, comments included.

    The caller compares the two: a file in an unusual layout may come out wrong.
    """
    rules = tuple(_rules(document))
    kept: list[str] = []
    remarks: list[str] = []  # above the next header, to which they belong
    is_former = False
    for line in text.splitlines():
        if _HEADER.match(line):
            is_former = _FORMER.match(line) is not None
            kept += () if is_former else remarks
        if not is_former:
            kept.append(line)
        remarks = [*remarks, line] if is_former and _REMARK.match(line) else []
    # The rules of this table came first, and the first that matches decides.
    at = next((number for number, line in enumerate(kept) if _RULES.match(line)), len(kept))
    while at > 0 and kept[at - 1].lstrip().startswith("#"):
        at -= 1
    parts = ("\n".join(kept[:at]).rstrip(), *map(write_rule, rules), "\n".join(kept[at:]).strip())
    return "\n\n".join(part for part in parts if part.strip()).lstrip("\n") + "\n"


def write_rule(rule: Rule) -> str:
    """Return a rule as it is written in the file."""
    values = {name: getattr(rule, name) for name in structs.asdict(rule) if name != "line"}
    told = {name: value for name, value in values.items() if value is not None and value != ()}
    if told["approvals"] == 1:
        del told["approvals"]
    written = [f"{'except' if name == 'unless' else name} = {_written(value)}" for name, value in told.items()]
    return "\n".join(["[[rules]]", *written])


def _written(value: object) -> str:
    # JSON's texts, lists and numbers are TOML's as well.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def _rules(document: Document) -> Iterator[Rule]:
    place = document.table(CLAUDE_CODE)
    table = place.table(("default", MAIN, "agents"))
    agents = table["agents"].table() if "agents" in table else {}
    limits = [(CLAUDE_CODE, f"{CLAUDE_CODE}.{MAIN}", table[MAIN])] if MAIN in table else []
    limits += [(as_agent(kind), _name(kind, number), given) for number, (kind, given) in enumerate(agents.items(), 1)]
    listed = []
    for agent, name, given in limits:
        found = given.table((_ALLOW, _DENY))
        if _DENY in found and (denied := _tools(found[_DENY])):
            yield _rule(f"{name}.denied", found[_DENY], agent=agent, tool=denied)
        if _ALLOW in found:
            listed.append(agent)
            yield _rule(f"{name}.not-allowed", found[_ALLOW], agent=agent, unless=_tools(found[_ALLOW]))
    default = table.get("default")
    if default is None:
        return
    if default.value not in {_ALLOW, _DENY}:
        raise default.error('is neither "allow" nor "deny"')
    if default.value == _DENY:
        yield _rule(f"{CLAUDE_CODE}.default", default, agent=("*", *(f"{NOT}{agent}" for agent in listed)))


def _rule(
    name: str,
    place: DocumentPlace,
    *,
    agent: str | tuple[str, ...],
    tool: tuple[str, ...] | None = None,
    unless: tuple[str, ...] = (),
) -> Rule:
    return Rule(
        name=name,
        on=Subject.CALL,
        gate=Gate.DENY,
        agent=agent,
        tool=tool,
        unless=unless,
        door=DoorName.CLAUDE_CODE,
        line=place.line,
    )


def _name(kind: str, number: int) -> str:
    """Return the beginning of the names of an agent's rules. A number replaces a kind that is no valid name."""
    fits = len(kind) <= _LONGEST_KIND and _CODE.fullmatch(kind)
    return f"{CLAUDE_CODE}.agents.{kind if fits else number}"


def _tools(place: DocumentPlace) -> tuple[str, ...]:
    """Return a list of tools, each of which is checked, so that an error names its line."""
    for element in place.elements("tools"):
        try:
            read_tools("tool", (element.text(),))
        except PolicyFileError:
            raise
        except InvalidValueError as error:
            raise element.error(error.problem) from None
    return place.texts("tools")
