"""Guards: each decides one question about values, says why, and touches nothing."""

from batonpass.guard.granted import ToolPolicy
from batonpass.guard.verifying import Permitted, verify_call

__all__ = ["Permitted", "ToolPolicy", "verify_call"]
