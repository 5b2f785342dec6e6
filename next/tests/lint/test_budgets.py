"""What the table of budgets refuses."""

from pathlib import Path

from tools.budgets import report


def test_a_package_over_budget_and_one_without_a_budget_are_faults(tmp_path: Path) -> None:
    """Lines, modules, names and SQL are held to their figures, and each entry of the tree has a budget."""
    (tmp_path / "wire").mkdir()
    (tmp_path / "wire" / "__init__.py").write_text('__all__ = ["a", "b"]\n', encoding="utf-8")
    (tmp_path / "wire" / "rows.py").write_text("import ast\nimport re\n", encoding="utf-8")
    (tmp_path / "wire" / "rows.sql").write_text("SELECT 1;\n", encoding="utf-8")
    (tmp_path / "surprise.py").write_text("x = 1\n", encoding="utf-8")

    table, faults = report(
        tmp_path, {"total": {"lines": 3}, "packages": {"wire": {"lines": 2, "modules": 1, "names": 1}}}
    )

    assert [
        "no budget: surprise.py is in no package of budgets.toml",
        "over budget: wire has 3 lines, at most 2",
        "over budget: wire has 1 sql, at most 0",
        "over budget: wire has 2 modules, at most 1",
        "over budget: wire has 2 names, at most 1",
        "over budget: total has 4 lines, at most 3",
    ] == faults
    assert "imports: 50.0% of the lines of Python" == table[-1]
