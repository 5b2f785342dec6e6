"""`batonpass.toml`: what is right becomes a policy, and what is wrong is said with its line and what to do."""

import re
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.errors import PolicyFileError
from batonpass.model.base.kinds import Gate, Relation
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.approver_scope import ApproverScope
from batonpass.model.policy.policy_rules import Demand, Policy, Rule, Subject, Tier
from batonpass.policy.document import TABLES, parse_document
from batonpass.policy.file_place import find_file
from batonpass.policy.policy_table import policy_of, read_policy

WHOLE = """
[policy]
enforce = true
hold_for = "24h"
renew_every = 4
renewal = "deny"
max_depth = 8
allowed_agents = ["editor", "review*"]
verified_only = true
asks = true
questions = 2
hops_between_questions = 3
oldest = "7d"

[handoffs.lead-to-worker]
require = ["rationale"]
method = "refuse"

[tiers]
costly = "none"

[[rules]]
name = "no-prod"
on = "call"
gate = "deny"
agent = "editor"
tool = "deploy"
action = "write"
target = "prod/**"
tier = "irreversible"
depth = 2

[[rules]]
name = "peers"
on = "handoff"
gate = "confirm"
relation = "peer-to-peer"

[claude-code]
default = "deny"
"""


APPROVERS = """
[approvers."user:ana"]
agents = ["editor", "pay*"]
may = ["pay:* where amount <= 1000", "write:src/**"]

[approvers."user:ben"]
"""


def read(text: str) -> Policy:
    return policy_of(parse_document(text.encode()))


def test_who_may_approve_what() -> None:
    """Permits as in a grant; an empty table bounds nothing; without any, every person approves everything."""
    ana = ApproverScope(agents=("editor", "pay*"), may=read_scope(["pay:* where amount <= 1000", "write:src/**"]))

    assert {"user:ana": ana, "user:ben": ApproverScope()} == read(APPROVERS).approvers
    assert {} == read(WHOLE).approvers


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[approvers."user:ana"]\nmay = ["pay:*"]\namount = 5\n',
            ":3: approvers.user:ana.amount: there is no such key",
        ),
        ('[approvers."user:ana"]\nmay = ["pay:*",\n"pay"]\n', ":3: approvers.user:ana.may[2]"),
        ('[approvers."user:ana"]\nmay = "pay:*"\n', ":2: approvers.user:ana.may: is not a list of permits"),
        ('[approvers."user:ana"]\nmay = ["pay:*; at most 3 calls"]\n', ":2: approvers.user:ana.may: "),
        ('[approvers."user:ana"]\nagents = [7]\n', ":2: approvers.user:ana.agents[1]"),
        ('[approvers."service:ci"]\n', ":1: approvers.service:ci: service:ci is not a person"),
        ('[approvers."bot:ci"]\n', ":1: approvers.bot:ci: bot:ci is not a person"),
        ('[approvers."User:ana"]\n', ":1: approvers.User:ana"),
        ("[approvers.ana]\n", ":1: approvers.ana"),
        ('[approvers]\n"user:ana" = true\n', ":2: approvers.user:ana: is not a table"),
        (
            '[[rules]]\nname = "two"\non = "call"\ngate = "confirm"\napprovals = 2\n',
            ":5: rules[1].approvals: several people approve",
        ),
        ('[[rules]]\nname = "two"\non = "call"\ngate = "approve"\napprovals = 0\n', ":5: rules[1].approvals"),
        ('[[rules]]\nname = "two"\non = "call"\ngate = "approve"\napprovals = 99\n', ":5: rules[1].approvals"),
        ("[policy]\nproven = 0\n", ":2: policy.proven"),
    ],
)
def test_what_is_wrong_with_approvers_is_said_with_its_line(text: str, problem: str) -> None:
    """A key that nobody knows, a permit that cannot be read, and somebody who is no person protect nobody."""
    with pytest.raises(PolicyFileError, match=re.escape(f"batonpass.toml{problem}")):
        read(text)


def test_what_a_file_says_of_proofs_and_of_several_people() -> None:
    """Without a word on proofs it depends on whether there are keys; a rule may take two people."""
    rule = '[[rules]]\nname = "two"\non = "call"\ngate = "approve"\napprovals = 2\n'

    assert [None, True, False] == [
        read(text).proven for text in ("", "[policy]\nproven = true\n", "[policy]\nproven = false\n")
    ]
    assert [2] == [each.approvals for each in read(rule).rules]


def test_everything_that_a_file_can_say() -> None:
    """Each key becomes the value that it spells; what is left out is as shipped."""
    policy = read(WHOLE)
    prod = Rule(
        name="no-prod",
        on=Subject.CALL,
        gate=Gate.DENY,
        agent="editor",
        tool="deploy",
        action="write",
        target="prod/**",
        tier=Tier.IRREVERSIBLE,
        depth=2,
        line=22,
    )
    peers = Rule(name="peers", on=Subject.HANDOFF, gate=Gate.CONFIRM, relation=Relation.PEER_TO_PEER, line=33)

    assert ("claude-code.default", prod, peers) == (policy.rules[0].name, *policy.rules[1:])
    assert (True, timedelta(days=1), 4, Gate.DENY, ("editor", "review*")) == (
        policy.enforce,
        policy.hold_for,
        policy.renew_every,
        policy.renewal,
        policy.allowed_agents,
    )
    handoffs = policy.handoffs
    assert (8, True, True, 2, 3, timedelta(days=7)) == (
        handoffs.max_depth,
        handoffs.verified_only,
        handoffs.asks,
        handoffs.questions,
        handoffs.hops_between_questions,
        handoffs.oldest,
    )
    assert {Relation.LEAD_TO_WORKER: ("rationale",)} == dict(handoffs.require)
    wanted = policy.requirements[Relation.LEAD_TO_WORKER]
    assert (("rationale", "constraint"), Demand.REFUSE) == (wanted.minimum, wanted.method)
    assert (Gate.NONE, Gate.APPROVE) == (policy.tiers[Tier.COSTLY], policy.tiers[Tier.IRREVERSIBLE])


def test_the_lines_are_kept_for_whoever_is_stopped() -> None:
    """A rule, a tier, a requirement and a limit all say where they are written."""
    policy = read(WHOLE)
    names = ("no-prod", "tier.costly", "method.lead-to-worker", "renew", "depth", "agents")

    assert [f"batonpass.toml:{line}" for line in (22, 20, 17, 5, 7, 8)] == [policy.where(name) for name in names]
    assert "the shipped policy" == policy.where("tier.irreversible")


def test_a_file_that_says_nothing_is_the_shipped_policy() -> None:
    """Leaving everything out changes nothing but whose policy it is."""
    shipped, empty = Policy(), read("")

    assert (shipped.requirements, shipped.tiers, shipped.handoffs, False) == (
        empty.requirements,
        empty.tiers,
        empty.handoffs,
        empty.enforce,
    )
    assert (None, "e3b0c442") == (shipped.digest, str(empty.digest)[:8])


def test_the_shipped_file_says_what_the_code_does() -> None:
    """What is printed as the default is the default."""
    text = files("batonpass.policy").joinpath("default.toml").read_text(encoding="utf-8")
    written, shipped = read(text), Policy()

    assert (shipped.requirements, shipped.tiers, shipped.handoffs, False) == (
        written.requirements,
        written.tiers,
        written.handoffs,
        written.enforce,
    )


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("[policy", 1, "is not TOML"),
        ("a = 1\n[policy]\nenforce = \n", 3, "is not TOML"),
        ("\n[polcy]\n", 2, "polcy: there is no such key; the keys are policy, handoffs, tiers, rules, claude-code"),
        ("policy = 1", 1, "policy: is not a table; write [policy]"),
        ("[policy]\n\nenforced = true", 3, "policy.enforced: there is no such key"),
        ("[policy]\nenforce = 1", 2, "policy.enforce: 1 is neither true nor false"),
        ("[policy]\nhold_for = 24", 2, "is no duration; write one like"),
        ('[policy]\nhold_for = "0h"', 2, "is no duration"),
        ("[policy]\nrenew_every = 0", 2, "0 is not a whole number from 1 on"),
        ("[policy]\nmax_depth = true", 2, "True is not a whole number"),
        ('[policy]\nrenewal = "confirm"', 2, "policy.renewal"),
        ('[policy]\nallowed_agents = "editor"', 2, "is not a list of agents; put it in brackets"),
        ('[policy]\nallowed_agents = [\n"editor",\n1]', 4, "policy.allowed_agents[2]: 1 is not a text"),
        ("[handoffs.boss-to-worker]", 1, "there is no such key; the keys are lead-to-worker"),
        ("[handoffs.lead-to-worker]\nmethod = 'must'", 2, "'must' is not one of none, report, refuse"),
        ("[handoffs.lead-to-worker]\n\nrequire = ['summary']", 3, "summary is no part of a baton"),
        ("[tiers]\ncheap = 'none'", 2, "tiers.cheap: there is no such key"),
        ("[tiers]\ncostly = 'ask'", 2, "'ask' is not one of none, confirm, approve, deny"),
        ("[rules]\nname = 'a'", 1, "is not a list of rules; begin each with [[rules]]"),
        ("[[rules]]\nname = 'a'\n", 1, "rules[1]: has no on; a rule has name, on, gate, and patterns"),
        ("[[rules]]\nname = 'A'\non = 'call'\ngate = 'deny'", 2, "rules[1].name: 'A' is not a code"),
        ("[[rules]]\nname = 'a'\non = 'call'\ngate = 'deny'\nwho = 'x'", 5, "rules[1].who: there is no such key"),
        ("[[rules]]\nname = 'a'\non = 'handoff'\ngate = 'deny'\ntool = 'x'", 5, "a handoff has no tool"),
        (
            "[[rules]]\nname = 'a'\non = 'call'\ngate = 'deny'\n\n[[rules]]\nname = 'a'\non = 'call'\ngate = 'deny'",
            7,
            "'a' is on line 1 already",
        ),
        ("a = " + "[" * 5000, 1, "is not TOML"),
        ("a = " + "9" * 5000, 1, "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, problem: str) -> None:
    """The message begins with the file and the line, and says what would be right."""
    with pytest.raises(PolicyFileError) as refused:
        read(text)

    assert f"batonpass.toml:{line}: " == str(refused.value)[: len(f"batonpass.toml:{line}: ")]
    assert problem in str(refused.value)


def test_bytes_that_are_no_text_are_said_with_their_line() -> None:
    """A file of another encoding is no policy."""
    with pytest.raises(PolicyFileError, match=r"^batonpass.toml:2: is not UTF-8"):
        parse_document(b"# a\n\xff")


def test_a_file_of_megabytes_is_refused() -> None:
    """Nobody wrote that by hand."""
    with pytest.raises(PolicyFileError, match="a policy has at most"):
        parse_document(b"#" * (1024 * 1024 + 1))


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    """Like the ledger: here, or in a parent."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "batonpass.toml").write_text("[policy]\nenforce = true\n", encoding="utf-8")

    assert (tmp_path / "batonpass.toml", True) == (find_file(inner), read_policy(tmp_path / "batonpass.toml").enforce)


def test_without_a_file_the_shipped_policy_holds(tmp_path: Path) -> None:
    """Nothing has to be written before the first run."""
    assert None is find_file(tmp_path)


def test_a_file_that_is_there_and_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Somebody meant something by it."""
    (tmp_path / "batonpass.toml").mkdir()

    with pytest.raises(PolicyFileError, match=r"^batonpass.toml:1: cannot be read"):
        read_policy(tmp_path / "batonpass.toml")
    with pytest.raises(PolicyFileError, match="cannot be read"):
        read_policy(tmp_path / "none.toml")


AT_A_LINE = re.compile(r"batonpass\.toml:([1-9]\d*): .", re.DOTALL)
WORDS = st.sampled_from(["enforce", "name", "on", "gate", "deny", "call", "x", "require", "lead-to-worker", *TABLES])
SCALARS = st.one_of(st.integers(), st.booleans(), st.floats(), WORDS, st.just("2h"))


def spelled(value: Any) -> str:  # noqa: ANN401 - whatever TOML holds
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case list():
            return f"[{', '.join(map(spelled, value))}]"
        case _:
            return str(value)


@st.composite
def policies(draw: st.DrawFn) -> str:
    lines = []
    for table in draw(st.lists(WORDS, max_size=4)):
        inner = draw(st.sampled_from(["", ".lead-to-worker", ".x"]))
        lines.append(draw(st.sampled_from([f"[{table}{inner}]", f"[[{table}{inner}]]"])))
        values = draw(st.dictionaries(WORDS, st.one_of(SCALARS, st.lists(SCALARS, max_size=2)), max_size=4))
        lines.extend(f"{key} = {spelled(value)}" for key, value in values.items())
    return "\n".join(lines)


def complaint_about(data: bytes) -> PolicyFileError | None:
    try:
        policy_of(parse_document(data))
    except PolicyFileError as error:
        return error
    return None


@given(st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode), policies().map(str.encode)))
def test_nothing_raises_anything_but_our_own_error(data: bytes) -> None:
    """Whatever somebody writes into the file, they are told a line of it that exists."""
    complaint = complaint_about(data)

    assert complaint is None or (
        AT_A_LINE.match(str(complaint)) is not None and 1 <= complaint.line <= data.count(b"\n") + 1
    )
