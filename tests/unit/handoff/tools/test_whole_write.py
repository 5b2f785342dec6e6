"""Which calls write a whole file."""

import pytest

from batonpass.handoff.tools.whole_write import find_whole_write

GIVEN = {"path": "a.py", "content": "x"}


@pytest.mark.parametrize(
    ("tool", "arguments", "is_whole"),
    [
        pytest.param("write_file", GIVEN, True, id="by its usual name"),
        pytest.param("Write", {"file_path": "a.py", "content": "x"}, True, id="Claude Code's"),
        pytest.param("mcp__files__write_file", GIVEN, True, id="of an MCP server"),
        pytest.param("createFile", {"filePath": "a.py", "fileText": "x"}, True, id="in camel case"),
        pytest.param("save_file", {**GIVEN, "encoding": "utf-8"}, True, id="with an encoding"),
        pytest.param("write_file", {**GIVEN, "mode": "rewrite"}, True, id="that says so by its mode"),
        pytest.param("write_file", {**GIVEN, "mode": "append"}, False, id="that appends"),
        pytest.param("text_editor", {"command": "create", "path": "a", "file_text": "x"}, True, id="an editor's"),
        pytest.param(
            "text_editor", {"command": "insert", "path": "a", "file_text": "x"}, False, id="an editor's insertion"
        ),
        pytest.param("append_file", GIVEN, False, id="an append"),
        pytest.param("write_lines", GIVEN, False, id="some lines"),
        pytest.param("read_file", GIVEN, False, id="no write at all"),
        pytest.param("create_or_update_file", {**GIVEN, "branch": "main"}, False, id="in another repository"),
        pytest.param("write_file", {**GIVEN, "offset": 7}, False, id="at an offset"),
        pytest.param("write_file", {**GIVEN, "offset": None}, True, id="without the offset that it could have"),
        pytest.param("write_file", {"path": "a.py"}, False, id="without a text"),
        pytest.param("write_file", {"path": "a", "file": "b", "content": "x"}, False, id="with two files"),
        pytest.param("write_file", {"path": ["a"], "content": "x"}, False, id="with a list of files"),
        pytest.param("write_file", {"path": "", "content": "x"}, False, id="without a name"),
        pytest.param("write_file", None, False, id="without arguments"),
    ],
)
def test_a_whole_write_is_known_by_its_names(tool: str, arguments: object, is_whole: bool) -> None:  # noqa: FBT001 - a case
    """If a word of it is unknown, it is none: nobody is shown that a file goes, if it would only grow."""
    assert is_whole == (find_whole_write(tool, arguments) is not None)
