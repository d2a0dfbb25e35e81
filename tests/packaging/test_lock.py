"""constraints.txt against what the project asks for, on each system and Python that it supports."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "constraints.txt").read_text(encoding="utf-8")
PLACES = [
    (system, machine, python)
    for system, machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"))
    for python in ("3.11", "3.12", "3.13")
]


def requirements() -> Iterator[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    yield from map(Requirement, project["project"]["dependencies"])
    for group in project["dependency-groups"].values():
        yield from map(Requirement, group)


@pytest.mark.parametrize(("system", "machine", "python"), PLACES)
def test_each_requirement_has_one_version_that_satisfies_it(system: str, machine: str, python: str) -> None:
    environment = {**default_environment(), "sys_platform": system, "platform_machine": machine}
    environment |= {"python_version": python, "python_full_version": f"{python}.1"}

    def here(requirement: Requirement) -> bool:
        return requirement.marker is None or requirement.marker.evaluate(environment)

    pins: dict[str, list[str]] = {}
    for line in LOCK.splitlines():
        if line and line[0] not in " #" and here(pin := Requirement(line)):
            pins.setdefault(canonicalize_name(pin.name), []).append(str(pin.specifier).removeprefix("=="))
    assert all(len(versions) == 1 for versions in pins.values())
    for requirement in filter(here, requirements()):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)][0]), requirement


def test_the_lock_names_no_host() -> None:
    assert not re.search(r"://|--(extra-)?index-url|--find-links", LOCK)
