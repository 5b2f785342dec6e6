"""How much is left to chance: `make test-seeds` plays a hundred generated sessions and workshops, and so on."""

import os
from typing import Final

SEEDS: Final = int(os.environ.get("BATONPASS_SEEDS", "20"))
EVERY_CASE: Final = 100  # from so many on, tables of cases are played whole
