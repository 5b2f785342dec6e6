"""`batonpass telemetry`: tell other systems what is recorded."""
