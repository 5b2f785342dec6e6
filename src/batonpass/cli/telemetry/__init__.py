"""`batonpass telemetry`: send spans and metrics to other systems."""
