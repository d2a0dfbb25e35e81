"""Figures as a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_csv(rows: Sequence[Mapping[str, object]], path: Path) -> None:
    """Write a line for each row, below one with the names that the first row has."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
