"""How many generated repositories are played: `make test-seeds` plays a hundred."""

import os
from typing import Final

SEEDS: Final = int(os.environ.get("BATONPASS_SEEDS", "40"))
