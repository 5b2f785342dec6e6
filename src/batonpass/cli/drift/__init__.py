"""`batonpass drift` and `batonpass recall`: changes over weeks, and the outcomes of earlier handoffs."""
