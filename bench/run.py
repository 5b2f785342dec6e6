"""Measure, print and store the table of ratios, or with --quick what each act costs: `python bench/run.py --help`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder on its path; the modules are a package of the folder above.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

    from bench.main import main

    main()
