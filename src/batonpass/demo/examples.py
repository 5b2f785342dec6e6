"""The examples that demonstrations play: programs to read, which lie with the examples."""

import importlib.util
from pathlib import Path
from types import ModuleType


def load_example(name: str) -> ModuleType:
    """Return an example as a module: from beside this file in an installed package, else from the source tree."""
    beside = Path(__file__).with_name(name)
    path = beside if beside.exists() else Path(__file__).parents[3] / "examples" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
