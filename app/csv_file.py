"""Figures as a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence


def csv_content(rows: Sequence[Mapping[str, object]], columns: Sequence[str] | None = None) -> bytes:
    """Return a line for each row, below one with the names of the columns, by default the first row's."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns or list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()
