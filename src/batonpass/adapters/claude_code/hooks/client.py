"""The hook command of settings that an earlier version wrote: runs `adapters/coders/client.py`."""

import sys

_PATH = __file__.removesuffix("claude_code/hooks/client.py") + "coders/client.py"

if __name__ == "__main__":
    sys.argv[0] = _PATH
    with open(_PATH, encoding="utf-8") as file:
        exec(compile(file.read(), _PATH, "exec"), {"__name__": "__main__", "__file__": _PATH})  # noqa: S102 - ours
