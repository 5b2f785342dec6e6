"""The table of handoffs: which is offered, refused or held, with which receipts and sentences."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from batonpass.model.base.kinds import Gate
from batonpass.testing.doors.acts import Delegate


@dataclass(frozen=True, slots=True)
class Offered:
    """The handoff is offered."""

    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """The handoff is refused. It is recorded as failed, and none of it ran."""

    error: str
    reason: str


@dataclass(frozen=True, slots=True)
class Waits:
    """The handoff is recorded and waits for a person."""

    rule: str
    gate: Gate = Gate.APPROVE


Answer: TypeAlias = Offered | Refused | Waits


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for a handoff; with `revoked`, after the grant was revoked."""

    task: Delegate
    observed: Answer
    enforced: Answer
    revoked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Handing:
    """One row: the policy and the grant, the handoffs, and the answers in each mode."""

    name: str
    steps: tuple[Ask, ...]
    policy: str = ""
    may: tuple[str, ...] = ()
    may_delegate: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()  # agents that are in alarm


HELPER: Final = Delegate("helper")
OTHER: Final = Delegate("other")
UNASKED: Final = '[handoffs.{relation}]\nmethod = "none"\n'  # no verification method is required
_TRIED_OUT: Final = "grant.tried-out"


def near(task: Delegate, *flags: str) -> Ask:
    """Return a near miss, which is offered in both modes; the flags are those of a grant that is only tried out."""
    return Ask(task, Offered(flags), Offered())


def always(task: Delegate, answer: Answer) -> Ask:
    """Return a handoff with the same answer in both modes."""
    return Ask(task, answer, answer)


def a_rule(name: str, gate: str) -> str:
    """Return a rule about handoffs to the helper."""
    return f'[[rules]]\nname = "{name}"\non = "handoff"\ngate = "{gate}"\nagent = "helper"\n'


HANDOFFS: Final = (
    Handing(
        name="a rule denies a handoff",
        policy=a_rule("no-helper", "deny"),
        steps=(
            near(OTHER),
            Ask(
                HELPER,
                Offered(("would_deny.no-helper",)),
                Refused(
                    "handoff.refused",
                    "a {relation} handoff to helper; rule no-helper says deny, so it is refused (rule no-helper, "
                    "{where[no-helper]}); ask for something else, or have the policy changed",
                ),
            ),
        ),
    ),
    Handing(
        name="a rule holds a handoff",
        policy=a_rule("ask-first", "approve"),
        steps=(near(OTHER), Ask(HELPER, Offered(("would_hold.ask-first",)), Waits("ask-first"))),
    ),
    Handing(
        name="a rule holds handoffs to an agent in alarm",
        policy='[[rules]]\nname = "ask-first"\non = "handoff"\ngate = "approve"\nalarm = "analy*"\n',
        alarms=("helper",),
        steps=(near(OTHER), Ask(HELPER, Offered(("would_hold.ask-first",)), Waits("ask-first"))),
    ),
    Handing(
        name="a rule denies handoffs to an agent in alarm",
        policy='[[rules]]\nname = "not-now"\non = "handoff"\ngate = "deny"\nalarm = "*"\n',
        alarms=("helper",),
        steps=(
            near(OTHER),
            Ask(
                HELPER,
                Offered(("would_deny.not-now",)),
                Refused(
                    "handoff.refused",
                    "a {relation} handoff to helper; rule not-now says deny, so it is refused (rule not-now, "
                    "{where[not-now]}); ask for something else, or have the policy changed",
                ),
            ),
        ),
    ),
    Handing(
        name="the chain is too deep",
        policy="[policy]\nmax_depth = {depth}\n",
        steps=(
            always(
                HELPER,
                Refused(
                    "handoff.too_deep",
                    "this lineage already has {depth} agents, and the policy allows {depth}; do not delegate "
                    "further, answer with what you know",
                ),
            ),
        ),
    ),
    Handing(name="the chain is just deep enough", policy="[policy]\nmax_depth = {deeper}\n", steps=(near(HELPER),)),
    Handing(
        name="an agent is not allowed",
        policy='[policy]\nallowed_agents = ["helper", "{agent}"]\n',
        steps=(
            near(HELPER),
            always(
                OTHER,
                Refused(
                    "handoff.refused",
                    "other is not one of helper, {agent}, so it is refused (rule agents, {where[allowed_agents]}); ask "
                    "for something else, or have the policy changed",
                ),
            ),
        ),
    ),
    Handing(
        name="a required part is missing",
        policy=UNASKED + 'require = ["rationale"]\n',
        steps=(
            always(
                HELPER,
                Refused(
                    "handoff.incomplete",
                    "a {relation} handoff must say rationale; give them, or say explicitly that there are none "
                    "with none=['rationale']",
                ),
            ),
        ),
    ),
    Handing(
        name="a required part is there",
        policy=UNASKED + 'require = ["rationale"]\n',
        steps=(near(Delegate("helper", rationale="It knows more")),),
        needs=("rationale",),
    ),
    Handing(
        name="a grant can be passed on",
        may=("write:out/**",),
        may_delegate=("write:out/**",),
        steps=(near(Delegate("helper", may=("write:out/a.txt",)), _TRIED_OUT),),
    ),
    Handing(
        name="nothing can be passed on",
        may=("write:out/**",),
        steps=(
            Ask(
                HELPER,
                Offered((_TRIED_OUT, "would_deny.grant")),
                Refused(
                    "grant.missing",
                    "helper would be granted nothing: {agent} may delegate nothing; have the grant of {agent} widened "
                    "by its giver",
                ),
            ),
        ),
    ),
    Handing(
        name="more is asked for than can be passed on",
        may=("write:out/**",),
        may_delegate=("write:out/**",),
        steps=(
            Ask(
                Delegate("helper", may=("write:**",)),
                Offered((_TRIED_OUT, "would_deny.grant")),
                Refused(
                    "grant.exceeded",
                    "{agent} cannot give may write:**: it may delegate write:out/**. Ask for less, or have {agent}'s "
                    "own grant widened by its giver",
                ),
            ),
        ),
        needs=("may",),
    ),
    Handing(
        name="the grant was revoked",
        may=("write:out/**",),
        may_delegate=("write:out/**",),
        steps=(
            near(Delegate("helper", may=("write:out/a.txt",)), _TRIED_OUT),
            Ask(
                Delegate("other", may=("write:out/a.txt",)),
                Offered((_TRIED_OUT, "would_deny.grant")),
                Refused("grant.revoked", "the grant was revoked; stop, and say what is done and what is not"),
                revoked=True,
            ),
        ),
    ),
)
