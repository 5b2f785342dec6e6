"""The protected paths in many spellings: each is a row of the table, with near misses."""

from typing import Final

from batonpass.testing.doors.acts import Read, Write, WriteAll
from batonpass.testing.doors.situations import Denied, Made, Situation, Try, always, near

_LEAVE: Final = (
    "and no agent may do that; leave it as it is and go on without it; "
    "if the task cannot be done so, say that to the user"
)
_RECORD: Final = f"{{tool}} would touch the ledger or its keys ({{place}}), {_LEAVE}"
_DECIDES: Final = f"{{tool}} would touch the settings that decide about calls ({{place}}), {_LEAVE}"

# `kept` is in the home, `out/link` leads there, `out/hard` is a hard link to `kept`, and `~` is the directory.
SPELLINGS: Final = {
    "from here": ".batonpass/kept",
    "from here, with a dot": "./.batonpass/kept",
    "from the root": "{directory}/.batonpass/kept",
    "by a detour": "out/../.batonpass/kept",
    "by a long detour from the root": "{directory}/out/.././out/../.batonpass/./kept",
    "with more slashes": "{directory}//.batonpass///kept",
    "in other letters": ".BatonPass/kept",
    "with a newline at the end": ".batonpass/kept\n",
    "with a slash at the end": ".batonpass/",
    "the directory itself": ".batonpass",
    "something new in there": ".batonpass/runs/new.key",
    "by a link": "out/link/kept",
    "by a link to the file": "out/alias",
    "by another name of the file": "out/hard",
    "as an address": "file://{directory}/.batonpass/kept",
    "as an address of this machine": "file://localhost{directory}/.batonpass/kept",
    "as an address with escapes": "file://{directory}/%2Ebatonpass/kept",
    "from somebody's home": "~/.batonpass/kept",
    "the ledger itself": ".batonpass/ledger.db",
}

NOT_THOSE: Final = {
    "a file with a longer name": ".batonpass-notes.txt",
    "a file of that name elsewhere": "out/batonpass.txt",
    "a way past it": ".batonpass/../out/c.txt",
}

PROTECTED: Final = (
    *(
        Situation(
            name=f"the record is changed: {name}",
            steps=(always(Write(path), Denied("protected", _RECORD, spelled=False)),),
            needs=("paths", f"spelling: {name}"),
        )
        for name, path in SPELLINGS.items()
    ),
    *(
        Situation(name=f"what is not the record is changed: {name}", steps=(near(Write(path)),), needs=("paths",))
        for name, path in NOT_THOSE.items()
    ),
    Situation(
        name="the record is changed from elsewhere",
        steps=(always(Write("../.batonpass/kept"), Denied("protected", _RECORD, spelled=False)),),
        needs=("paths", "another directory"),
    ),
    Situation(
        name="the record is changed among other files",
        steps=(
            near(WriteAll((("out/c.txt", "new"), ("out/d.txt", "new")))),
            always(WriteAll((("out/c.txt", "newer"), (".batonpass/kept", "new"))), Denied("protected", _RECORD)),
        ),
        needs=("paths", "several files"),
    ),
    Situation(
        name="the record is read",
        steps=(
            near(Read("out/known.txt")),
            Try(Read(".batonpass/kept"), Made(), Denied("protected", _RECORD)),
        ),
        needs=("paths",),
    ),
    Situation(
        name="a key is read",
        steps=(
            near(Read("out/known.txt")),
            always(Read(".batonpass/kept.key"), Denied("protected", _RECORD)),
        ),
        needs=("paths",),
    ),
    Situation(
        name="the rules are changed",
        steps=(
            near(Write("out/batonpass.toml")),
            Try(Write("batonpass.toml"), Made(), Denied("protected", _DECIDES)),
        ),
        needs=("paths",),
    ),
    Situation(
        name="the rules are read",
        steps=(near(Read("batonpass.toml")),),
        needs=("paths",),
    ),
)
