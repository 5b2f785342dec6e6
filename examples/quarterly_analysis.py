"""The quarterly analysis: one agent compiles, one finds anomalies, one drafts, and the drafter dies half-way.

    python examples/quarterly_analysis.py DIRECTORY

It runs in seconds, offline and without a key: the agents are plain functions, everything else is real. The drafter
works in a process of its own, which is killed with SIGKILL in its second call. Then it is tried again: the compiler and
the analyst are not asked again, the drafter's finished call is not made again, and the summary is the same.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from batonpass import Brief, Constraint, Decision, Exclusion, Relay, Worker, tool
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import HandoffId
from batonpass.model.base.lifecycle import Carrier

LEASE = timedelta(seconds=1)
SALES = {"north": 118, "south": 97, "east": 34, "west": 105, "online": 412}
USUAL = {"north": 112, "south": 101, "east": 96, "west": 99, "online": 130}

Tell = Callable[[str], None]
place = Path()  # where the agents work; `opened` sets it


def happened(what: str) -> int:
    """Note in the world outside the ledger that something was really done; return how often by now."""
    with (place / "world.txt").open("a+", encoding="utf-8") as world:
        world.write(f"{what}\n")
        world.seek(0)
        return world.read().splitlines().count(what)


@tool(reads=True)
def pull_sales(quarter: str) -> dict[str, int]:
    """Pull the figures: the slow and costly part."""
    happened(f"pulled the sales of {quarter}")
    return SALES


@tool(reads=True)
def compare(sales: dict[str, int], threshold: int) -> dict[str, int]:
    """Return by how many per cent each region is off, where that is more than the threshold."""
    happened("compared the regions")
    off = {region: round(100 * (sales[region] - usual) / usual) for region, usual in USUAL.items()}
    return {region: percent for region, percent in off.items() if abs(percent) > threshold}


@tool
def order_chart(regions: list[str]) -> str:
    """Order a chart from a service that charges for each one."""
    number = happened("ordered a chart")
    return f"chart-{number}-of-{len(regions)}-regions.png"


@tool(target="name", idempotent=True)
def publish(name: str, text: str) -> str:
    """Write a file. Writing the same file twice is writing it once, so this may be repeated when in doubt."""
    if os.environ.get("DIE_IN_PUBLISH"):
        (place / "in_publish").touch()
        time.sleep(60)  # here the kill comes
    (place / name).write_text(text, encoding="utf-8")
    return name


def compile_data(run: LiveRun) -> None:
    """Work as the compiler."""
    sales = run.call(pull_sales, "2026-Q3")
    run.attach("sales.json", json.dumps(sales), media_type="application/json")
    run.report("five regions", open_questions=["the east office moved in August: are its figures complete?"])


def find_anomalies(run: LiveRun) -> dict[str, int]:
    """Work as the analyst: with the threshold that was agreed on, not with one of its own."""
    agreed = next(bound for bound in run.baton.constraints if bound.key == "threshold")
    return run.call(compare, json.loads(run.read("sales.json")), int(agreed.value or 0))


def draft(run: LiveRun) -> None:
    """Work as the drafter: everything it needs has travelled with the task."""
    baton = run.baton
    found = json.loads(next(report.value for report in baton.reports if report.value))
    chart = run.call(order_chart, sorted(found))
    lines = [f"# {baton.intent[0].text}", ""]
    lines += [f"- {region}: {percent:+} %" for region, percent in sorted(found.items())]
    lines += ["", f"![deviations]({chart})", "", "Open:"]
    lines += [f"- {question.text}" for question in baton.open_questions]
    run.call(publish, "summary.md", "\n".join(lines))
    run.report("drafted", none=["question"])


def opened(directory: Path) -> Relay:
    """Open the ledger in a directory, with the agents that work there."""
    global place  # noqa: PLW0603 - one program, one place
    place = directory
    (directory / ".batonpass").mkdir(mode=0o700, parents=True, exist_ok=True)
    relay = Relay.open(f"sqlite:///{directory}/.batonpass/ledger.db")
    relay.register("compiler", compile_data)
    relay.register("analyst", find_anomalies)
    relay.register("drafter", draft)
    return relay


def lead(relay: Relay) -> tuple[LiveRun, HandoffId]:
    """Lead the analysis: two handoffs are done here, the third waits for a worker."""
    agreed = Constraint(
        "agreed two weeks ago",
        key="threshold",
        operator="=",
        value="20",
        unit="percent",
        binds_to="call:compare.threshold",
    )
    run = relay.start(
        "What stood out in the third quarter?",
        by="user:ana",
        series="quarterly",
        items=[agreed, Exclusion("returns: they are booked a month late")],
    )
    run.record(Decision("compare with last year's quarter", why="the business is seasonal"))
    run.hand_off(
        "compiler", "Compile the sales of the third quarter", brief=Brief(rationale="all else builds on them")
    ).wait()
    run.hand_off(
        "analyst", "Find the regions that are off", brief=Brief(inputs=["sales.json"]), criteria=["all are judged"]
    ).wait()
    drafting = run.hand_off("drafter", "Draft the summary for Ana", carrier=Carrier.WORKER, criteria=["one page"])
    return run, drafting.id


def work(directory: Path) -> None:
    """Be a worker: take what waits for the drafter, once somebody else's lease on it has run out."""
    with opened(directory) as relay:
        worker = Worker(relay, agents=["drafter"], lease_for=LEASE)
        until = time.monotonic() + 30
        while not worker.work_one() and time.monotonic() < until:
            relay.sweep()
            time.sleep(0.05)


def worker_process(directory: Path, *, dies: bool = False) -> "subprocess.Popen[bytes]":
    """Start a worker as a process of its own."""
    environment = os.environ | ({"DIE_IN_PUBLISH": "yes"} if dies else {})
    return subprocess.Popen([sys.executable, __file__, "--work", str(directory)], env=environment)  # noqa: S603


def kill_in_second_call(directory: Path) -> int:
    """Let a worker draft, and kill it in the middle of its second call; return its process id."""
    process = worker_process(directory, dies=True)
    until = time.monotonic() + 30
    while not (directory / "in_publish").exists() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return process.pid


def main(directory: Path, tell: Tell = print) -> None:
    """Play it all in a directory."""
    relay = opened(directory)
    run, drafting = lead(relay)
    tell("compiler and analyst are done; the drafter works in a process of its own")
    pid = kill_in_second_call(directory)
    tell(f"process {pid} was killed with SIGKILL while it published the summary")
    worker_process(directory).wait()
    handoff = relay.handoff(drafting)
    result = handoff.wait(timedelta(seconds=30))
    tell(f"another worker took over when the lease had run out: attempt {result.attempt}, {result.state}")
    handoff.verify(by="user:ana", check=(directory / "summary.md").is_file)
    run.report("the summary is in summary.md")
    run.close()
    for line in (directory / "world.txt").read_text(encoding="utf-8").splitlines():
        tell(f"done exactly once: {line}")
    relay.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]).absolute())
