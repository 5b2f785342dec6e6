"""The code that needs pydantic-ai, imported when an agent runs."""
