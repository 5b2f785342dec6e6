"""The suite that every store must pass: the port's promises, as tests.

Subclass it in your test suite and give it a `store` fixture that returns an empty store:

    class TestMyStore(LedgerStoreConformance):
        @pytest.fixture
        def store(self): ...
"""

from batonpass.testing.conformance.append import Appending
from batonpass.testing.conformance.charges import Charging
from batonpass.testing.conformance.decided_calls import Deciding
from batonpass.testing.conformance.derived_rows import Deriving
from batonpass.testing.conformance.enrolment import Enrolling
from batonpass.testing.conformance.kept_results import Keeping
from batonpass.testing.conformance.leases import Leasing
from batonpass.testing.conformance.lists import Lists
from batonpass.testing.conformance.offers import Offering
from batonpass.testing.conformance.queue import Queueing
from batonpass.testing.conformance.remarks import Remarks
from batonpass.testing.conformance.rollups import RollingUp
from batonpass.testing.conformance.touched_paths import Touching
from batonpass.testing.conformance.views import Views


class LedgerStoreConformance(
    Appending,
    Enrolling,
    Deriving,
    Offering,
    Leasing,
    Queueing,
    Views,
    Lists,
    Touching,
    Keeping,
    Charging,
    Deciding,
    Remarks,
    RollingUp,
):
    """The promises of a `LedgerStore`."""
