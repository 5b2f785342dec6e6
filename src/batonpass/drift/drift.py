"""Drift: each agent and kind of task, window by window, against its frozen baseline.

A baseline belongs to one configuration: another model, prompt or set of tools begins a new one, and that is said. An
alarm has one of two causes: the Agent Stability Index is below 0.75 in three windows in a row, or the same thing is
different from the baseline in three windows in a row. The second one is there because a change of a single constraint
hardly moves an index of twelve dimensions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Final

from batonpass.drift import counts
from batonpass.drift.change import QUIET, ChangeTopic, DriftChange, find_changes
from batonpass.drift.counts import Counts
from batonpass.drift.stability import ALARM_BELOW, FEWEST, Stability, stability
from batonpass.drift.statistics import jackknife, mutual_information
from batonpass.model.base.ids import AgentId
from batonpass.model.ledger.rollup import RolledDay
from batonpass.records.remarks.alarm import AlarmRecord

IN_A_ROW: Final = 3  # windows until there is an alarm
BASELINE: Final = 2 * FEWEST  # closed handoffs: every window is compared with these, so they have to be more
_GROUPS: Final = 4  # of days, each of which is left out once for the interval
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCounts:
    """The counts of one agent's handoffs of one kind and one configuration on one day."""

    agent: AgentId
    task_kind: str
    config: str
    day: date
    counts: Counts

    @classmethod
    def of(cls, rolled: RolledDay) -> "DayCounts":
        """Return the counts that a store keeps."""
        return cls(
            agent=rolled.agent,
            task_kind=rolled.task_kind,
            config=rolled.config,
            day=date.fromisoformat(rolled.day),
            counts=counts.decode(rolled.body),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySpan:
    """Some days, both ends included."""

    first: date
    last: date

    @property
    def words(self) -> str:
        """Return the days in words."""
        return self.first.isoformat() if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftQuestion:
    """A question: which days, how long a window is, and its baseline."""

    span: DaySpan
    window: timedelta = timedelta(weeks=1)
    baseline: DaySpan | None = None  # None: the first windows, until they have enough closed handoffs
    agent: AgentId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftAlarm:
    """Why an agent is in alarm at a kind of task."""

    cause: str  # `index`, or the topic of what is different
    sentence: str
    plain: str  # the same without the words of any handoff

    @property
    def code(self) -> str:
        """Return the cause as receipts name it."""
        return self.cause.replace(" ", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftWindow:
    """One window: its index, its differences from the baseline, and its alarms."""

    span: DaySpan
    closed: int
    stability: Stability
    interval: tuple[float, float] | None  # with 95 %; None for too few days
    changes: tuple[DriftChange, ...]
    alarms: tuple[DriftAlarm, ...] = ()
    counts: Counts = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDrift:
    """One agent at one kind of task in one configuration."""

    agent: AgentId
    task_kind: str
    config: str  # empty if nobody said it
    config_words: tuple[str, ...]
    baseline: DaySpan
    closed: int  # handoffs in the baseline
    windows: tuple[DriftWindow, ...]
    pending: int  # closed handoffs that make no window yet
    replaces: DriftChange | None = None  # the change of configuration with which it began
    is_over: bool = False  # another configuration began after its last handoff, so it can be in alarm no more
    counts: Counts = field(default_factory=dict, repr=False)  # of the baseline

    @property
    def alarms(self) -> tuple[DriftAlarm, ...]:
        """Return the alarms that there are now."""
        return self.windows[-1].alarms if self.windows and not self.is_over else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """All agents and kinds of task, those in alarm first."""

    question: DriftQuestion
    agents: tuple[AgentDrift, ...]
    scarce: Mapping[str, int]  # agents and kinds with too few closed handoffs for a baseline, and how many there are
    recorded: tuple[AlarmRecord, ...] = ()  # the alarms on record that are not over

    @property
    def alarmed(self) -> tuple[AgentDrift, ...]:
        """Return those in alarm, without those whose alarms a person acknowledged."""
        return tuple(one for one in self.agents if any(self.is_new(one, alarm) for alarm in one.alarms))

    def is_new(self, drift: AgentDrift, alarm: DriftAlarm) -> bool:
        """Return whether nobody has acknowledged an alarm."""
        found = self.find_recorded(drift, alarm)
        return found is None or found.stands

    def find_recorded(self, drift: AgentDrift, alarm: DriftAlarm) -> AlarmRecord | None:
        """Return the alarm on record that is about the same."""
        about = (drift.agent, drift.task_kind, drift.config or None, alarm.code)
        return next((one for one in self.recorded if one.subject == about), None)


def find_drift(days: Iterable[DayCounts], question: DriftQuestion) -> DriftReport:
    """Return the report on the days that are asked about."""
    known = [*days]
    roles = _Roles(known)
    series: dict[tuple[AgentId, str], dict[str, list[DayCounts]]] = defaultdict(lambda: defaultdict(list))
    for day in known:
        if question.agent in {None, day.agent}:
            series[day.agent, day.task_kind][day.config].append(day)
    agents: list[AgentDrift] = []
    scarce: dict[str, int] = {}
    for (agent, kind), configs in series.items():
        before: AgentDrift | None = None
        for config, each in sorted(configs.items(), key=lambda pair: min(day.day for day in pair[1])):
            told = _follow(sorted(each, key=lambda day: day.day), question, roles)
            if told is None:
                name = f"{agent} · {kind}" + (f" · {config}" if config else "")
                scarce[name] = sum(counts.closed(day.counts) for day in each)
                continue
            told = replace(told, replaces=None if before is None else _reconfigured(before, told))
            last = max(day.day for day in each)
            if any(min(day.day for day in later) >= last for other, later in configs.items() if other != config):
                told = replace(told, is_over=True)
            agents.append(told)
            before = told
    agents.sort(key=lambda one: (not one.alarms, _lowest(one), one.agent, one.task_kind, one.baseline.first))
    return DriftReport(question=question, agents=tuple(agents), scarce=scarce)


def _lowest(told: AgentDrift) -> float:
    value = told.windows[-1].stability.value if told.windows else None
    return 1.0 if value is None else value


class _Roles:
    """How far agents and kinds of task belong together, in the whole fleet."""

    def __init__(self, days: Sequence[DayCounts]) -> None:
        self._closed: dict[date, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
        for day in days:
            self._closed[day.day][day.agent, day.task_kind] += counts.closed(day.counts)

    def compare(self, baseline: DaySpan, window: DaySpan) -> float | None:
        """Return how much of that is left; None if there is one agent or one kind only."""
        usual, now = self._shared(baseline), self._shared(window)
        return None if not usual or now is None else min(1.0, now / usual)

    def _shared(self, span: DaySpan) -> float | None:
        joint: dict[tuple[str, str], int] = defaultdict(int)
        for day, closed in self._closed.items():
            if span.first <= day <= span.last:
                for pair, number in closed.items():
                    joint[pair] += number
        return mutual_information(joint) if joint else None


@dataclass(slots=True)
class _Stretch:
    span: DaySpan
    days: list[Counts]

    @property
    def closed(self) -> int:
        return sum(map(counts.closed, self.days))


def _follow(days: Sequence[DayCounts], question: DriftQuestion, roles: _Roles) -> AgentDrift | None:
    """Return the windows of one series against its baseline; None if there is no baseline yet."""
    stretches = [*_stretches(days, question)]
    chosen = question.baseline
    if chosen is None:
        base, stretches = _first_windows(stretches)
    else:
        base = _Stretch(chosen, [day.counts for day in days if chosen.first <= day.day <= chosen.last])
    if base is None or base.closed < FEWEST:
        return None
    baseline = counts.summed(base.days)
    windows: list[DriftWindow] = []
    for stretch in stretches:
        if stretch.closed >= FEWEST:
            window = _judge(baseline, base.span, stretch, roles)
            windows.append(replace(window, alarms=_alarms([*windows, window])))
    return AgentDrift(
        agent=days[0].agent,
        task_kind=days[0].task_kind,
        config=days[0].config,
        config_words=tuple(sorted(baseline.get("config", {}))),
        baseline=base.span,
        closed=base.closed,
        windows=tuple(windows),
        pending=sum(stretch.closed for stretch in stretches if stretch.closed < FEWEST),
        counts=baseline,
    )


def _first_windows(stretches: list[_Stretch]) -> tuple[_Stretch | None, list[_Stretch]]:
    """Return the baseline, made of the first windows, and the windows after it."""
    taken: list[_Stretch] = []
    while stretches and sum(one.closed for one in taken) < BASELINE:
        taken, stretches = [*taken, stretches[0]], stretches[1:]
    if not taken:
        return None, []
    span = DaySpan(first=taken[0].span.first, last=taken[-1].span.last)
    return _Stretch(span, [day for one in taken for day in one.days]), stretches


def _stretches(days: Sequence[DayCounts], question: DriftQuestion) -> Iterator[_Stretch]:
    """Yield the windows in order. One with too few closed handoffs goes on until there are enough."""
    held: _Stretch | None = None
    first = question.span.first
    while first <= question.span.last:
        last = min(first + question.window - _DAY, question.span.last)
        here = [day.counts for day in days if first <= day.day <= last]
        if held is None and here:
            held = _Stretch(DaySpan(first=first, last=last), here)
        elif held is not None:
            held = _Stretch(DaySpan(first=held.span.first, last=last), [*held.days, *here])
        if held is not None and held.closed >= FEWEST:
            yield held
            held = None
        first = last + _DAY
    if held is not None:
        yield held


def _judge(baseline: Counts, of: DaySpan, stretch: _Stretch, roles: _Roles) -> DriftWindow:
    shared = roles.compare(of, stretch.span)
    groups = [counts.summed(stretch.days[start::_GROUPS]) for start in range(min(_GROUPS, len(stretch.days)))]
    window = counts.summed(groups)
    found = stability(baseline, window, shared)
    return DriftWindow(
        span=stretch.span,
        closed=stretch.closed,
        stability=found,
        interval=_interval(baseline, groups, found, shared),
        changes=tuple(find_changes(baseline, window)),
        counts=window,
    )


def _interval(
    baseline: Counts, groups: Sequence[Counts], found: Stability, roles: float | None
) -> tuple[float, float] | None:
    if found.value is None or len(groups) < _GROUPS:
        return None
    without = []
    for left_out in range(len(groups)):
        part = counts.summed(group for number, group in enumerate(groups) if number != left_out)
        if counts.closed(part):
            without.append(stability(baseline, part, roles).value)
    return jackknife(found.value, [value for value in without if value is not None])


def _alarms(windows: Sequence[DriftWindow]) -> tuple[DriftAlarm, ...]:
    """Return the alarms after the last of these windows."""
    last = windows[-IN_A_ROW:]
    if len(last) < IN_A_ROW:
        return ()
    found = []
    values = [window.stability.value for window in last]
    if all(value is not None and value < ALARM_BELOW for value in values):
        shown = ", ".join(f"{value:.2f}" for value in values if value is not None)
        sentence = f"the Agent Stability Index is below {ALARM_BELOW} in {IN_A_ROW} windows in a row: {shown}"
        found.append(DriftAlarm(cause="index", sentence=sentence, plain=sentence))
    for topic in ChangeTopic:
        if topic not in QUIET and all(any(change.topic == topic for change in window.changes) for window in last):
            change = next(change for change in last[-1].changes if change.topic == topic)
            plain = f"{topic}: not as in the baseline in {IN_A_ROW} windows in a row"
            found.append(DriftAlarm(cause=topic.value, sentence=f"{plain}: {change.sentence}", plain=plain))
    return tuple(found)


def _reconfigured(before: AgentDrift, after: AgentDrift) -> DriftChange:
    """Return the change of configuration between two series, in words as far as the agents said them."""
    gone = [word for word in before.config_words if word not in after.config_words]
    come = [word for word in after.config_words if word not in before.config_words]
    words = f"{', '.join(gone) or before.config or 'unknown'} → {', '.join(come) or after.config or 'unknown'}"
    against = stability(before.counts, after.counts).value
    index = "" if against is None else f" (Agent Stability Index {against:.2f} against the earlier baseline)"
    return DriftChange(
        topic=ChangeTopic.CONFIGURATION,
        sentence=f"configuration: {words}; a new baseline begins{index}",
        aspect="config",
        keys=tuple(come),
        before=1.0,
        after=against or 0.0,
        chance=0.0,
        gained=tuple(come),
    )
