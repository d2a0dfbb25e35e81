"""Prints the licences of what Octavo installs, as Markdown: `make lock` keeps it in THIRD_PARTY.md."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SYSTEMS = (("linux", "x86_64"), ("darwin", "arm64"))
ELSEWHERE = {"mlx-metal": "MIT"}
"""Licences of what is not installed on every system that prints this list."""

HEADER = """\
# What Octavo is built on

Octavo is under the Apache License 2.0. It installs the packages below, each under its own licence; a bundle
made with `make bundle` holds them with their licence texts, in the `*.dist-info` folders. PySide6 and Qt are
used under the LGPL: they are separate shared libraries there, to be replaced by others of the same version.

| package | licence |
|---|---|"""


def packages() -> dict[str, str]:
    """Return the licence of each package that Octavo needs on any supported system, by name."""
    licences: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement("octavo")]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, frozenset(requirement.extras)) in seen:
            continue
        seen.add((name, frozenset(requirement.extras)))
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            licences[name] = ELSEWHERE[name]
            continue
        licences[name] = licence(distribution)
        waiting += needed(distribution, requirement.extras)
    del licences["octavo"]
    return dict(sorted(licences.items()))


def needed(distribution: metadata.Distribution, extras: set[str]) -> Iterator[Requirement]:
    """Yield what a distribution requires with `extras` on any supported system."""
    for text in distribution.requires or ():
        requirement = Requirement(text)
        environments = (
            {**default_environment(), "sys_platform": system, "platform_machine": machine, "extra": extra}
            | {"platform_system": system.capitalize()}
            for system, machine in SYSTEMS
            for extra in extras or {""}
        )
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            yield requirement


def licence(distribution: metadata.Distribution) -> str:
    """Return a distribution's licence: its SPDX expression, else its classifiers, else its first line."""
    about = distribution.metadata
    classifiers = [line for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    stated = (about.get("License") or "").strip().split("\n")[0]
    classified = ", ".join(line.rsplit(" :: ", 1)[1] for line in classifiers)
    return about.get("License-Expression") or classified or stated or "see the package"


if __name__ == "__main__":
    print(HEADER)
    for package, terms in packages().items():
        print(f"| {package} | {terms} |")
