"""The answers of `octavo bench document` in a CSV file, from which a run goes on that was stopped."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.csv_file import csv_content
from app.document_bench.facts import PlantedFact
from app.document_bench.figures import AskedFact, BenchWay
from app.output_files import is_special, write_files
from engine.errors import OctavoError

COLUMNS = (
    "run",
    "way",
    "kind",
    "question",
    "right",
    "answer",
    "is_found",
    "is_read",
    "is_cited",
    "seconds",
    "read_tokens",
    "written_tokens",
    "peak_kv_nbytes",
    "peak_mlx_nbytes",
)


class AnswerFile:
    """A CSV file with a row for each answer, written whole after each.

    Args:
        file: where it is.
        run: what was asked of which model, in words: answers of another run are not taken for those of this.
        goes_on: whether the answers that are in the file stay.

    Raises:
        OctavoError: the answers in the file cannot be read, or are those of another run.
    """

    def __init__(self, file: Path, run: str, *, goes_on: bool) -> None:
        self._file = file
        self._run = run
        self._rows: list[Mapping[str, object]] = []
        if goes_on and file.is_file():
            self._rows.extend(self._read())

    def _read(self) -> Sequence[Mapping[str, str]]:
        try:
            with self._file.open(encoding="utf-8", newline="") as lines:
                rows = list(csv.DictReader(lines))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise OctavoError(f"The answers in {self._file} cannot be read: {error}.") from error
        if any(set(row) != set(COLUMNS) or row["run"] != self._run for row in rows):
            raise OctavoError(
                f"{self._file} has the answers of another run. Name another file with --csv, or ask for the "
                "same model, tokens, facts and context."
            )
        return rows

    def earlier(self, way: BenchWay, fact: PlantedFact) -> AskedFact | None:
        """Return the answer that the file has for a fact, None for none."""
        wanted = (way.value, fact.question, fact.answer)
        for row in self._rows:
            if (row["way"], row["question"], row["right"]) == wanted:
                return _asked(fact, row)
        return None

    def add(self, way: BenchWay, one: AskedFact) -> None:
        """Add an answer and write the file.

        Raises:
            OctavoError: it cannot be written.
        """
        self._rows.append({"run": self._run, **_row(way, one)})
        if not is_special(self._file):  # what is written into a device stays
            self.write()

    def write(self) -> None:
        """Write the file, which may have no answer.

        Raises:
            OctavoError: it cannot be written.
        """
        write_files({self._file: lambda: csv_content(self._rows, COLUMNS)})


def _row(way: BenchWay, one: AskedFact) -> Mapping[str, object]:
    return {
        "way": way.value,
        "kind": one.fact.kind.value,
        "question": one.fact.question,
        "right": one.fact.answer,
        "answer": one.text,
        "is_found": one.is_found,
        "is_read": one.is_read,
        "is_cited": one.is_cited,
        "seconds": round(one.seconds, 2),
        "read_tokens": one.read_tokens,
        "written_tokens": one.written_tokens,
        "peak_kv_nbytes": one.peak_kv_nbytes,
        "peak_mlx_nbytes": one.peak_mlx_nbytes,
    }


def _asked(fact: PlantedFact, row: Mapping[str, object]) -> AskedFact:
    cells = {column: str(cell) for column, cell in row.items()}
    return AskedFact(
        fact,
        cells["answer"],
        fact.is_told_by(cells["answer"]),
        cells["is_read"] == "True",
        cells["is_cited"] == "True",
        float(cells["seconds"]),
        int(cells["read_tokens"]),
        int(cells["written_tokens"]),
        int(cells["peak_kv_nbytes"]),
        int(cells["peak_mlx_nbytes"]),
    )
