"""What commands write by name: a table of what agents type, near misses, and what becomes of files."""

from pathlib import Path

import pytest

from batonpass.attribution.changes.change import Certainty, digest_of
from batonpass.attribution.worktree.tree_difference import Difference
from batonpass.attribution.worktree.write_intent import Intent, told_apart
from batonpass.handoff.shell.command_intent import shell_intent

PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a work tree with files in some directories."""
    root = tmp_path / "shop"
    for path in ("src/app", "docs", "lib"):
        (root / path).mkdir(parents=True)
    (root / "fix.patch").write_text(PATCH, encoding="utf-8")
    (root / "b.py").write_text("b\n", encoding="utf-8")
    (root / "link.py").symlink_to("a.py")
    return root


WRITES = [
    ("echo x > a.py", "a.py"),
    ("echo x >a.py", "a.py"),
    ("make >> a.py", "a.py"),
    ("make &> a.py", "a.py"),
    ("make &>> a.py", "a.py"),
    ("make 2> a.py", "a.py"),
    ("make >| a.py", "a.py"),
    ("echo x > 'a file.py'", "a file.py"),
    ('echo x > "a file.py"', "a file.py"),
    ("echo x > a\\ file.py", "a file.py"),
    ("cat > a.py <<'EOF'\nx\nEOF", "a.py"),
    ("cat <<EOF >> a.py\nx $Y\nEOF", "a.py"),
    ("{ echo x; echo y; } > a.py", "a.py"),
    ("(echo x; echo y) > a.py", "a.py"),
    ("for i in 1 2; do echo $i; done > a.py", "a.py"),
    ("sed -i s/a/b/ a.py", "a.py"),
    ("sed -i '' 's/a/b/' a.py", "a.py"),
    ("sed -i.bak -e s/a/b/ a.py", "a.py"),
    ("sed -i.bak -e s/a/b/ a.py", "a.py.bak"),
    ("sed -Ei 's/(a)/b/' b.py a.py", "a.py"),
    ("sed -n -i -e 1p -e 2p a.py", "a.py"),
    ("sed --in-place=.o 's/a b/c/' a.py", "a.py"),
    ("sed -i s/a/b/ src/*.py", "src/a.py"),
    ("sed -i s/a/b/ src/**/*.py", "src/app/deep/a.py"),
    ("sed -i s/a/b/ {a,b}.py", "a.py"),
    ("sed -i s/a/b/ './app/[id].ts'", "app/[id].ts"),
    ("perl -pi -e 's/a/b/' a.py", "a.py"),
    ("perl -i -pe 's/a/b/' b.py a.py", "a.py"),
    ("perl -0pi.bak -e 's/a/b/' a.py", "a.py"),
    ("gawk -i inplace '{print $1}' a.py", "a.py"),
    ("yq -i '.a = 1' a.yaml", "a.yaml"),
    ("make | tee a.py", "a.py"),
    ("make | tee -a b.py a.py >/dev/null", "a.py"),
    ("make | sponge a.py", "a.py"),
    ("mv b.py a.py", "a.py"),
    ("mv -f b.py src/", "src/b.py"),
    ("mv b.py src", "src/b.py"),
    ("mv -t src b.py", "src/b.py"),
    ("mv lib other", "other/x.py"),
    ("mkdir new && mv b.py new", "new/b.py"),
    ("cp b.py a.py", "a.py"),
    ("cp -r lib docs", "docs/lib/x.py"),
    ("install -m 644 b.py a.py", "a.py"),
    ("rsync -a lib/ docs/", "docs/x.py"),
    ("ln -s b.py a.py", "a.py"),
    ("ln -sf ../b.py src", "src/b.py"),
    ("touch -d yesterday a.py", "a.py"),
    ("truncate -s 0 a.py", "a.py"),
    ("dd if=/dev/zero of=a.py bs=1 count=1", "a.py"),
    ("rm -f a.py", "a.py"),
    ("rm -rf src", "src/app/a.py"),
    ("git mv b.py a.py", "a.py"),
    ("git rm -q a.py", "a.py"),
    ("git -C src mv b.py a.py", "src/a.py"),
    ("sort -o a.py b.py", "a.py"),
    ("sort -oa.py b.py", "a.py"),
    ("curl -o a.py https://x", "a.py"),
    ("curl --output=a.py https://x", "a.py"),
    ("curl -sSLO https://x/y/a.py?z=1", "a.py"),
    ("wget -O a.py https://x", "a.py"),
    ("git diff --output=a.py", "a.py"),
    ("patch a.py fix.patch", "a.py"),
    ("patch -p1 < fix.patch", "a.py"),
    ("patch -p1 -i fix.patch", "a.py"),
    ("git apply fix.patch", "a.py"),
    ("git apply --3way ./fix.patch", "a.py"),
    (f"git apply <<'EOF'\n{PATCH}EOF", "a.py"),
    (f"cat > /tmp/x.patch <<'EOF'\n{PATCH}EOF\ngit apply /tmp/x.patch", "a.py"),
    ("ruff format src", "src/app/a.py"),
    ("ruff format a.py", "a.py"),
    ("ruff check --fix .", "src/a.py"),
    ("black -q a.py", "a.py"),
    ("isort a.py", "a.py"),
    ("prettier --write a.ts", "a.ts"),
    ("npx prettier -w 'src/**/*.ts'", "src/app/a.ts"),
    ("gofmt -w a.go", "a.go"),
    ("rustfmt src/a.rs", "src/a.rs"),
    ("clang-format -i a.c", "a.c"),
    ("npx eslint --fix src", "src/a.ts"),
    ("uv run ruff format .", "src/a.py"),
    ("python -m black a.py", "a.py"),
    ("python3.12 -m isort a.py", "a.py"),
    ("poetry run black a.py", "a.py"),
    ("sudo -u ana sed -i s/a/b/ a.py", "a.py"),
    ("env LC_ALL=C sed -i s/a/b/ a.py", "a.py"),
    ("timeout 5 sed -i s/a/b/ a.py", "a.py"),
    ("LC_ALL=C sed -i s/a/b/ a.py", "a.py"),
    ("/usr/bin/sed -i s/a/b/ a.py", "a.py"),
    ("cd src && sed -i s/a/b/ a.py", "src/a.py"),
    ("cd src; cd ..; sed -i s/a/b/ a.py", "a.py"),
    ("cd src/app && sed -i s/a/b/ ../a.py", "src/a.py"),
    ("(cd src && make) && sed -i s/a/b/ a.py", "a.py"),
    ("(cd src && sed -i s/a/b/ a.py)", "src/a.py"),
    ("bash -c 'sed -i s/a/b/ a.py'", "a.py"),
    ("bash -lc 'cd src && echo x > a.py'", "src/a.py"),
    ("sh <<'EOF'\necho x > a.py\nEOF", "a.py"),
    ("eval 'echo x > a.py'", "a.py"),
    ("f=a.py; sed -i s/a/b/ $f", "a.py"),
    ('f=a; sed -i s/a/b/ "${f}.py"', "a.py"),
    ("sed -i s/a/b/ $PWD/a.py", "a.py"),
    ("for f in b.py a.py; do sed -i s/a/b/ $f; done", "a.py"),
    ('for f in src/*.py; do sed -i s/a/b/ "$f"; done', "src/a.py"),
    ("if true; then sed -i s/a/b/ a.py; fi", "a.py"),
    ("pytest && sed -i s/a/b/ a.py", "a.py"),
    ("sed -i s/a/b/ a.py & pytest", "a.py"),
    ("echo x > link.py", "a.py"),
    ("echo $(sed -i s/a/b/ a.py)", "a.py"),
]


@pytest.mark.parametrize(("command", "path"), WRITES, ids=[f"{command!r}: {path}" for command, path in WRITES])
def test_what_a_command_writes_by_name_is_found(root: Path, command: str, path: str) -> None:
    """However it is quoted, wrapped, and wherever it runs."""
    assert shell_intent(command, root, root).names(path)


NAMES_ONLY = [
    ("pytest a.py", "a.py"),
    ("python gen.py a.py", "a.py"),
    ("python -c \"open('a.py', 'w')\"", "a.py"),
    ("python - <<'EOF'\nopen('a.py', 'w').write('x')\nEOF", "a.py"),
    ("cat a.py", "a.py"),
    ("sed s/a/b/ a.py", "a.py"),
    ("sed -n -e 1p a.py > b.py", "a.py"),
    ("perl -ne print a.py", "a.py"),
    ("perl -MFile::Spec -ne print a.py", "a.py"),
    ("sort a.py", "a.py"),
    ("grep -i x a.py", "a.py"),
    ("cp a.py b.py", "a.py"),
    ("diff a.py b.py", "a.py"),
    ("black --check a.py", "a.py"),
    ("black --diff a.py", "a.py"),
    ("ruff check a.py", "a.py"),
    ("ruff format --check a.py", "a.py"),
    ("ruff format", "a.py"),
    ("ruff format src", "a.py"),
    ("ruff format src", "srcs/a.py"),
    ("ruff format .", "notes.md"),
    ("prettier a.ts", "a.ts"),
    ("gofmt -l a.go", "a.go"),
    ("eslint src", "src/a.ts"),
    ("cargo fmt", "src/a.rs"),
    ("make format", "a.py"),
    ("git add a.py", "a.py"),
    ("git rm --cached a.py", "a.py"),
    ("git checkout -- a.py", "a.py"),
    ("git show HEAD:a.py > a.py", "a.py"),
    ("git diff > b.py", "a.py"),
    ("echo 'sed -i s/a/b/ a.py'", "a.py"),
    ("echo 'echo x > a.py'", "a.py"),
    ("# sed -i s/a/b/ a.py", "a.py"),
    ("cat <<'EOF' > b.py\nsed -i s/a/b/ a.py\nEOF", "a.py"),
    ("sed -i s/a/b/ $F", "a.py"),
    ("echo x > $F", "a.py"),
    ("echo x > $(pick a.py)", "a.py"),
    ("F=$(pick); sed -i s/a/b/ $F", "a.py"),
    ("while read f; do sed -i s/a/b/ $f; done < names", "a.py"),
    ("git ls-files | xargs sed -i s/a/b/", "a.py"),
    ("find . -name '*.py' -exec sed -i s/a/b/ {} +", "a.py"),
    ("cd $DIR && sed -i s/a/b/ a.py", "a.py"),
    ("cd src && sed -i s/a/b/ a.py", "a.py"),
    ("cd - && sed -i s/a/b/ a.py", "a.py"),
    ("cd src && cd .. && sed -i s/a/b/ a.py", "src/a.py"),
    ("sed -i s/a/b/ ../a.py", "a.py"),
    ("sed -i s/a/b/ *.py", "src/a.py"),
    ("sed -i s/a/b/ *.py", ".hidden.py"),
    ("rm src", "src/a.py"),
    ("rm -rf src", "srcs/a.py"),
    ("tar xf a.tar", "a.py"),
    ("unzip a.zip", "a.py"),
    ("git apply other.patch", "a.py"),
    ("curl https://x | git apply", "a.py"),
    ("patch -p0 < fix.patch", "a.py"),
    ("tee < a.py", "a.py"),
    ("echo x >&2 a.py", "a.py"),
    ("docker run x sed -i s/a/b/ a.py", "a.py"),
    ("ssh host sed -i s/a/b/ a.py", "a.py"),
    ("rsync -a lib/ host:docs/", "docs/x.py"),
]


@pytest.mark.parametrize(("command", "path"), NAMES_ONLY, ids=[f"{command!r}: {path}" for command, path in NAMES_ONLY])
def test_what_a_command_does_not_write_by_name_is_not(root: Path, command: str, path: str) -> None:
    """It names it otherwise, names another, or only the shell knows what it names."""
    assert not shell_intent(command, root, root).names(path)


@pytest.mark.parametrize(
    ("command", "brings"),
    [
        ("git merge feature", True),
        ("git pull --rebase", True),
        ("git -C . pull", True),
        ("cd src && git rebase main", True),
        ("git cherry-pick abc", True),
        ("git am x.patch", True),
        ("git stash", True),
        ("git stash pop", True),
        ("git checkout main", True),
        ("git checkout -- a.py", True),
        ("git checkout -b x origin/x", True),
        ("git switch main", True),
        ("git restore a.py", True),
        ("git reset --hard HEAD~1", True),
        ("git show HEAD:a.py > a.py", True),
        ("bash -c 'git merge x'", True),
        ("gh pr checkout 3", True),
        ("git checkout -b x", False),
        ("git switch -c x", False),
        ("git stash list", False),
        ("git reset HEAD a.py", False),
        ("git revert abc", False),
        ("git apply fix.patch", False),
        ("git commit -am 'merge'", False),
        ("git show HEAD:a.py", False),
        ("git push", False),
        ("echo git merge", False),
    ],
)
def test_what_git_brings_is_known_by_its_command(root: Path, command: str, brings: bool) -> None:  # noqa: FBT001 - a table
    """A revert writes anew, and so does a patch; a branch that begins here brings nothing."""
    assert brings == shell_intent(command, root, root).brings


def a_difference(before: str | None, after: str | None, path: str = "a.py") -> Difference:
    sides = [None if side is None else side.encode() for side in (before, after)]
    digests = [None if side is None else digest_of(side) for side in sides]
    return Difference(path=path, before=sides[0], after=sides[1], before_digest=digests[0], after_digest=digests[1])


def judged(intent: Intent, difference: Difference, files: dict[str, str] | None = None) -> Certainty:
    known = {path: [text.encode()] for path, text in (files or {}).items()}
    (found,) = told_apart([difference], intent, {}, contents=known.get)
    return found.certainty


@pytest.mark.parametrize(
    ("command", "before", "after", "expected"),
    [
        ("echo x > a.py", "o\n", "x\n", Certainty.CERTAIN),
        ("echo x > a.py", "o\n", "y\n", Certainty.CANDIDATE),
        ("echo -n x > a.py", None, "x", Certainty.CERTAIN),
        ("echo -n x > a.py", None, "x\n", Certainty.CANDIDATE),
        ("echo -e 'x\\ty' > a.py", None, "anything\n", Certainty.CERTAIN),
        ('echo "$X" > a.py', None, "anything\n", Certainty.CERTAIN),
        ("echo x >> a.py", "o\n", "o\nx\n", Certainty.CERTAIN),
        ("echo x >> a.py", "o\n", "o\nx\nby hand\n", Certainty.CANDIDATE),
        ("echo x 2> a.py", "o\n", "oops\n", Certainty.CERTAIN),
        ("printf 'x\\ny\\n' > a.py", None, "x\ny\n", Certainty.CERTAIN),
        ("printf 'x\\ny\\n' > a.py", None, "x\ny\nz\n", Certainty.CANDIDATE),
        ("printf '%s\\n' x > a.py", None, "x\n", Certainty.CERTAIN),
        ("cat > a.py <<'EOF'\nx\ny\nEOF", None, "x\ny\n", Certainty.CERTAIN),
        ("cat > a.py <<'EOF'\nx\ny\nEOF", None, "x\nz\n", Certainty.CANDIDATE),
        ("cat > a.py <<EOF\n$X\nEOF", None, "z\n", Certainty.CERTAIN),
        ("tee a.py <<'EOF'\nx\nEOF", None, "z\n", Certainty.CANDIDATE),
        ("false && echo x > a.py", "o\n", "by hand\n", Certainty.CANDIDATE),
        ("echo x > a.py && false && echo y > a.py", "o\n", "x\n", Certainty.CERTAIN),
        ("if c; then echo x > a.py; else echo y > a.py; fi", "o\n", "y\n", Certainty.CERTAIN),
        ("echo x > a.py; sed -i s/x/y/ a.py", "o\n", "y\n", Certainty.CERTAIN),
        ("rm a.py", "o\n", None, Certainty.CERTAIN),
        ("rm a.py", "o\n", "by hand\n", Certainty.CANDIDATE),
        ("touch a.py", None, "", Certainty.CERTAIN),
        ("touch a.py", "o\n", "by hand\n", Certainty.CANDIDATE),
        ("cp b.py a.py", "o\n", "b\n", Certainty.CERTAIN),
        ("cp b.py a.py", "o\n", "by hand\n", Certainty.CANDIDATE),
        ("mv /tmp/x a.py", "o\n", "anything\n", Certainty.CERTAIN),
        ("black a.py", "x = 'a'\n", 'x = "a"\n', Certainty.CERTAIN),
        ("black a.py", "x = 'a'\n", 'x = "a"\ny = 1\n', Certainty.CANDIDATE),
        ("ruff check --fix .", "import os\nx = 1\n", "x = 1\n", Certainty.CERTAIN),
        ("ruff check --fix .", "x = 1\n", "x = 1\nnew = 2\n", Certainty.CANDIDATE),
        ("ruff check --fix a.py", "x = 1\n", "x = 1\nnew = 2\n", Certainty.CERTAIN),
        ("sed -i s/o/x/ a.py", "o\n", "x\n", Certainty.CERTAIN),
        ("pytest a.py", "o\n", "x\n", Certainty.CANDIDATE),
        ("git merge x && sed -i s/o/x/ a.py", "o\n", "x\n", Certainty.CANDIDATE),
        ("git merge x && echo x > a.py", "o\n", "x\n", Certainty.CERTAIN),
    ],
)
def test_a_change_is_certain_if_it_fits_the_command(
    root: Path, command: str, before: str | None, after: str | None, expected: Certainty
) -> None:
    """Where the bytes that a command leaves can be told, any others are somebody else's."""
    intent = shell_intent(command, root, root)

    assert expected == judged(intent, a_difference(before, after), {"b.py": "b\n"})


def test_many_lines_that_are_appended_one_by_one_fit(root: Path) -> None:
    """All that a long command does is what is expected of it first."""
    lines = [f"line {number}" for number in range(200)]
    intent = shell_intent("; ".join(f"echo '{line}' >> a.py" for line in lines), root, root)

    whole = "".join(f"{line}\n" for line in lines)
    assert Certainty.CERTAIN == judged(intent, a_difference("old\n", f"old\n{whole}"))
    assert Certainty.CANDIDATE == judged(intent, a_difference("old\n", f"old\n{whole}by hand\n"))


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/a/b/ " + "**/" * 40 + "*.py",
        "env " * 40_000 + "sed -i s/a/b/ a.py",
        "echo x >> a.py;" * 12_000,
        "for f in " + "x " * 50_000 + "; do sed -i s/a/b/ $f$f$f; done",
        "bash -c " * 20_000,
        "sed -i s/a/b/ " + "{a,b}" * 30,
        "sed -i s/a/b/ '" + "*a" * 5_000 + "'",
        "(" * 50_000,
    ],
    ids=["stars", "wrappers", "writes", "a loop", "shells", "braces", "a pattern", "groups"],
)
@pytest.mark.slow
def test_a_command_that_wants_to_keep_us_busy_does_not(root: Path, command: str) -> None:
    """Whoever waits for the recorder waits for an answer, whatever a model typed."""
    path = "/".join(["a"] * 60) + "/" + "a" * 200 + ".py"
    before, after = "x" * 1_000_000, "y" * 1_000_000

    assert Certainty.CANDIDATE == judged(shell_intent(command, root, root), a_difference(before, after, path))


def test_a_directory_that_is_copied_is_compared_file_by_file(root: Path) -> None:
    """What somebody saves beside the copies is not copied."""
    intent = shell_intent("cp -r lib new", root, root)
    files = {"lib/x.py": "x\n"}

    copied, edited, foreign = (
        judged(intent, a_difference(None, text, path), files)
        for path, text in (("new/x.py", "x\n"), ("new/x.py", "y\n"), ("new/z.py", "z\n"))
    )

    assert (Certainty.CERTAIN, Certainty.CANDIDATE, Certainty.CANDIDATE) == (copied, edited, foreign)
