"""Changes that are no new content, as the thread that writes is given them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.housekeeping import Housekeeping
from app.store.prefixes.own_database import OwnDatabase

Order: TypeAlias = Callable[[OwnDatabase], bool]
"""Makes a change on the thread that has the connection; returns False where it is to be done again soon.

May raise a `StoreError`: it is done later then.
"""


def in_file(change: Callable[[PrefixDatabase], object]) -> Order:
    """Return the order to make a change, in a new file where there is none."""

    def order(own: OwnDatabase) -> bool:
        own.use(change)
        return True

    return order


def where_it_exists(change: Callable[[PrefixDatabase], object]) -> Order:
    """Return the order to make a change, where there is something to change."""
    return lambda own: not own.exists or in_file(change)(own)


def clear(own: OwnDatabase) -> bool:
    """The order to put an empty file in the place of this one."""
    if own.exists:
        own.clear()
    return True


def give_back(own: OwnDatabase) -> bool:
    """The order to give free space back to the disk, and deleted words with it."""
    return not own.exists or own.use(lambda database: Housekeeping(database).give_back())
