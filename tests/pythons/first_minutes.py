"""What somebody does in their first minutes, with nothing but the installed package: run by `try_all.py`."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from batonpass import Decision, Relay, blame, current_run, start, tool


@tool("write_file", target="path")
def write_file(path: str, text: str) -> None:
    """Write a file."""
    Path(path).write_text(text, encoding="utf-8")


with start("Fix invoice rounding", by="user:ana") as lead:
    lead.record(Decision("round half-even", why="tax office"))
    with lead.hand_off("editor", "Make total() round half-even", may=["write:**"], deadline="10m") as editor:
        with ThreadPoolExecutor(1) as pool:  # threads work for the run that is current where they get their work
            pool.submit(lambda: current_run().call(write_file, "invoice.py", "def total(): ...\n")).result()
        editor.report("done", open_questions=["negative totals untested"])
found = str(blame("invoice.py", line=1))
if "editor" not in found or ("user:ana" not in found and "ana" not in found):
    raise SystemExit(f"blame says {found!r}")
with Relay.open() as relay:
    receipts = relay.verify().receipts
commands = (["run", "list"], ["handoff", "show", "last"], ["why", "last"], ["ledger", "verify"])
for command in commands:
    subprocess.run([str(Path(sys.executable).with_name("batonpass")), *command], check=True, capture_output=True)
sys.stdout.write(
    f"{sys.version_info.major}.{sys.version_info.minor}: {receipts} receipts, and {len(commands)} commands\n"
)
