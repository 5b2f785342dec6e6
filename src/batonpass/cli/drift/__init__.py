"""`batonpass drift` and `batonpass recall`: what changes over weeks, and what came of earlier handoffs."""
