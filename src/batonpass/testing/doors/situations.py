"""The table of calls: which act is made, denied or held in which situation, with which receipts and sentences.

Sentences have placeholders: `{agent}`, `{tool}`, `{what}` (agent, tool and target), `{tried}` (the act as a grant names
it), `{may}` (the granted permits), `{where[NAME]}` (the line of the policy file), `{fetched}` (the calls that brought
content from outside).
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from batonpass.model.base.kinds import Gate
from batonpass.model.baton.baton import Budget
from batonpass.testing.doors.acts import Act, Fetch, Pay, Read, Write


@dataclass(frozen=True, slots=True)
class Made:
    """The act is made: requested, then completed."""

    flags: tuple[str, ...] = ()  # of the rules that would have stopped it
    reason: str | None = None  # the same as a sentence, if it is recorded
    outside: bool = False  # its run is tainted
    gap: bool = False  # a gap is recorded right before it


@dataclass(frozen=True, slots=True)
class Denied:
    """The act is denied, and that is recorded."""

    rule: str
    reason: str
    revoked: bool = False  # because the grant was revoked
    spelled: bool = True  # the target is shown as it was given; False: each door shows it in its own way


@dataclass(frozen=True, slots=True)
class Held:
    """The act waits for a person, and that is recorded."""

    rule: str
    reason: str
    gate: Gate = Gate.APPROVE
    outside: bool = False


@dataclass(frozen=True, slots=True)
class KeptCall:
    """An earlier attempt made the act: its result is returned, and nothing is recorded, counted or made."""


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Nothing can be written: the act is made all the same, and the gap is recorded later."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing can be written, so the act is not made; each door tells its caller in its own words."""

    mentions: str


Outcome: TypeAlias = Made | Denied | Held | KeptCall | Unrecorded | Stopped


@dataclass(frozen=True, slots=True)
class Try:
    """Ask for an act; a mode whose outcome is None is left out."""

    act: Act
    observed: Outcome | None
    enforced: Outcome | None


@dataclass(frozen=True, slots=True)
class Approve:
    """A person approves the latest hold, if there is one."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """A person revokes the grant, in another relay."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Somebody finds that the agent works differently from its baseline: another relay raises an alarm."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    duration: timedelta


@dataclass(frozen=True, slots=True)
class Break:
    """From here on, the `guard` or the `store` fails; with `nothing`, everything works again."""

    what: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """An act starts, and its outcome stays unknown."""

    act: Act


@dataclass(frozen=True, slots=True)
class Again:
    """The attempt fails, and another one starts."""


Step: TypeAlias = Try | Approve | Revoke | Alarm | Wait | Break | Interrupt | Again


@dataclass(frozen=True, slots=True)
class Covers:
    """A permit for an act: its pattern, and further conditions."""

    act: Act
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A constraint that binds an argument of an act's tool."""

    act: Act
    argument: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One row: the policy, the grant and the constraints, the steps, and their outcomes in each mode."""

    name: str
    steps: tuple[Step, ...]
    policy: str = ""  # the tools are {write}, {read}, {fetch} and {pay}
    may: tuple[Covers, ...] = ()
    limits: str | None = None
    lasts: timedelta | None = None
    budget: Budget | None = None
    bound: tuple[Bound, ...] = ()
    needs: tuple[str, ...] = ()  # abilities of a door; a door without one says why in `Door.cannot`

    @property
    def refuses_observed(self) -> bool:
        """Return whether a call is refused even in a run that is only observed."""
        return any(isinstance(step, Try) and not isinstance(step.observed, Made) for step in self.steps)


def near(act: Act, *, outside: bool = False, gap: bool = False) -> Try:
    """Return a near miss: almost the same act, which is made in both modes without flags."""
    made = Made(outside=outside, gap=gap)
    return Try(act, made, made)


def denied(act: Act, rule: str, reason: str, *, told: bool = True) -> Try:
    """Return an act that is denied if enforced and flagged if observed; with `told`, the flag has the reason."""
    flagged = Made((f"would_deny.{rule}",), reason if told else None)
    return Try(act, flagged, Denied(rule, reason))


def held(act: Act, rule: str, reason: str, *, gate: Gate = Gate.APPROVE, outside: bool = False) -> Try:
    """Return an act that is held if enforced and flagged if observed."""
    return Try(act, Made((f"would_hold.{rule}",), outside=outside), Held(rule, reason, gate, outside=outside))


def always(act: Act, outcome: Outcome) -> Try:
    """Return an act with the same outcome in both modes."""
    return Try(act, outcome, outcome)


A: Final = Write("out/a.txt")
B: Final = Write("out/b.txt")
KNOWN: Final = Read("out/known.txt")
PAGE: Final = Fetch()
BEN: Final = Pay("ben", 5)
CAL: Final = Pay("cal", 5)
MORE: Final = Pay("ben", 6)

FREE: Final = '[tiers]\nexternal-write = "none"\n'  # nobody has to approve a payment
CHANGED: Final = "do it in a way that is allowed, or have the rule changed"
ONLY_ANA: Final = "nobody above holds it, so only user:ana can grant it"


def a_rule(name: str, gate: str, **more: str) -> str:
    """Return a rule about calls, as the policy file has it."""
    lines = {"name": name, "on": "call", "gate": gate, **more}
    return "\n".join(["[[rules]]", *(f'{key} = "{value}"' for key, value in lines.items())]) + "\n"


def _denied_by_rule(act: Act, rule: str) -> Try:
    words = f"{{what}}; rule {rule} says deny (rule {rule}, {{where[{rule}]}}); {CHANGED}"
    return denied(act, rule, words, told=False)


_ASKED: Final = "{what}; rule ask-first says approve"
_TIER: Final = "{what}, which is declared external-write; the policy says approve"

RULES: Final = (
    Situation(
        name="a rule denies a tool",
        policy=a_rule("no-writes", "deny", tool="{write}", action="write"),
        steps=(near(KNOWN), _denied_by_rule(A, "no-writes")),
    ),
    Situation(
        name="a rule denies a target",
        policy=a_rule("not-there", "deny", tool="{write}", target="out/a.*"),
        steps=(_denied_by_rule(A, "not-there"), near(B)),
        needs=("targets",),
    ),
    Situation(
        name="a rule denies a target that is spelled otherwise",
        policy=a_rule("not-there", "deny", tool="{write}", target="out/a.*"),
        steps=(_denied_by_rule(Write("out/../out/a.txt"), "not-there"), near(B)),
        needs=("targets", "paths"),
    ),
    Situation(
        name="a rule denies an agent",
        policy=a_rule("not-you", "deny", agent="{agent}", action="write") + a_rule("not-me", "deny", agent="x{agent}"),
        steps=(near(KNOWN), _denied_by_rule(A, "not-you")),
    ),
    Situation(
        name="a rule holds the calls of an agent in alarm",
        policy=a_rule("ask-first", "approve", agent="{agent}", action="write", alarm="*"),
        steps=(near(B), Alarm(), near(KNOWN), held(A, "ask-first", _ASKED)),
    ),
    Situation(
        name="a rule holds a tool",
        policy=a_rule("ask-first", "approve", tool="{write}", action="write"),
        steps=(near(KNOWN), held(A, "ask-first", _ASKED)),
    ),
    Situation(
        name="a rule wants a call confirmed",
        policy=a_rule("confirm-it", "confirm", tool="{write}", action="write"),
        steps=(near(KNOWN), held(A, "confirm-it", "{what}; rule confirm-it says confirm", gate=Gate.CONFIRM)),
    ),
    Situation(
        name="a person approved the call",
        policy=a_rule("ask-first", "approve", tool="{write}", action="write"),
        steps=(
            held(A, "ask-first", _ASKED),
            Approve(),
            Try(A, Made(("would_hold.ask-first",)), Made()),
            held(B, "ask-first", _ASKED),
        ),
    ),
    Situation(
        name="a person approved the call once",
        policy=a_rule("ask-first", "approve", tool="{write}", action="write"),
        steps=(
            held(A, "ask-first", _ASKED),
            Approve(),
            Try(A, Made(("would_hold.ask-first",)), Made()),
            held(A, "ask-first", _ASKED),
        ),
    ),
    Situation(
        name="what leaves us is held by its tier",
        steps=(near(KNOWN), held(BEN, "tier.external-write", _TIER)),
    ),
    Situation(
        name="the policy is enforced, the run is not",
        policy="[policy]\nenforce = true\n" + a_rule("no-writes", "deny", tool="{write}", action="write"),
        steps=(
            near(KNOWN),
            always(
                A,
                Denied(
                    "no-writes", f"{{what}}; rule no-writes says deny (rule no-writes, {{where[no-writes]}}); {CHANGED}"
                ),
            ),
        ),
    ),
)

_TAINTED: Final = "{what}, and content from outside has reached it ({fetched}); no older terms name this call"

TAINT: Final = (
    Situation(
        name="a stranger's words came in before a payment",
        policy=FREE,
        steps=(near(PAGE), held(CAL, "taint", _TAINTED, outside=True)),
    ),
    Situation(
        name="a payment came before a stranger's words",
        policy=FREE,
        steps=(near(BEN), near(PAGE, outside=True)),
    ),
    Situation(
        name="a tainted run changes what can be undone",
        policy=FREE,
        steps=(near(PAGE), near(A, outside=True)),
        needs=("reversible", "one run"),
    ),
    Situation(
        name="a payment was named before the stranger's words came",
        policy=FREE,
        may=(Covers(PAGE), Covers(BEN), Covers(Pay("*", 5))),
        steps=(near(PAGE), near(BEN, outside=True), held(CAL, "taint", _TAINTED, outside=True)),
        needs=("grants by target",),
    ),
)

_FULL: Final = "at most 2 calls is violated: this is call 3; respect it, or have its author relax it"
_REVOKED: Final = "the grant was revoked; stop, and say what is done and what is not"
_ENDED: Final = "the grant ended at {until}, and it is {now}; ask for a new one"

GRANTS: Final = (
    Situation(
        name="a grant does not cover the act",
        may=(Covers(A), Covers(KNOWN)),
        steps=(near(A), denied(Pay("ben", 5), "grant", f"{{agent}} may {{may}}, tried {{tried}}; {ONLY_ANA}")),
        policy=FREE,
    ),
    Situation(
        name="a grant covers another file",
        may=(Covers(A),),
        steps=(near(A), denied(B, "grant", f"{{agent}} may {{may}}, tried {{tried}}; {ONLY_ANA}")),
        needs=("grants by target",),
    ),
    Situation(
        name="a grant covers smaller amounts",
        policy=FREE,
        may=(Covers(BEN, " where amount <= 5"),),
        steps=(denied(MORE, "grant", f"{{agent}} may {{may}}, tried {{tried}} with amount 6; {ONLY_ANA}"),),
        needs=("arguments",),
    ),
    Situation(
        name="a grant covers this amount",
        policy=FREE,
        may=(Covers(BEN, " where amount <= 5"),),
        steps=(near(BEN),),
        needs=("arguments",),
    ),
    Situation(
        name="a limit on calls is reached",
        may=(Covers(A), Covers(KNOWN)),
        limits="at most 2 calls",
        steps=(near(A), near(KNOWN), denied(A, "limit", _FULL)),
    ),
    Situation(
        name="a grant is revoked between two calls",
        may=(Covers(A), Covers(KNOWN)),
        steps=(
            near(A),
            Revoke(),
            Try(KNOWN, Made(("would_deny.grant",), _REVOKED), Denied("grant", _REVOKED, revoked=True)),
        ),
    ),
    Situation(
        name="a grant has ended",
        may=(Covers(A), Covers(KNOWN)),
        lasts=timedelta(hours=1),
        steps=(
            Wait(timedelta(minutes=59)),
            near(A),
            Wait(timedelta(minutes=1)),
            denied(KNOWN, "grant", _ENDED),
        ),
        needs=("clock",),
    ),
)

_TOO_MUCH: Final = "amount <= 5 is violated: 'amount' is 6; respect it, or have its author relax it"

BOUNDS: Final = (
    Situation(
        name="a constraint binds an argument",
        policy=FREE,
        bound=(Bound(act=BEN, argument="amount", operator="<=", value="5"),),
        steps=(denied(MORE, "constraint", _TOO_MUCH),),
        needs=("constraints", "arguments"),
    ),
    Situation(
        name="a constraint is kept",
        policy=FREE,
        bound=(Bound(act=BEN, argument="amount", operator="<=", value="5"),),
        steps=(near(BEN),),
        needs=("constraints", "arguments"),
    ),
    Situation(
        name="a budget of calls is used up",
        budget=Budget(calls=2),
        steps=(near(A), near(KNOWN), denied(A, "budget", _FULL)),
        needs=("handoff",),
    ),
)

_BROKEN: Final = "{tool} was not called: the guard failed with RuntimeError: it broke; have it fixed, then try again"

FAULTS: Final = (
    Situation(
        name="the guard fails",
        steps=(near(A), Break("guard"), denied(B, "guard", _BROKEN), Break("nothing"), near(KNOWN)),
        needs=("faults",),
    ),
    Situation(
        name="the store fails",
        steps=(
            near(A),
            Break("store"),
            Try(B, Unrecorded(), Stopped("there is no room left")),
            Break("nothing"),
            Try(KNOWN, Made(gap=True), None),
        ),
        needs=("faults",),
    ),
)

_DOUBT: Final = (
    "{tool} was requested before and its outcome is unknown ({call}); find out, then settle it with "
    "`batonpass handoff settle HANDOFF {ending} --repeat` or `--skip`"
)

_CHANGED: Final = (
    "{tool} would change a target that an earlier attempt changed ({call}); read what it did and go on from there, or "
    "have the call approved"
)

RETRIES: Final = (
    Situation(
        name="an earlier attempt finished the call",
        policy=FREE,
        steps=(near(BEN), Again(), always(BEN, KeptCall())),
        needs=("handoff",),
    ),
    Situation(
        name="what an earlier attempt finished is not counted again",
        budget=Budget(calls=2),
        steps=(near(KNOWN), Again(), always(KNOWN, KeptCall()), near(KNOWN), denied(A, "budget", _FULL)),
        needs=("handoff",),
    ),
    Situation(
        name="what an earlier attempt finished is not held again",
        policy=a_rule("ask-first", "approve", tool="{write}", action="write"),
        steps=(
            held(A, "ask-first", _ASKED),
            Approve(),
            Try(A, Made(("would_hold.ask-first",)), Made()),
            Again(),
            always(A, KeptCall()),
            held(B, "ask-first", _ASKED),
        ),
        needs=("handoff",),
    ),
    Situation(
        name="an earlier attempt changed the target",
        steps=(
            near(A),
            Again(),
            Try(
                Write(A.path, "other"),
                Made(("would_hold.target-changed",), _CHANGED),
                Denied("target-changed", _CHANGED),
            ),
            near(B),
        ),
        needs=("handoff", "targets"),
    ),
    Situation(
        name="nobody knows whether an earlier attempt made the call",
        steps=(Interrupt(A), Again(), near(B), always(A, Denied("call.in-doubt", _DOUBT))),
        needs=("handoff", "interruptions"),
    ),
)

SITUATIONS: Final = (*RULES, *TAINT, *GRANTS, *BOUNDS, *FAULTS, *RETRIES)
