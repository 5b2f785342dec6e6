"""Whose lines are whose, after real commands in a real repository, told by real hook processes."""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from tests.attribution.hooked import NOBODY, Hooked, Tell, hooked
from tests.claude_code.hooking import hooked as answered

A, B = "alpha = compute(item, 1)", "beta = compute(item, 2)"
C, D = "gamma = compute(item, 3)", "delta = compute(item, 4)"
FILES = {"a.py": f"{A}\n{B}\n", "b.py": f"{A}\n{B}\n", "test_a.py": "def test_nothing(): pass\n"}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Hooked]:
    """Return a repository whose hooks are processes, as the settings of the project name them."""
    with ExitStack() as stack:

        def through(recorder: HookRecorder) -> Tell:
            project = tmp_path / "shop"
            (project / ".claude").mkdir()
            stack.enter_context(answered(project, recorder.handle))
            settings = json.loads((project / ".claude" / "settings.local.json").read_text(encoding="utf-8"))

            def tell(event: Mapping[str, Any]) -> None:
                command = settings["hooks"][event["hook_event_name"]][0]["hooks"][0]["command"]
                subprocess.run(shlex.split(command), input=json.dumps(event).encode(), check=True)

            return tell

        yield stack.enter_context(hooked(tmp_path, through=through, files=FILES))


def test_what_a_person_saves_during_a_test_run_is_not_the_runs(shop: Hooked) -> None:
    """The run is a candidate, by name, and the answer says what ran; the lines that were there keep their author."""
    call = shop.bash("python -m compileall -q test_a.py", meanwhile=lambda: shop.save("a.py", A, C, B))

    assert [(A, "-ana"), (C, f"{call}? or -"), (B, "-ana")] == shop.who("a.py")
    assert "changed while `python -m compileall -q test_a.py` ran: perhaps claude-code" in str(shop.blame("a.py"))


def test_what_is_named_and_not_written_is_not_the_commands(shop: Hooked) -> None:
    """`cat a.py` names it, and somebody saved it at the same time."""
    call = shop.bash("cat a.py", meanwhile=lambda: shop.save("a.py", A, C))

    assert [(A, "-ana"), (C, f"{call}? or -")] == shop.who("a.py")


def test_what_a_command_writes_by_name_is_its_work(shop: Hooked) -> None:
    """A `sed -i`, a here-document, an appended line; and a person who saves another file meanwhile."""
    sed = shop.bash(f"sed -i 's/{B}/{C}/' a.py", meanwhile=lambda: shop.save("b.py", A, D))
    cat = shop.bash(f"cat > c.py <<'EOF'\n{A}\n{B}\nEOF")
    echo = shop.bash(f"cd . && echo '{D}' >> a.py")

    assert [(A, "-ana"), (C, sed), (D, echo)] == shop.who("a.py")
    assert [(A, "-ana"), (D, f"{sed}? or -")] == shop.who("b.py")
    assert [(A, cat), (B, cat)] == shop.who("c.py")


def test_a_file_that_is_not_as_the_command_leaves_it_is_not_its_work(shop: Hooked) -> None:
    """It was to have one line, and has two."""
    call = shop.begin("Bash", command=f"echo '{C}' > a.py")
    shop.save("a.py", C, D)
    shop.end(call)

    assert [(C, f"{call}? or -"), (D, f"{call}? or -")] == shop.who("a.py")


def test_of_two_commands_the_one_that_was_told_to_wrote_it(shop: Hooked) -> None:
    """Whichever ends first."""
    slow = shop.begin("Bash", command="make test")
    first = shop.bash(f"sed -i 's/{B}/{C}/' a.py")
    second = shop.begin("Bash", command=f"echo '{D}' >> b.py")
    shop.run(f"echo '{D}' >> b.py", by="agent")
    shop.end(slow)
    shop.end(second)

    assert [(A, "-ana"), (C, first)] == shop.who("a.py")
    assert [(A, "-ana"), (B, "-ana"), (D, second)] == shop.who("b.py")


def test_of_two_commands_that_were_told_to_either_may_have(shop: Hooked) -> None:
    """Both write the file by name, and nobody knows which wrote which line."""
    one = shop.begin("Bash", command="sed -i s/x/y/ a.py")
    other = shop.begin("Bash", command="tee -a a.py < x")
    shop.save("a.py", A, B, C)
    shop.end(one)
    shop.end(other)

    (_, (_, _), (_, who)) = shop.who("a.py")
    assert {one, other} <= {part.rstrip("?") for part in who.split(" or ")}


def test_a_merge_leaves_others_their_lines(shop: Hooked) -> None:
    """Both sides changed the file, so the merged text is in no older commit; its lines have their authors anyway."""
    shop.run(
        f"git switch -qc feature && sed -i 's/{B}/{C}/' a.py && git commit -qam theirs && git switch -q main", by="ben"
    )
    own = shop.bash(f"sed -i '1i {D}' a.py && git commit -qam ours")
    merge = shop.bash("git merge -q -m merged feature", fails=False)

    assert [(D, own), (A, "-ana"), (C, "-ben")] == shop.who("a.py")
    assert merge not in {who for _, who in shop.who("a.py")}


def test_a_rebase_leaves_everybody_their_lines(shop: Hooked) -> None:
    """The agent's commits are written anew, on top of somebody else's."""
    shop.bash("git switch -qc work")
    own = shop.bash(f"echo '{D}' >> b.py && git commit -qam ours")
    shop.run(
        f"git switch -q main && sed -i 's/{B}/{C}/' a.py && git commit -qam theirs && git switch -q work", by="ben"
    )
    shop.bash("git rebase -q main")

    assert [(A, "-ana"), (C, "-ben")] == shop.who("a.py")
    assert [(A, "-ana"), (B, "-ana"), (D, own)] == shop.who("b.py")


def test_a_stash_that_is_popped_brings_back_whose_lines_they_were(shop: Hooked) -> None:
    """A person's unsaved work and an agent's are put away and brought back by an agent."""
    own = shop.bash(f"echo '{D}' >> b.py")
    shop.save("a.py", A, C)
    shop.bash("git stash -q")
    between = shop.who("b.py")
    shop.bash("git stash pop -q")

    assert [(A, "-ana"), (B, "-ana")] == between
    assert [(A, "-ana"), (C, NOBODY)] == shop.who("a.py")
    assert [(A, "-ana"), (B, "-ana"), (D, own)] == shop.who("b.py")


def test_a_checkout_restores_and_writes_nothing(shop: Hooked) -> None:
    """What a commit has is its author's, by whichever command it came back."""
    shop.save("a.py", C)
    shop.bash("git checkout -q -- a.py")
    shop.save("b.py", C)
    shop.bash("git show HEAD:b.py > b.py")

    assert [(A, "-ana"), (B, "-ana")] == shop.who("a.py") == shop.who("b.py")


def test_a_patch_that_is_applied_is_the_agents(shop: Hooked) -> None:
    """A revert is a candidate; what it brings back keeps its author."""
    patch = f"--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n {A}\n-{B}\n+{C}\n"
    call = shop.bash(f"cat > fix.patch <<'EOF'\n{patch}EOF\ngit apply fix.patch && rm fix.patch && git commit -qam x")
    applied = shop.who("a.py")
    shop.bash("git revert --no-edit HEAD")

    assert [(A, "-ana"), (C, call)] == applied
    assert [A, B] == [text for text, _ in shop.who("a.py")]
    assert call not in {who for _, who in shop.who("a.py")}


def test_a_formatter_reformats_and_a_person_writes(shop: Hooked, tmp_path: Path) -> None:
    """What has the same words is the formatter's doing; new words in a directory that it was told may be anybody's."""
    tool = tmp_path / "black"
    tool.write_text("#!/bin/sh\nsed -i 's/(item, /( item,/' a.py\n", encoding="utf-8")
    tool.chmod(0o755)
    call = shop.bash(f"{tool} .", meanwhile=lambda: shop.save("b.py", A, D))

    assert [NOBODY, NOBODY] == [who for _, who in shop.who("a.py")]
    assert [(A, "-ana"), (D, f"{call}? or -")] == shop.who("b.py")


def test_a_file_that_moves_keeps_its_lines(shop: Hooked) -> None:
    """Also onto a file that was there; and a copy is the work of who copied."""
    own = shop.bash(f"echo '{C}' >> a.py")
    shop.bash("mv a.py b.py")
    copy = shop.bash("cp b.py d.py")

    assert [(A, "-ana"), (B, "-ana"), (C, own)] == shop.who("b.py")
    assert [(A, copy), (B, copy), (C, copy)] == shop.who("d.py")


def test_of_an_edit_only_its_own_lines_are_its(shop: Hooked) -> None:
    """A person saved the file right before the editor read it, and right after it wrote."""
    one = shop.edit("a.py", B, C, before=lambda: shop.save("a.py", D, A, B))
    other = shop.edit("b.py", B, C, after=lambda: shop.save("b.py", A, C, D))

    assert [(D, NOBODY), (A, "-ana"), (C, one)] == shop.who("a.py")
    assert [(A, "-ana"), (C, other), (D, NOBODY)] == shop.who("b.py")


def test_an_edit_that_failed_wrote_nothing(shop: Hooked) -> None:
    """Somebody else saved the file at that moment."""
    call = shop.begin("Edit", file_path=str(shop.root / "a.py"), old_string="x", new_string="y")
    shop.save("a.py", A, C)
    shop.end(call, error="String to replace not found")

    assert [(A, "-ana"), (C, f"{call}? or -")] == shop.who("a.py")


def test_what_a_tool_of_a_server_changed_is_not_known(shop: Hooked) -> None:
    """It says nothing of what it writes."""
    call = shop.begin("mcp__files__sync", path="a.py")
    shop.save("a.py", A, C)
    shop.end(call)

    assert [(A, "-ana"), (C, f"{call}? or -")] == shop.who("a.py")
