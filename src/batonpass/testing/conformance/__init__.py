"""The suite that every store must pass: the port's promises, as tests.

Subclass it in your test suite and give it a `store` fixture that returns an empty store:

    class TestMyStore(LedgerStoreConformance):
        @pytest.fixture
        def store(self): ...
"""

from batonpass.testing.conformance.appending import Appending
from batonpass.testing.conformance.charging import Charging
from batonpass.testing.conformance.deciding import Deciding
from batonpass.testing.conformance.deriving import Deriving
from batonpass.testing.conformance.enrolling import Enrolling
from batonpass.testing.conformance.keeping import Keeping
from batonpass.testing.conformance.leasing import Leasing
from batonpass.testing.conformance.lists import Lists
from batonpass.testing.conformance.offering import Offering
from batonpass.testing.conformance.queueing import Queueing
from batonpass.testing.conformance.reading import Reading
from batonpass.testing.conformance.remarks import Remarks
from batonpass.testing.conformance.touching import Touching


class LedgerStoreConformance(
    Appending,
    Enrolling,
    Deriving,
    Offering,
    Leasing,
    Queueing,
    Reading,
    Lists,
    Touching,
    Keeping,
    Charging,
    Deciding,
    Remarks,
):
    """What a `LedgerStore` promises."""
