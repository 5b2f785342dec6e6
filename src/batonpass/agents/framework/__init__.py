"""What needs the extra: pydantic-ai, imported when an agent runs."""
