"""Our lines in a git hook: added once, removed without a trace, and never in the way of a commit or a push.

Our lines come first, right below the `#!` of a shell script, because a hook that ends with `exit` or `exec` would never
reach lines at its end. A hook that is not a shell script, or is a link, is not edited: it is set aside and called by
ours.
"""

import re
import shlex
from pathlib import Path
from typing import Final

HOOK: Final = "commit-msg"
POST_COMMIT: Final = "post-commit"
PRE_PUSH: Final = "pre-push"
# The arguments that git passes to each hook. The input of a push belongs to the hook that was there before.
_PASSED: Final = {HOOK: ' "$1"', POST_COMMIT: " </dev/null", PRE_PUSH: ' "$1" </dev/null'}
_WITHOUT: Final = {
    HOOK: "this commit continues without our trailers",
    POST_COMMIT: "this commit has no note",
    PRE_PUSH: "this push continues without notes",
}

_BEGIN: Final = "# >>> batonpass >>> `batonpass git install --undo` removes these lines"
_END: Final = "# <<< batonpass <<<"
_OURS: Final = re.compile(f"{re.escape(_BEGIN)}\n.*?{re.escape(_END)}\n", re.DOTALL)
_SHELL: Final = re.compile(r"#![^\n]*\b(?:sh|bash|dash|ash|ksh|zsh)\s*(?:-[a-z]+\s*)*$")
_SHEBANG: Final = "#!/bin/sh\n"
_X_BITS: Final = 0o111


def install(hooks: Path, arguments: list[str], program: str | None, name: str = HOOK) -> Path:
    """Add our lines to the hook, or replace older ones, and return its path.

    `arguments` are passed to `batonpass`; `program` is its path if it is not on the PATH. Raises `FileExistsError` if
    another hook was set aside before.
    """
    hooks.mkdir(parents=True, exist_ok=True)
    path = hooks / name
    if path.is_symlink() or (path.exists() and not _is_ours_to_edit(path)):
        if _is_there(_aside(path)):
            raise FileExistsError(None, None, str(_aside(path)))
        path.rename(_aside(path))
    if not path.exists():
        chain = _chain(path) if _is_there(_aside(path)) else ""
        text = _SHEBANG + block(arguments, program, name) + chain
    else:
        head, newline, rest = _OURS.sub("", path.read_text(encoding="utf-8")).partition("\n")
        text = f"{head}{newline or chr(10)}{block(arguments, program, name)}{rest}"
    path.write_text(text, encoding="utf-8")
    path.chmod(path.stat().st_mode | _X_BITS)
    return path


def remove(hooks: Path, name: str = HOOK) -> bool:
    """Remove our lines and restore the hook that was set aside; return whether there was anything to remove."""
    path = hooks / name
    if path.is_symlink() or not path.is_file():
        return False
    text = _read(path)
    if text is None or not _OURS.search(text):
        return False
    aside = _aside(path)
    left = _OURS.sub("", text).removesuffix(_chain(path))
    if left.strip() not in {"", _SHEBANG.strip()}:
        path.write_text(left, encoding="utf-8")
    else:
        path.unlink()
        if _is_there(aside):
            aside.rename(path)
    return True


def is_installed(hooks: Path, name: str) -> bool:
    """Return whether our lines are in a hook that git would run."""
    path = hooks / name
    return path.is_file() and bool(path.stat().st_mode & _X_BITS) and _OURS.search(_read(path) or "") is not None


def block(arguments: list[str], program: str | None, name: str = HOOK) -> str:
    """Return our lines. If they fail, the commit or the push still continues."""
    elsewhere = shlex.quote(program) if program is not None else "batonpass"
    words = " ".join(map(shlex.quote, arguments))
    return (
        f"{_BEGIN}\n"
        f'( "$(command -v batonpass || echo {elsewhere})" {words}{_PASSED[name]} ) ||\n'
        f'    echo "batonpass: {_WITHOUT[name]}" >&2\n'
        f"{_END}\n"
    )


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.before-batonpass")


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _chain(path: Path) -> str:
    name = shlex.quote(_aside(path).name)
    return f'before="$(dirname "$0")"/{name}\nif [ -x "$before" ]; then exec "$before" "$@"; fi\n'


def _is_ours_to_edit(path: Path) -> bool:
    """Return whether a hook is an executable shell script; a hook that is switched off must stay so."""
    text = _read(path)
    if text is None or not path.stat().st_mode & _X_BITS:
        return False
    return _OURS.search(text) is not None or _SHELL.match(text.partition("\n")[0]) is not None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return None
