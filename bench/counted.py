"""Run a Python program under a tally: `python bench/counted.py REPORT sql|nosql PROGRAM [ARGUMENT…]`.

REPORT gets the counts as JSON when the program ends. PROGRAM is what `python -c` would be given.
"""

import sys

if __name__ == "__main__":
    # What the program imports is counted, so little is imported before it.
    report, sql, program, *arguments = sys.argv[1:]
    sys.path[0] = str(__file__).rsplit("/", 2)[0]
    sys.argv = ["-c", *arguments]

    from bench.tally import Tally

    compiled = compile(program, "<counted>", "exec")
    try:
        with Tally(sql=sql == "sql") as tally:
            exec(compiled, {"__name__": "__main__"})  # noqa: S102 - the program is what we were started for
    finally:
        import dataclasses
        import json
        from pathlib import Path

        Path(report).write_text(json.dumps(dataclasses.asdict(tally.read())), encoding="utf-8")
