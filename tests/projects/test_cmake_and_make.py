"""Projects for CMake and make: written into an empty folder, configured, built and run by their own commands, on this machine
and for an emulated Cortex-M4; taken by other projects as a folder and as an installed package."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import tosaic
from tosaic.jit.command_line.cli import main as command

from ..aot.machines import BARE, BOARD, MACHINES
from ..models.sources import wake_word_model
from .building import DATA, SAMPLES, needs, succeed

LSTM, CLASSIFIER = (SAMPLES / "models" / f"{name}.mlir" for name in ("lstm", "classifier"))
INT8 = DATA / "corpus" / "f_mobilenet_block_int8.mlir"
POOLS = ("--workspace-pools", "fast,slow", "--workspace-pool-fast", "size=1K", "--parameter-pools", "flash")
OPTIONS = {"f32, with variables": (LSTM, ()), "int8": (INT8, ()), "C source": (INT8, ("--emit", "c")),
           "pools": (CLASSIFIER, POOLS),
           "pools, C source": (CLASSIFIER, (*POOLS, "--emit", "c")),
           "caller's state": (LSTM, ("--state", "caller", "--emit", "c")),
           "self-contained": (LSTM, ("--self-contained",)), "two threads": (CLASSIFIER, ("--threads", "2")),
           "inputs in the workspace": (CLASSIFIER, ("--workspace-io",))}
CASES = [pytest.param(*case, id=name) for name, case in OPTIONS.items()]
M4 = next(m for m in MACHINES if m.name == "cortex-m4")
on_m4 = needs("cmake", "make", M4.compiler[0], M4.runner[0])


def make_project(model: Path, folder: Path, *options: str) -> None:
    assert command(["compile", str(model), "-o", str(folder), "--name", "m", *options]) == 0


@pytest.mark.sampled(4)
@needs("cmake", "ctest", "cc")
@pytest.mark.parametrize(("model", "options"), CASES)
def test_three_commands_make_configure_build_and_run_a_cmake_project(tmp_path: Path, model: Path,
                                                                     options: tuple[str, ...]) -> None:
    make_project(model, tmp_path / "p", "--project", "cmake", *options)
    succeed("cmake", "-S", "p", "-B", "build", "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror", folder=tmp_path)
    assert " calls, OK\n" in succeed("cmake", "--build", "build", "--target", "check", folder=tmp_path)
    assert "100% tests passed, 0 tests failed out of 1" in succeed("ctest", "--test-dir", "build", folder=tmp_path)
    assert succeed(tmp_path / "build" / "m_example").startswith("tosaic_m: ")


@needs("make", "cc")
@pytest.mark.parametrize(("model", "options"), CASES[1::2])
def test_two_commands_build_and_run_a_project_for_make(tmp_path: Path, model: Path, options: tuple[str, ...]) -> None:
    make_project(model, tmp_path, "--project", "make", *options)
    succeed("make", "CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror", folder=tmp_path)
    assert succeed("make", "check", folder=tmp_path).endswith(" calls, OK\n")
    succeed("make", "install", f"DESTDIR={tmp_path / 'root'}", "PREFIX=/usr", folder=tmp_path)
    assert {p.name for p in (tmp_path / "root").rglob("*") if p.is_file()} == {"libtosaic_m.a", "tosaic_m.h"}


@needs("cmake", "make", "cc", "objdump")
@pytest.mark.parametrize("emit", ["object", "c"])
def test_pools_lie_in_the_sections_that_are_named_for_them(tmp_path: Path, emit: str) -> None:
    """By the macros that the project's page lists: constants and the example's memory to work in."""
    make_project(CLASSIFIER, tmp_path, "--project", "make", "--emit", emit, *POOLS)
    page = (tmp_path / "README.md").read_text()
    named = dict(zip(re.findall(r"`(TOSAIC_M_\w+_SECTION)`", page), (".dtcm", ".psram", ".xip"), strict=True))
    defined = " ".join(f"-D{name}={section}" for name, section in named.items())
    assert succeed("make", "check", f"CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror {defined}",
                   folder=tmp_path).endswith(" calls, OK\n")
    program = succeed("objdump", "-h", tmp_path / "build" / "m_example")
    found = {name: int(size, 16) for name, size in re.findall(r" (\.\w+) +([0-9a-f]{8}) ", program)}
    sizes = [int(size.replace(",", "")) for size in re.findall(r"\* ([\d,]+) bytes of .*_SECTION", page)]
    assert [found[section] for section in named.values()] == sizes and len(sizes) == 3


@needs("make", "cc")
def test_an_example_that_differs_ends_the_check_with_an_error(tmp_path: Path) -> None:
    make_project(INT8, tmp_path, "--project", "make")
    path = tmp_path / "example" / "tosaic_m_recorded.h"
    head, mark, rest = path.read_text().partition("_expected_")
    at = rest.index("    {") + 5
    path.write_text(head + mark + rest[:at] + "99" + rest[rest.index(",", at):])
    with pytest.raises(AssertionError, match=r"output result0\[0\] is -?\d+, expected 99\ntosaic_m: 1 calls, DIFFERENT"):
        succeed("make", "check", folder=tmp_path)


TWO = """
cmake_minimum_required(VERSION 3.16)
project(two LANGUAGES C CXX)
add_subdirectory(first)
add_subdirectory(second)
add_executable(two main.cpp)
target_link_libraries(two PRIVATE tosaic::first tosaic::second tosaic_first_example tosaic_second_example)
"""
BOTH = """
#include <cstdio>
#include "tosaic_first.h"
#include "tosaic_first_example.h"
#include "tosaic_second.h"
#include "tosaic_second_example.h"
static void say(const char *text) { std::fputs(text, stdout); }
int main() { return tosaic_first_example(say) || tosaic_second_example(say); }
"""


@needs("cmake", "cc", "c++")
def test_an_application_takes_two_projects_by_their_folders(tmp_path: Path) -> None:
    for name, model in (("first", LSTM), ("second", INT8)):
        make_project(model, tmp_path / name, "--project", "cmake", "--name", name)
    (tmp_path / "CMakeLists.txt").write_text(TWO)
    (tmp_path / "main.cpp").write_text(BOTH)
    succeed("cmake", "-B", "build", folder=tmp_path)
    succeed("cmake", "--build", "build", folder=tmp_path)
    assert succeed(tmp_path / "build" / "two") == "tosaic_first: 3 calls, OK\ntosaic_second: 1 calls, OK\n"
    built = {p.name for p in (tmp_path / "build").rglob("*_example")}
    assert not built, "examples are built that nobody has asked for"


FOUND = """
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES C)
find_package(tosaic_m 1.0 REQUIRED)
add_executable(user main.c)
target_link_libraries(user PRIVATE tosaic::m)
"""
USER = """
#include <stdio.h>
#include "tosaic_m.h"
int main(void) { return tosaic_m_reset() == TOSAIC_OK && puts("found") >= 0 ? 0 : 1; }
"""


@needs("cmake", "cc")
@pytest.mark.parametrize("emit", ["object", "c"])
def test_an_installed_project_is_found_as_a_package(tmp_path: Path, emit: str) -> None:
    make_project(LSTM, tmp_path / "p", "--project", "cmake", "--emit", emit)
    succeed("cmake", "-S", "p", "-B", "build", folder=tmp_path)
    succeed("cmake", "--build", "build", folder=tmp_path)
    succeed("cmake", "--install", "build", "--prefix", "installed", folder=tmp_path)
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "CMakeLists.txt").write_text(FOUND)
    (tmp_path / "user" / "main.c").write_text(USER)
    (tmp_path / "p").rename(tmp_path / "elsewhere")
    succeed("cmake", "-S", "user", "-B", "user/build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'installed'}", folder=tmp_path)
    succeed("cmake", "--build", "user/build", folder=tmp_path)
    assert succeed(tmp_path / "user" / "build" / "user") == "found\n"


BOARD_MAIN = """
#include "console.h"
#include "tosaic_m_example.h"
int main(void) { return tosaic_m_example(console_write) != 0; }
"""
LINKED = ("-nostdlib", f"-L{BOARD}", "-T", f"{BOARD / 'cortex_m4.ld'}", "-Wl,-z,noexecstack")
ALONE = " ".join(flag for flag in BARE if flag.startswith("-f"))
FIRMWARE = f"""
cmake_minimum_required(VERSION 3.16)
project(firmware LANGUAGES C)
add_compile_options({ALONE.replace(" ", ";")})
add_subdirectory(p)
add_executable(firmware main.c {BOARD / 'cortex_m.c'})
target_include_directories(firmware PRIVATE {SAMPLES / 'use_cases'})
target_link_libraries(firmware PRIVATE tosaic_m_example gcc)
target_link_options(firmware PRIVATE {" ".join(LINKED)})
"""
CROSS = [pytest.param(*OPTIONS[name], id=name) for name in ("f32, with variables", "int8", "pools", "pools, C source",
                                                            "caller's state")]
"""By turns for CMake and for make."""


@on_m4
@pytest.mark.parametrize(("model", "options"), CROSS[::2])
def test_a_cmake_project_is_built_for_a_cortex_m4_and_runs(tmp_path: Path, model: Path, options: tuple[str, ...]) -> None:
    """By its own toolchain file; the firmware brings the board's start and its console."""
    make_project(model, tmp_path / "p", "--project", "cmake", "--target", "thumbv7em", *options)
    succeed("cmake", "-S", "p", "-B", "alone", f"-DCMAKE_TOOLCHAIN_FILE={tmp_path / 'p' / 'toolchain.cmake'}", folder=tmp_path)
    succeed("cmake", "--build", "alone", folder=tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(FIRMWARE)
    (tmp_path / "main.c").write_text(BOARD_MAIN)
    succeed("cmake", "-B", "build", "-DCMAKE_TOOLCHAIN_FILE=p/toolchain.cmake", folder=tmp_path)
    succeed("cmake", "--build", "build", folder=tmp_path)
    assert M4.run(tmp_path / "build" / "firmware").endswith(" calls, OK\n")


@on_m4
@pytest.mark.parametrize(("model", "options"), CROSS[1::2])
def test_a_project_for_make_is_built_for_a_cortex_m4_and_runs(tmp_path: Path, model: Path, options: tuple[str, ...]) -> None:
    make_project(model, tmp_path, "--project", "make", "--target", "thumbv7em", *options)
    (tmp_path / "board_main.c").write_text(BOARD_MAIN)
    succeed("make", folder=tmp_path)
    told = succeed("make", "check", "MAIN=board_main.c", f"BOARD={BOARD / 'cortex_m.c'}", f"RUN={' '.join(M4.runner)}",
                   "LDLIBS=-lgcc", f"CFLAGS=-O1 {ALONE} -I{SAMPLES / 'use_cases'}", f"LDFLAGS={' '.join(LINKED)}",
                   folder=tmp_path)
    assert told.endswith(" calls, OK\n")


@needs("make", "aarch64-linux-gnu-gcc", "qemu-aarch64")
def test_a_project_for_another_processor_with_linux_is_checked_under_an_emulator(tmp_path: Path) -> None:
    make_project(INT8, tmp_path, "--project", "make", "--target", "cortex-a53")
    told = succeed("make", "check", "LDFLAGS=-static", "RUN=qemu-aarch64", folder=tmp_path)
    assert told.endswith("tosaic_m: 1 calls, OK\n")


@pytest.mark.sampled(2)
@needs("make", "riscv64-unknown-elf-gcc")
@pytest.mark.parametrize("target", ["esp32-c3", "esp32-p4", "rp2350-riscv", "cortex-m0plus", "cortex-m33+nofp", "stm32h7"])
def test_a_library_is_built_for_each_processor_by_its_compiler(tmp_path: Path, target: str) -> None:
    if not target.startswith(("esp32", "rp2350")) and needs("arm-none-eabi-gcc").args[0]:
        pytest.skip("not installed: arm-none-eabi-gcc")
    make_project(CLASSIFIER, tmp_path, "--project", "make", "--target", target, *POOLS)
    succeed("make", f"CFLAGS=-Os {ALONE}", folder=tmp_path)
    assert (tmp_path / "build" / "libtosaic_m.a").stat().st_size > 10_000


@needs("make", "cc")
def test_a_wake_word_is_checked_with_three_steps_and_as_many_as_one_asks_for(tmp_path: Path) -> None:
    pytest.importorskip("pymicro_wakeword")
    pytest.importorskip("tosa_converter_for_tflite")
    (tmp_path / "word.tflite").write_bytes(wake_word_model("okay_nabu"))
    np.save(tmp_path / "x.npy", np.random.default_rng(1).integers(-128, 128, (1, 3, 40)).astype(np.int8))
    for name, options, calls in (("a", (), 3), ("b", ("--calls", "20"), 20), ("c", ("--input", str(tmp_path / "x.npy")), 3)):
        make_project(tmp_path / "word.tflite", tmp_path / name, "--project", "make", *options)
        assert succeed("make", "check", folder=tmp_path / name).endswith(f"tosaic_m: {calls} calls, OK\n")
    assert tosaic.load(tmp_path / "word.tflite").main.inputs[0].shape == (1, 3, 40)
