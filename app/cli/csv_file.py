"""Figures as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence


def csv_content(rows: Sequence[Mapping[str, object]]) -> bytes:
    """Return a line for each row, below one with the names that the first row has."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()
