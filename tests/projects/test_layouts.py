"""Projects for ESP-IDF, Zephyr, PlatformIO and Arduino: the files and keys that each system's documentation asks for, sources
that are compiled without a warning by each compiler, and an example that is built by stand-ins for these systems and runs."""
from __future__ import annotations

import json
import os
import re
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import tosaic
from tosaic.jit.command_line.cli import main as command

from ..c_source.boards import BARE_COMPILE, COMPILERS, compilers
from ..covering import covering
from .building import DATA, SAMPLES, needs, succeed

STAND_INS = Path(__file__).parent / "stand_ins"
MODELS = {"f32": SAMPLES / "models" / "lstm.mlir", "int8": DATA / "corpus" / "f_mobilenet_block_int8.mlir"}
POOLS = ("--workspace-pools", "fast,slow", "--workspace-pool-fast", "size=1K", "--parameter-pools", "flash")
FORMS = {"plain": (), "pools": POOLS, "caller's state": ("--state", "caller")}
SYSTEMS = "esp-idf", "zephyr", "platformio", "arduino"
models, forms = pytest.mark.parametrize("model", MODELS), pytest.mark.parametrize("form", FORMS)
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror")


def make_project(folder: Path, system: str, model: str = "int8", *options: str) -> Path:
    assert command(["compile", str(MODELS[model]), "-o", str(folder), "--name", "m", "--project", system, *options]) == 0
    return folder


def said(text: str) -> bool:
    """True if an example has made its calls and found nothing."""
    return re.fullmatch(r"tosaic_m: [13] calls, OK\n", text) is not None


def yaml(path: Path) -> Any:
    return pytest.importorskip("yaml", reason="PyYAML is not installed").safe_load(path.read_text())


# ---- ESP-IDF ---------------------------------------------------------------------------------------------------------
def test_a_component_has_the_files_and_keys_that_esp_idf_documents(tmp_path: Path) -> None:
    project = make_project(tmp_path / "m", "esp-idf", "int8", *POOLS)
    lists = (project / "CMakeLists.txt").read_text()
    registered = re.search(r'idf_component_register\(SRCS ([^)]*?)\s+INCLUDE_DIRS "include"\)', lists)
    assert registered and registered[1].split() == ['"src/m.c"', '"src/m_flash.c"']
    assert all((project / name).is_file() for name in ("src/m.c", "src/m_flash.c", "include/tosaic_m.h", "README.md"))
    example = project / "examples" / "m_example"
    lines = [line for line in (example / "CMakeLists.txt").read_text().splitlines() if line and line[0] != "#"]
    assert [line.split("(")[0] for line in lines] == ["cmake_minimum_required", "set", "include", "project"]
    assert lines[2] == "include($ENV{IDF_PATH}/tools/cmake/project.cmake)"
    assert (example / "main" / "CMakeLists.txt").is_file()
    assert "void app_main(void)" in (example / "main" / "main.c").read_text()


def test_a_components_manifest_has_the_keys_that_the_component_manager_documents(tmp_path: Path) -> None:
    manifest = yaml(make_project(tmp_path / "m", "esp-idf") / "idf_component.yml")
    assert manifest == {"version": "1.0.0", "description": "The model m, compiled by tosaic", "dependencies": {"idf": ">=5.0"}}
    assert re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])


@pytest.mark.parametrize(("target", "chips"), [("esp32-c3", ["esp32c2", "esp32c3"]), ("esp32-p4", ["esp32p4"]),
                                               ("host", ["linux"])])
def test_a_component_with_an_object_names_the_chips_that_run_it(tmp_path: Path, target: str, chips: list[str]) -> None:
    project = make_project(tmp_path / "m", "esp-idf", "int8", "--emit", "object", "--target", target)
    assert sorted(yaml(project / "idf_component.yml")["targets"]) == chips
    assert (project / "lib" / "libtosaic_m.a").read_bytes()[:8] == b"!<arch>\n" and not (project / "src").exists()


@pytest.mark.sampled(2)
@needs("cmake", "cc")
@pytest.mark.parametrize(("model", "form", "emit"), covering(2, MODELS, FORMS, ["c", "object"]))
def test_a_component_is_built_with_its_example_which_runs(tmp_path: Path, model: str, form: str, emit: str) -> None:
    project = make_project(tmp_path / "m", "esp-idf", model, *FORMS[form], "--emit", emit)
    environment = {**os.environ, "IDF_PATH": str(STAND_INS / "esp_idf")}
    succeed("cmake", "-S", project / "examples" / "m_example", "-B", "build", folder=tmp_path, environment=environment)
    succeed("cmake", "--build", "build", folder=tmp_path)
    assert said(succeed(tmp_path / "build" / "m_example.elf"))


# ---- Zephyr ----------------------------------------------------------------------------------------------------------
def test_a_module_has_the_files_and_keys_that_zephyr_documents(tmp_path: Path) -> None:
    project = make_project(tmp_path / "m", "zephyr")
    module = yaml(project / "zephyr" / "module.yml")
    assert module == {"name": "tosaic_m", "build": {"cmake": ".", "kconfig": "Kconfig"}, "samples": ["samples"]}
    assert (project / module["build"]["cmake"] / "CMakeLists.txt").is_file() and (project / "samples").is_dir()
    sample = yaml(project / "samples" / "m_example" / "sample.yaml")
    assert set(sample) == {"sample", "tests"} and set(sample["sample"]) == {"name", "description"}
    test = sample["tests"]["sample.tosaic_m"]
    assert test["harness"] == "console" and test["harness_config"]["type"] == "one_line"
    assert re.search(test["harness_config"]["regex"][0], "tosaic_m: 3 calls, OK")
    assert not re.search(test["harness_config"]["regex"][0], "tosaic_m: 3 calls, DIFFERENT")


def test_a_modules_option_is_written_as_kconfig_is(tmp_path: Path) -> None:
    """A symbol at the margin, its attributes behind a tab, its help two blanks further. What computes in floats asks for their
    unit, what calls the C library's mathematics for a whole one."""
    for op, dtype, wants in (("abs", "i32", []), ("abs", "f32", ["\timply FPU"]),
                             ("rsqrt", "f32", ["\timply FPU", "\tselect REQUIRES_FULL_LIBC"])):
        project, tensor = tmp_path / op / dtype, f"tensor<2x{dtype}>"
        text = (f"func.func @main(%x: {tensor}) -> {tensor} {{\n"
                f"  %0 = tosa.{op} %x : ({tensor}) -> {tensor}\n  return %0 : {tensor} }}")
        tosaic.load(text).save(project, "m", project="zephyr")
        lines = (project / "Kconfig").read_text().splitlines()
        assert lines[:2] == ["config TOSAIC_M", '\tbool "The model m, compiled by tosaic"']
        assert lines[2:-2] == [*wants, "\thelp"] and all(line.startswith("\t  ") for line in lines[-2:])
        settings = (project / "samples" / "m_example" / "prj.conf").read_text().splitlines()
        assert "CONFIG_TOSAIC_M=y" in settings and all(re.fullmatch(r"CONFIG_\w+=\w+", line) for line in settings)


@pytest.mark.sampled(2)
@needs("cmake", "cc")
@pytest.mark.parametrize(("model", "form", "emit"), covering(2, MODELS, FORMS, ["c", "object"]))
def test_a_module_is_built_into_its_sample_which_runs(tmp_path: Path, model: str, form: str, emit: str) -> None:
    project = make_project(tmp_path / "m", "zephyr", model, *FORMS[form], "--emit", emit)
    environment = {**os.environ, "ZEPHYR_BASE": str(STAND_INS / "zephyr")}
    succeed("cmake", "-S", project / "samples" / "m_example", "-B", "build", folder=tmp_path, environment=environment)
    succeed("cmake", "--build", "build", folder=tmp_path)
    assert said(succeed(tmp_path / "build" / "app"))


# ---- PlatformIO ------------------------------------------------------------------------------------------------------
def test_a_library_has_the_files_and_keys_that_platformio_documents(tmp_path: Path) -> None:
    project = make_project(tmp_path / "m", "platformio", "int8", *POOLS)
    manifest = json.loads((project / "library.json").read_text())
    assert set(manifest) == {"name", "version", "description", "keywords", "headers", "frameworks", "platforms", "examples",
                             "build"}
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,50}", manifest["name"]) and re.fullmatch(r"\d+\.\d+\.\d+", manifest["version"])
    assert len(manifest["description"]) <= 255 and all(len(word) <= 50 for word in manifest["keywords"])
    assert all((project / manifest["build"]["includeDir"] / header).is_file() for header in manifest["headers"])
    assert {p.name for p in (project / manifest["build"]["srcDir"]).iterdir()} == {"m.c", "m_flash.c"}
    example, = manifest["examples"]
    assert set(example) == {"name", "base", "files"}
    assert all((project / example["base"] / name).is_file() for name in example["files"])
    settings = ConfigParser()
    settings.read(project / example["base"] / "platformio.ini")
    assert settings["env"]["lib_deps"] == "tosaic_m=symlink://../.." and settings["env:native"]["platform"] == "native"


@pytest.mark.sampled(2)
@needs("gcc", "g++")
@pytest.mark.parametrize(("model", "form", "flags"), covering(
    2, MODELS, FORMS, [pytest.param((), id="native"), pytest.param(("-DARDUINO=10800",), id="Arduino")]))
def test_a_platformio_library_is_built_with_its_example_which_runs(tmp_path: Path, model: str, form: str,
                                                                   flags: tuple[str, ...]) -> None:
    """A C++ program with the library's own folders, as PlatformIO compiles it for a computer and for an Arduino board."""
    project = make_project(tmp_path / "m", "platformio", model, *FORMS[form])
    source = project / "examples" / "m_example" / "src"
    core = [STAND_INS / "arduino" / "core.cpp"] if flags else []
    built([project / "include", source], [*project.glob("src/*.c"), *source.glob("*.c")], [source / "main.cpp", *core],
          tmp_path / "program", *flags)
    assert said(succeed(tmp_path / "program"))


def built(folders: list[Path], c: list[Path], cpp: list[Path], program: Path, *flags: str) -> None:
    """A program of C and C++, compiled without a warning."""
    seen = [f"-I{folder}" for folder in (*folders, STAND_INS / "arduino")]
    objects = []
    for source in c:
        objects.append(program.with_name(f"{source.name}.o"))
        succeed("gcc", "-std=gnu11", "-Os", *WARNINGS, *flags, *seen, "-c", source, "-o", objects[-1])
    succeed("g++", "-std=gnu++11", "-Os", *WARNINGS, *flags, *seen, *cpp, *objects, "-lm", "-o", program)


# ---- Arduino ---------------------------------------------------------------------------------------------------------
CATEGORIES = {"Display", "Communication", "Signal Input/Output", "Sensors", "Device Control", "Timing", "Data Storage",
              "Data Processing", "Other"}
REQUIRED = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}


def properties(project: Path) -> dict[str, str]:
    """A file of keys and values, a pair on each line."""
    return dict(line.split("=", 1) for line in (project / "library.properties").read_text().splitlines())


def test_a_library_has_the_files_and_keys_that_arduino_documents(tmp_path: Path) -> None:
    project = make_project(tmp_path / "m", "arduino", "int8", *POOLS)
    found = properties(project)
    assert set(found) == REQUIRED | {"includes"} and all(found.values())
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.-]*", found["name"]) and re.fullmatch(r"\d+\.\d+\.\d+", found["version"])
    assert found["category"] in CATEGORIES and found["architectures"] == "*" and found["url"].startswith("https://")
    assert {p.name for p in (project / "src").iterdir()} == {"m.c", "m_flash.c", found["includes"]}
    sketch, = (project / "examples").iterdir()
    assert (sketch / f"{sketch.name}.ino").is_file(), "the main file of a sketch is named as its folder is"


def test_an_object_is_a_precompiled_library_in_the_folder_of_its_processor(tmp_path: Path) -> None:
    project = make_project(tmp_path / "m", "arduino", "int8", "--emit", "object", "--target", "rp2040")
    found = properties(project)
    assert set(found) == REQUIRED | {"includes", "precompiled", "ldflags"}
    assert found["precompiled"] == "true" and found["ldflags"] == "-ltosaic_m"
    assert (project / "src" / "cortex-m0plus" / "libtosaic_m.a").is_file() and (project / "src" / "tosaic_m.h").is_file()


@pytest.mark.sampled(2)
@needs("gcc", "g++")
@models
@forms
def test_a_sketch_is_built_with_its_library_and_runs(tmp_path: Path, model: str, form: str) -> None:
    project = make_project(tmp_path / "m", "arduino", model, *FORMS[form])
    sketch = project / "examples" / "m_example"
    main = (sketch / "m_example.ino").read_text()
    (tmp_path / "sketch.cpp").write_text(f'#include <Arduino.h>\n#line 1 "m_example.ino"\n{main}')
    core = STAND_INS / "arduino" / "core.cpp"
    built([project / "src", sketch], [*project.glob("src/*.c"), *sketch.glob("*.c")], [tmp_path / "sketch.cpp", core],
          tmp_path / "program")
    assert said(succeed(tmp_path / "program"))


# ---- two models in one firmware --------------------------------------------------------------------------------------
BOTH = """
#include "tosaic_first_example.h"
#include "tosaic_second_example.h"
static int both(void (*say)(const char *text)) { return tosaic_first_example(say) || tosaic_second_example(say); }
"""
IDF_APPLICATION = """
cmake_minimum_required(VERSION 3.16)
set(EXTRA_COMPONENT_DIRS "../components")
include($ENV{IDF_PATH}/tools/cmake/project.cmake)
project(both)
"""
ZEPHYR_APPLICATION = """
cmake_minimum_required(VERSION 3.20.0)
list(APPEND EXTRA_ZEPHYR_MODULES ${CMAKE_CURRENT_SOURCE_DIR}/../components/first
     ${CMAKE_CURRENT_SOURCE_DIR}/../components/second)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(both)
target_sources(app PRIVATE main/main.c main/tosaic_first_example.c main/tosaic_second_example.c)
"""
PRINTED = "#include <stdio.h>\nstatic void say(const char *text) { fputs(text, stdout); }\n"
IDF_MAIN = PRINTED + "void app_main(void) { both(say); }\n"
ZEPHYR_MAIN = ("#include <zephyr/sys/printk.h>\nstatic void say(const char *text) { printk(\"%s\", text); }\n"
               "int main(void) { return both(say); }\n")
BOTH_SAID = "tosaic_first: 3 calls, OK\ntosaic_second: 1 calls, OK\n"


def two_projects(folder: Path, system: str, *options: str) -> list[Path]:
    """A model of floats with variables, and one of bytes, side by side in a folder."""
    for name, model in (("first", "f32"), ("second", "int8")):
        words = ["compile", str(MODELS[model]), "-o", str(folder / name), "--name", name, "--project", system, *options]
        assert command(words) == 0
    return [folder / "first", folder / "second"]


@pytest.mark.sampled(2)
@needs("cmake", "cc")
@pytest.mark.parametrize("emit", ["c", "object"])
@pytest.mark.parametrize(("system", "lists", "main", "program"), [
    ("esp-idf", IDF_APPLICATION, IDF_MAIN, "both.elf"), ("zephyr", ZEPHYR_APPLICATION, ZEPHYR_MAIN, "app")],
    ids=["esp-idf", "zephyr"])
def test_an_application_has_two_models_as_components(tmp_path: Path, system: str, lists: str, main: str, program: str,
                                                     emit: str) -> None:
    projects, folder = two_projects(tmp_path / "components", system, *POOLS, "--emit", emit), tmp_path / "application" / "main"
    folder.mkdir(parents=True)
    for path in (p for project in projects for p in project.rglob("tosaic_*_*.[ch]")):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "main.c").write_text(BOTH + main)
    (folder / "CMakeLists.txt").write_text('idf_component_register(SRCS "main.c" "tosaic_first_example.c" '
                                           '"tosaic_second_example.c" INCLUDE_DIRS ".")\n')
    (folder.parent / "CMakeLists.txt").write_text(lists)
    (folder.parent / "prj.conf").write_text("CONFIG_TOSAIC_FIRST=y\nCONFIG_TOSAIC_SECOND=y\n")
    environment = {**os.environ, "IDF_PATH": str(STAND_INS / "esp_idf"), "ZEPHYR_BASE": str(STAND_INS / "zephyr")}
    succeed("cmake", "-S", folder.parent, "-B", "build", folder=tmp_path, environment=environment)
    succeed("cmake", "--build", "build", folder=tmp_path)
    assert succeed(tmp_path / "build" / program) == BOTH_SAID


@needs("gcc", "g++")
@pytest.mark.parametrize("system", ["platformio", "arduino"])
def test_a_program_has_two_models_as_libraries(tmp_path: Path, system: str) -> None:
    projects = two_projects(tmp_path / "libraries", system, *POOLS)
    (tmp_path / "main.cpp").write_text(f"{BOTH}{PRINTED}int main() {{ return both(say); }}\n")
    sources = [p for project in projects for p in project.rglob("*.c")]
    headers = sorted({p.parent for project in projects for p in project.rglob("*.h")})
    built(headers, sources, [tmp_path / "main.cpp"], tmp_path / "program")
    assert succeed(tmp_path / "program") == BOTH_SAID


# ---- all -------------------------------------------------------------------------------------------------------------
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("system", "compiler"), covering(2, SYSTEMS, compilers.args[1]))
def test_sources_are_compiled_without_a_warning_by_each_compiler(tmp_path: Path, system: str, compiler: str) -> None:
    project = make_project(tmp_path / "m", system, "f32", *POOLS)
    sources = [p for p in project.rglob("*.c") if p.name != "main.c"]
    folders = {f"-I{p.parent}" for p in project.rglob("*.h")}
    assert {p.name for p in sources} == {"m.c", "m_flash.c", "tosaic_m_example.c"}
    for source in sources:
        succeed(*COMPILERS[compiler], *BARE_COMPILE, *sorted(folders), source, "-o", tmp_path / "object.o")


@pytest.mark.parametrize(("system", "options", "message"), [
    ("esp-idf", ("--target", "cortex-m4"), "no chip of ESP-IDF runs an object for cortex-m4"),
    ("arduino", ("--target", "esp32-c3"), "which Arduino boards an object for generic-rv32 would be for is not known"),
    ("platformio", (), "a PlatformIO library is compiled for each board, and an object is for one processor")])
def test_an_object_that_a_system_cannot_take_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str], system: str,
                                                          options: tuple[str, ...], message: str) -> None:
    words = ["compile", str(MODELS["int8"]), "-o", str(tmp_path / "m"), "--project", system, "--emit", "object", *options]
    assert command(words) == 2
    told = capsys.readouterr().err
    assert message in told and "help: leave out --emit object, which is C source then" in told
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("system", [*SYSTEMS, "cmake", "make"])
def test_a_name_with_every_character_is_one_that_the_system_takes(tmp_path: Path, system: str) -> None:
    """A model may be called anything; no file, key or command is spelled with more than letters, digits and underscores."""
    name = "a b\"'$(rm)#ü\\{}@prefix@\n"
    tosaic.load(MODELS["int8"]).save(tmp_path / "m", name, project=system)
    text = "".join(p.read_text() for p in (tmp_path / "m").rglob("*") if p.suffix not in (".o", ".a") and p.is_file())
    assert "tosaic_a_b_rm_prefix" in text and "ü" not in text and "$(rm)" not in text
    assert all(re.fullmatch(r"[\w./-]+", str(p.relative_to(tmp_path)), re.ASCII) for p in tmp_path.rglob("*"))


@pytest.mark.parametrize(("system", "longest"), [("platformio", 50), ("arduino", 63)])
def test_a_name_that_is_too_long_for_a_system_is_a_problem(tmp_path: Path, system: str, longest: int) -> None:
    name = "n" * (longest - len("tosaic_"))
    tosaic.load(MODELS["int8"]).save(tmp_path / "fits", name, project=system)
    with pytest.raises(tosaic.Problem, match=rf"takes names of {longest}\n  help: name the model with --name"):
        tosaic.load(MODELS["int8"]).save(tmp_path / "long", name + "n", project=system)
    assert not (tmp_path / "long").exists()
