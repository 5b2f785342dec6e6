"""Measure, print and store the table of ratios: `python bench/run.py [--quick] [--only NAME] [--scratch DIR]`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this folder on its path; the modules are a package of the folder above.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

    from bench.main import main

    main()
