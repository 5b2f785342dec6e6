"""Modules that need a framework, which is installed in an environment of its own: nobody imports them in ours."""

from typing import Final

FRAMEWORK_MODULES: Final = ("batonpass.adapters.openai_agents.",)  # not the package itself, which imports it on demand
