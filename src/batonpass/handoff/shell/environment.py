"""The environment of a command: a small part of ours, named variables of the rest, and those that are given.

A grant names a program, and means exactly that program. Many variables exchange the code that a program loads, or the
programs that it starts, so an enforced run may not set them. It may name them in `inherit`: the values in our own
environment come from the user who started us.
"""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance

# Any other variable of ours may be a secret. A call that needs one has to name it.
PLAIN_VARIABLES: Final = ("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
PLAIN_PREFIX: Final = "LC_"

_ENV: Final = "env"
_PATH: Final = "PATH"

# What these variables decide. A name that ends in `*` means all that begin so. Variables that only decide where data
# goes (TMPDIR, proxies, certificates) are missing: a grant can have conditions on `env` for them.
_DECISIVE: Final[Mapping[str, str]] = {
    "which code is loaded into any program": """
        LD_* DYLD_* GCONV_PATH LOCPATH GIO_MODULE_DIR GTK_MODULES QT_PLUGIN_PATH
        OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES KRB5_CONFIG
    """,
    "what a shell runs, or how it reads its lines": """
        BASH_ENV ENV BASH_FUNC_* IFS PROMPT_COMMAND PS0 PS4 SHELLOPTS BASHOPTS CDPATH GLOBIGNORE ZDOTDIR SHELL
    """,
    "which modules Python imports": """
        PYTHON* PYTEST_ADDOPTS PYTEST_PLUGINS
    """,
    "which modules an interpreter loads": """
        PERL5LIB PERL5OPT PERL5DB PERLLIB RUBYLIB RUBYOPT GEM_HOME GEM_PATH BUNDLE_*
        NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE LUA_INIT* LUA_PATH* LUA_CPATH* PHPRC PHP_INI_SCAN_DIR
        R_PROFILE* R_LIBS* R_ENVIRON* JULIA_LOAD_PATH JULIA_DEPOT_PATH ERL_FLAGS ERL_AFLAGS ERL_ZFLAGS ERL_LIBS
    """,
    "what a Java machine is started with": """
        JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JAVA_OPTS JAVA_HOME CLASSPATH
        MAVEN_OPTS MAVEN_ARGS GRADLE_OPTS GRADLE_USER_HOME SBT_OPTS
    """,
    "which programs and settings git uses": """
        GIT_*
    """,
    "which program is started to show, edit or ask for something": """
        PAGER MANPAGER SYSTEMD_PAGER LESSOPEN LESSCLOSE BROWSER
        EDITOR VISUAL FCEDIT SUDO_EDITOR SVN_EDITOR HGEDITOR SSH_ASKPASS SUDO_ASKPASS
    """,
    "which program is started to connect or to unpack": """
        SVN_SSH RSYNC_RSH CVS_RSH TAR_OPTIONS
    """,
    "which settings a program reads, and with them what it runs": """
        HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME XDG_DATA_DIRS GNUPGHOME DOCKER_CONFIG DOCKER_HOST KUBECONFIG
        AWS_CONFIG_FILE HGRCPATH CARGO_HOME RUSTUP_HOME
    """,
    "what a package manager installs, and from where": """
        npm_config_* NPM_CONFIG_* YARN_* PNPM_* COREPACK_* PIP_* PIPX_* UV_* POETRY_* CONDA_*
    """,
    "which compiler is run, and with what": """
        CC CXX CPP LD AR AS CFLAGS CXXFLAGS CPPFLAGS LDFLAGS MAKEFLAGS MAKEFILES MFLAGS
        LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH COMPILER_PATH GCC_EXEC_PREFIX PKG_CONFIG* CMAKE_*
        RUSTC* RUSTFLAGS RUSTDOCFLAGS RUSTUP_TOOLCHAIN CARGO_BUILD_* CARGO_TARGET_*
        GOFLAGS GOROOT GOPATH GOPROXY GOTOOLCHAIN GOENV CGO_*
    """,
}
# These match a prefix above, but exchange no code, and are set all the time.
_HARMLESS: Final = frozenset(
    {
        "PYTHONUNBUFFERED",
        "PYTHONHASHSEED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUTF8",
        "PYTHONIOENCODING",
        "PYTHONFAULTHANDLER",
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_DATE",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_DATE",
        "GIT_TERMINAL_PROMPT",
        "GIT_OPTIONAL_LOCKS",
    }
)
_NAMES: Final = {name: why for why, names in _DECISIVE.items() for name in names.split() if not name.endswith("*")}
_PREFIXES: Final = {
    name.removesuffix("*"): why for why, names in _DECISIVE.items() for name in names.split() if name.endswith("*")
}


def read_variables(given: Mapping[str, str]) -> dict[str, str]:
    """Return variables as plain texts, read once. Raises `InvalidValueError` for anything else."""
    return {
        str.__str__(require_instance(_ENV, name, str)): str.__str__(require_instance(_ENV, value, str))
        for name, value in dict(given).items()
    }


def find_unsound(given: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Return the field and the reason why an enforced run may not set these variables; None if it may."""
    for name, value in given:
        if name == _PATH:
            foreign = [place or "(here)" for place in value.split(os.pathsep) if place not in _places()]
            if foreign:
                return _ENV, f"PATH has {foreign[0]}, which ours has not: it decides what programs start; leave it out"
        elif (why := _decides(name)) is not None:
            return _ENV, f"{name} decides {why}; leave it out, or name it in inherit= to pass ours on"
    return None


def _decides(name: str) -> str | None:
    if name in _HARMLESS:
        return None
    begins = next((why for prefix, why in _PREFIXES.items() if name.startswith(prefix)), None)
    return _NAMES.get(name, begins)


def environment_of(given: Mapping[str, str], inherited: Sequence[str]) -> dict[str, str]:
    """Return the environment of a command: the plain part of ours, the inherited names, and the given variables.

    Relative and empty places on the PATH are left out, because they depend on the current directory. Raises
    `InvalidValueError` for an inherited name that we do not have.
    """
    ours = os.environ
    plain = {name: ours[name] for name in ours if name in PLAIN_VARIABLES or name.startswith(PLAIN_PREFIX)}
    for name in inherited:
        if name not in ours:
            raise InvalidValueError("inherit", f"{name} is not in the environment")
        plain[name] = ours[name]
    found = {**plain, **given}
    if _PATH in found:
        found[_PATH] = _absolute(found[_PATH])
    return found


def find_program(name: str) -> str | None:
    """Return where a program is, by its name alone: on our own PATH, not on the PATH of the command."""
    # A relative place would be searched from the directory of the command, and could give another program.
    return shutil.which(name, path=_absolute(os.environ.get(_PATH, os.defpath)))


def _absolute(path: str) -> str:
    return os.pathsep.join(place for place in path.split(os.pathsep) if place.startswith("/"))


def _places() -> frozenset[str]:
    return frozenset(_absolute(os.environ.get(_PATH, os.defpath)).split(os.pathsep)) - {""}
