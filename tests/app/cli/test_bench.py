from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from app.cli.bench import bench


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    octavo_home: Path, tmp_path: Path
) -> None:
    result = CliRunner().invoke(bench, ["decode", "--csv", str(tmp_path / "gone" / "runs.csv")])
    assert result.exit_code == 2
    assert "there is no folder" in result.output
