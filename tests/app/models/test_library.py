from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.models.library import InstalledModel, ModelLibrary
from app.models.starter import STARTER_FILE
from app.paths import AppPaths
from engine.errors import ModelError


@pytest.fixture
def library(octavo_home: Path) -> ModelLibrary:
    return ModelLibrary(AppPaths(octavo_home))


def write_model(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def ids(library: ModelLibrary) -> list[str]:
    return [model.id for model in library.installed()]


def test_a_new_library_is_empty_and_says_how_to_get_a_model(library: ModelLibrary) -> None:
    assert library.installed() == []
    with pytest.raises(
        ModelError, match=r"no model “starter” here\. Get one with `octavo models get starter`"
    ):
        library.find("starter")


def test_one_model_is_no_choice_and_two_are(library: ModelLibrary, tiny_files: dict[str, bytes]) -> None:
    assert library.only() is None
    write_model(library.paths.models / "org--first", tiny_files)
    only = library.only()
    assert only is not None
    assert only.id == "org/first"
    write_model(library.paths.models / "org--second", tiny_files)
    assert library.only() is None


def test_a_name_left_empty_is_not_the_current_folder(library: ModelLibrary) -> None:
    with pytest.raises(ModelError, match="no model “” here"):
        library.find(" ")


def test_everything_in_the_folder_that_is_a_model_is_listed(
    library: ModelLibrary, tiny_files: dict[str, bytes]
) -> None:
    models = library.paths.models
    write_model(models / "org--tiny", tiny_files)
    write_model(models / "org--files@v1", {"sub/b.Q4_0.gguf": b"12345", "a.gguf": b"1"})
    write_model(models / "My own", tiny_files)
    write_model(models / ".staging" / "org--half", tiny_files)
    write_model(models / "no model", {"notes.txt": b"x"})
    write_model(models, {STARTER_FILE: b"123", "own.gguf": b"12"})
    expected = {
        "org/tiny": ("tiny", models / "org--tiny", sum(map(len, tiny_files.values()))),
        "org/files@v1/sub/b.Q4_0.gguf": ("b.Q4_0", models / "org--files@v1" / "sub" / "b.Q4_0.gguf", 5),
        "org/files@v1/a.gguf": ("a", models / "org--files@v1" / "a.gguf", 1),
        "My own": ("My own", models / "My own", sum(map(len, tiny_files.values()))),
        "starter": ("SmolLM2-135M-Instruct", models / STARTER_FILE, 3),
        "own": ("own", models / "own.gguf", 2),
    }
    assert {model.id: (model.title, model.path, model.nbytes) for model in library.installed()} == expected
    assert all(model.managed for model in library.installed())
    assert library.unfinished() == ["org/half"]


def test_a_model_is_found_by_id_title_and_path(library: ModelLibrary, tiny_files: dict[str, bytes]) -> None:
    path = write_model(library.paths.models / "org--tiny", tiny_files)
    (model,) = library.installed()
    for name in ("org/tiny", "ORG/Tiny", "tiny", "Tiny", str(path), f" {path} "):
        assert library.find(name) == model
    with pytest.raises(ModelError, match=r"no model “other” here\. Installed are: org/tiny"):
        library.find("other")


def test_a_title_that_two_models_have_is_not_guessed(
    library: ModelLibrary, tiny_files: dict[str, bytes]
) -> None:
    write_model(library.paths.models / "org--tiny", tiny_files)
    write_model(library.paths.models / "other--tiny", tiny_files)
    with pytest.raises(ModelError, match="Installed are: org/tiny, other/tiny"):
        library.find("tiny")


def test_a_path_is_found_without_an_import(
    library: ModelLibrary, tmp_path: Path, tiny_files: dict[str, bytes]
) -> None:
    path = write_model(tmp_path / "elsewhere", tiny_files)
    model = library.find(str(path))
    assert model == InstalledModel(
        str(path), path, "elsewhere", sum(map(len, tiny_files.values())), managed=False
    )
    assert library.installed() == []
    with pytest.raises(ModelError, match="was not imported"):
        library.remove(str(path))
    assert path.exists()


def test_an_import_is_remembered_and_copies_nothing(
    library: ModelLibrary, tmp_path: Path, tiny_files: dict[str, bytes]
) -> None:
    path = write_model(tmp_path / "elsewhere", tiny_files)
    model = library.import_path(path)
    assert (model.id, model.path, model.managed) == ("elsewhere", path, False)
    assert ModelLibrary(library.paths).installed() == [model]
    assert library.import_path(path) == model
    assert ids(library) == ["elsewhere"]
    assert [file.name for file in library.paths.models.iterdir()] == ["imported.toml"]


def test_imports_of_the_same_name_get_different_ids(
    library: ModelLibrary, tmp_path: Path, tiny_files: dict[str, bytes]
) -> None:
    for folder in ("a", "b", "c"):
        library.import_path(write_model(tmp_path / folder / "tiny", tiny_files))
    assert ids(library) == ["tiny", "tiny-2", "tiny-3"]


def test_a_gguf_file_is_imported(library: ModelLibrary, starter_gguf: Path) -> None:
    model = library.import_path(starter_gguf)
    assert (model.title, model.nbytes) == ("SmolLM2-135M-Instruct", 98_362_432)


@pytest.mark.parametrize("name", ["missing", "notes.gguf", "folder"])
def test_what_cannot_run_is_not_imported(library: ModelLibrary, tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.gguf").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ModelError):
        library.import_path(tmp_path / name)
    assert library.installed() == []


def test_an_import_that_is_gone_is_not_listed_until_it_comes_back(
    library: ModelLibrary, tmp_path: Path, tiny_files: dict[str, bytes]
) -> None:
    path = write_model(tmp_path / "elsewhere", tiny_files)
    model = library.import_path(path)
    path.rename(tmp_path / "away")
    assert library.installed() == []
    with pytest.raises(ModelError, match=f"elsewhere is no longer at {path}"):
        library.find("elsewhere")
    (tmp_path / "away").rename(path)
    assert library.installed() == [model]


def test_removing_an_import_leaves_its_files(
    library: ModelLibrary, tmp_path: Path, tiny_files: dict[str, bytes]
) -> None:
    path = write_model(tmp_path / "elsewhere", tiny_files)
    library.import_path(path)
    assert library.remove("elsewhere") == f"elsewhere is forgotten; its files stay at {path}."
    assert library.installed() == []
    assert (path / "config.json").exists()


def test_an_import_that_is_gone_can_be_removed(
    library: ModelLibrary, tmp_path: Path, tiny_files: dict[str, bytes]
) -> None:
    library.import_path(write_model(tmp_path / "elsewhere", tiny_files))
    shutil.rmtree(tmp_path / "elsewhere")
    assert "is forgotten" in library.remove("elsewhere")
    with pytest.raises(ModelError, match="There is no model"):
        library.remove("elsewhere")


def test_removing_a_managed_model_leaves_nothing_of_it(
    library: ModelLibrary, tiny_files: dict[str, bytes]
) -> None:
    write_model(library.paths.models / "org--tiny", tiny_files)
    assert library.remove("org/tiny") == "tiny is deleted; 1.0 MB are free again."
    assert [path for path in library.paths.models.rglob("*") if path.is_file()] == []
    assert not (library.paths.models / "org--tiny").exists()


def test_removing_one_gguf_file_leaves_its_neighbours(library: ModelLibrary) -> None:
    write_model(library.paths.models / "org--files", {"sub/b.gguf": b"1", "a.gguf": b"1"})
    library.remove("org/files/a.gguf")
    assert ids(library) == ["org/files/sub/b.gguf"]
    library.remove("org/files/sub/b.gguf")
    assert not (library.paths.models / "org--files").exists()


def test_removing_the_beginning_of_a_download_deletes_it(library: ModelLibrary) -> None:
    write_model(library.paths.models / ".staging" / "org--half", {"weights.part": b"1"})
    assert library.remove("org/half") == "The beginning of org/half is deleted."
    assert library.unfinished() == []


def test_a_damaged_list_of_imports_is_a_sentence_and_stays(library: ModelLibrary) -> None:
    library.paths.models.mkdir(parents=True)
    file = library.paths.models / "imported.toml"
    for text in ("model = 3", "[[model]]\nid = 'x'", "= no toml"):
        file.write_text(text)
        with pytest.raises(ModelError, match=f"list of imported models is damaged.*{file}"):
            library.installed()
        assert file.read_text() == text
