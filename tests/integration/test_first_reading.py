"""The first document of a kind that a process reads, while another of its threads reads one too."""

from typing import Final

import pytest

from tests.children import run_at_once

# A process of its own, because a kind is read for the first time once; and a fork for each call of Python code on the
# way, because only there can another thread come in.
MEANWHILE: Final = """
import os, threading

def read_meanwhile(number):
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"
        if event == "call" and calls == number:
            sys.setprofile(None)
            other = threading.Thread(target=read)
            other.start()
            other.join()

    sys.setprofile(count)
    read()
    sys.setprofile(None)
    return calls < number

ends = []
while 1 not in ends:
    pid = os.fork()
    if pid == 0:
        os._exit(read_meanwhile(len(ends) + 1))
    ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(json.dumps(sorted(set(ends))))
"""

BRIEF: Final = """
from batonpass.model.baton.baton import Brief
from batonpass.wire.documents import decode_brief, encode_brief
written = encode_brief(Brief(rationale="because"))

def read():
    decode_brief(written)
"""

REPORT: Final = """
from batonpass.model.baton.items import Report
from batonpass.wire.documents import decode_report, encode_report
written = encode_report(Report(result="done"))

def read():
    decode_report(written)
"""

MESSAGE: Final = """
from batonpass.handoff.programs.program_requests import Serving

def read():
    Serving(None, {}).answer({"id": 1, "type": "record", "item": {"type": "Rumour", "value": {}}})
"""


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(BRIEF, id="a brief"),
        pytest.param(REPORT, id="a report"),
        pytest.param(MESSAGE, id="a message of a program"),
    ],
)
def test_two_threads_may_read_the_first_of_a_kind(reading: str) -> None:
    """Wherever one thread is interrupted in its first reading, another reads the same and nothing crashes."""
    assert [[0, 1]] == run_at_once(reading + MEANWHILE)
