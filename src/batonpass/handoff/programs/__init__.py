"""Runners: functions, and programs in any language, that work on a run."""
