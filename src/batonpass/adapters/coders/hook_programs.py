"""The programs that agents without hook commands take instead: a plugin for OpenCode, scripts for Cline."""

import json
from importlib.resources import files
from typing import Final

_PLUGIN: Final = "opencode_plugin.js"
_SCRIPT: Final = '''#!/usr/bin/env python3
"""Passes one event of Cline to Batonpass; written by `batonpass init cline`, and removed by its --undo."""

import os
import shlex

COMMAND = {command}

words = shlex.split(COMMAND)
os.execvp(words[0], words)
'''


def script_text(command: str) -> str:
    """Return the script that runs the hook command for one event."""
    return _SCRIPT.format(command=json.dumps(command))


def plugin_text(command: str, *, enforce: bool) -> str:
    """Return the plugin that passes the events of OpenCode to the hook command."""
    text = files(__package__).joinpath(_PLUGIN).read_text(encoding="utf-8")
    return text.replace('"@COMMAND@"', json.dumps(command)).replace('"@ENFORCE@"', json.dumps(enforce))
