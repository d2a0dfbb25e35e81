from __future__ import annotations

from pathlib import Path

import pytest

from engine.control_group import GroupMemory, group_memory

MIB = 1 << 20
COMPUTER = 8192 * MIB


class Groups:
    """The files of control groups and of the process that is in one."""

    def __init__(self, folder: Path) -> None:
        self.mount, self.proc = folder / "cgroup", folder / "proc"

    def join(self, memberships: str, pid: str = "self") -> None:
        (self.proc / pid).mkdir(parents=True)
        (self.proc / pid / "cgroup").write_text(memberships)

    def v2(self, path: str, limit: str, used: int, idle: int = 0, recent: int = 0, high: str = "max") -> Path:
        return self._write(
            self.mount / path,
            {
                "memory.max": limit,
                "memory.high": high,
                "memory.current": str(used),
                "memory.stat": f"anon 1\nshmem 5\ninactive_file {idle}\nactive_file {recent}",
            },
        )

    def v1(self, path: str, limit: str, used: int, idle: int = 0, recent: int = 0) -> Path:
        return self._write(
            self.mount / "memory" / path,
            {
                "memory.limit_in_bytes": limit,
                "memory.usage_in_bytes": str(used),
                "memory.stat": f"inactive_file 3\ntotal_inactive_file {idle}\ntotal_active_file {recent}",
            },
        )

    def found(self, pid: int | None = None) -> GroupMemory | None:
        return group_memory(COMPUTER, pid, self.mount, self.proc)

    @staticmethod
    def _write(folder: Path, files: dict[str, str]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text + "\n")
        return folder


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    return Groups(tmp_path)


def test_a_container_of_version_2_has_what_its_limit_leaves(groups: Groups) -> None:
    groups.join("0::/\n")
    folder = groups.v2("", str(100 * MIB), used=60 * MIB)
    assert groups.found() == GroupMemory(100 * MIB, 60 * MIB, folder)


def test_a_container_of_version_1_has_what_its_limit_leaves(groups: Groups) -> None:
    groups.join("5:devices:/\n4:memory:/box\n0::/\n")
    folder = groups.v1("box", str(100 * MIB), used=60 * MIB)
    assert groups.found() == GroupMemory(100 * MIB, 60 * MIB, folder)


def test_a_controller_that_is_mounted_with_others_is_found(groups: Groups) -> None:
    groups.join("4:hugetlb,memory:/box\n")
    groups.v1("box", str(100 * MIB), used=60 * MIB)
    assert groups.found() is not None


def test_more_than_is_allowed_leaves_nothing(groups: Groups) -> None:
    groups.join("0::/\n")
    groups.v2("", str(100 * MIB), used=130 * MIB)
    found = groups.found()
    assert found is not None
    assert found.free_nbytes == 0


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_copies_of_files_are_free_those_of_a_model_that_was_read_twice_too(
    groups: Groups, version: str
) -> None:
    groups.join("4:memory:/\n0::/\n")
    getattr(groups, version)("", str(100 * MIB), used=60 * MIB, idle=25 * MIB, recent=10 * MIB)
    found = groups.found()
    assert found is not None
    assert found.free_nbytes == 75 * MIB


@pytest.mark.parametrize("limit", ["max", str(200 * MIB)])
def test_a_group_that_is_slowed_down_is_limited(groups: Groups, limit: str) -> None:
    groups.join("0::/\n")
    folder = groups.v2("", limit, used=60 * MIB, high=str(100 * MIB))
    assert groups.found() == GroupMemory(100 * MIB, 60 * MIB, folder)


@pytest.mark.parametrize("tightest", ["", "a", "a/b"])
def test_the_tightest_of_nested_groups_counts(groups: Groups, tightest: str) -> None:
    groups.join("0::/a/b\n")
    for path in ("", "a", "a/b"):
        groups.v2(path, str(100 * MIB), used=(90 if path == tightest else 60) * MIB)
    found = groups.found()
    assert found is not None
    assert found.folder == groups.mount / tightest


def test_a_host_path_inside_a_container_ends_at_the_mount(groups: Groups) -> None:
    groups.join("4:memory:/docker/0123\n")
    groups.v1("", str(100 * MIB), used=60 * MIB)
    assert groups.found() is not None


def test_a_path_outside_of_the_mount_is_not_followed(groups: Groups) -> None:
    groups.join("0::/../../other\n")
    groups.v2("", str(100 * MIB), used=60 * MIB)
    groups.v2("../../other", str(10 * MIB), used=9 * MIB)
    found = groups.found()
    assert found is not None
    assert found.folder == groups.mount


@pytest.mark.parametrize("limit", ["9223372036854771712", str(COMPUTER)])
def test_version_1_without_a_limit_has_none(groups: Groups, limit: str) -> None:
    groups.join("4:memory:/box\n")
    groups.v1("box", limit, used=60 * MIB)
    assert groups.found() is None


def test_version_2_without_a_limit_has_none(groups: Groups) -> None:
    groups.join("0::/\n")
    groups.v2("", "max", used=60 * MIB)
    assert groups.found() is None


def test_version_2_beside_version_1_is_found(groups: Groups) -> None:
    groups.join("4:memory:/\n0::/box\n")
    groups.v2("unified/box", str(100 * MIB), used=60 * MIB)
    assert groups.found() is not None


def test_another_process_has_its_own_groups(groups: Groups) -> None:
    groups.join("0::/mine\n")
    groups.join("0::/its\n", pid="42")
    groups.v2("its", str(100 * MIB), used=60 * MIB)
    assert groups.found() is None
    assert groups.found(pid=42) is not None


def test_where_there_are_no_control_groups_nothing_limits(groups: Groups) -> None:
    assert groups.found() is None
