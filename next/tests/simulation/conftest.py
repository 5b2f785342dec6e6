"""Planted faults take minutes: they are looked for only where they are asked for, with `-m planted`."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the planted faults out, but for those that every run looks for."""
    if "planted" in config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("planted")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
