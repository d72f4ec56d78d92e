"""The firmware of sample 12: its engine against NumPy and TensorFlow Lite's detector, its sources under compilers for chips,
its folders under the rules and, where they are installed, the tools of ESP-IDF and ESPHome."""
from __future__ import annotations

import importlib.resources
import importlib.util
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ..aot.machines import Machine
from ..aot.machines import needs as needs_machine
from ..c_source.boards import CORTEX_M4, LIBGCC, LX106

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "12_wake_words_on_esp32.py"
MODELS = ("okay_nabu", "alexa")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
CHIPS = {"xtensa": ("xtensa-lx106-elf-gcc", "-mlongcalls"), "cortex-m4": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"),
         "riscv32": ("riscv64-unknown-elf-gcc", "-march=rv32imc", "-mabi=ilp32")}

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pymicro_wakeword") is None,
                                reason="the extra `samples` is not installed")


def installed(*commands: str) -> pytest.MarkDecorator:
    missing = [command for command in commands if shutil.which(command) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both folders, for two models."""
    folder = tmp_path_factory.mktemp("firmware")
    write_firmware(folder, *MODELS)
    return folder


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both folders, with a model of voice activity that takes the first word for a voice, and no other.

    No package ships ESPHome's vad.tflite: this is the first word's model, with the scale of features of vad.tflite."""
    folder = tmp_path_factory.mktemp("guarded")
    (name, *_), source = MODELS, Path(str(importlib.resources.files("pymicro_wakeword"))) / "models"
    content, scale = (source / f"{name}.tflite").read_bytes(), struct.pack("<f", 0.10196078568696976)
    assert content.count(scale) > 1, "the features, and the same features kept from step to step"
    (folder / "vad.tflite").write_bytes(content.replace(scale, struct.pack("<f", 0.10217524319887161)))
    config = json.loads((source / f"{name}.json").read_text(encoding="utf-8"))
    config |= {"wake_word": "vad", "model": "vad.tflite"}
    config["micro"]["probability_cutoff"] = 0.5
    (folder / "vad.json").write_text(json.dumps(config), encoding="utf-8")
    write_firmware(folder, *MODELS, str(folder / "vad.json"))
    return folder


def write_firmware(folder: Path, *models: str) -> None:
    done = subprocess.run([sys.executable, str(SAMPLE), str(folder), *models], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def component(firmware: Path) -> Path:
    return firmware / "esp_idf" / "wake_words"


def run(command: list[str], folder: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def build(component: Path, program: Path, main: Path, *flags: str) -> None:
    run(["cc", *WARNINGS, *flags, f"-I{component / 'include'}", f"-I{component / 'test_apps' / 'host' / 'main'}",
         *map(str, sorted(component.glob("*.c"))), str(main), "-o", str(program)])


def heard_on_this_machine(component: Path, folder: Path) -> str:
    build(component, folder / "test", component / "test_apps/host/main/main.c", "-g", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=all")
    return run([str(folder / "test")])


@pytest.mark.sampled(4)
@installed("cc")
def test_the_words_are_heard_under_sanitizers(component: Path, tmp_path: Path) -> None:
    text = heard_on_this_machine(component, tmp_path)
    assert re.findall(r"heard (.*) in row", text) == ["Okay Nabu", "Alexa"] and ", 0 differences from Python" in text


@pytest.mark.sampled(4)
@installed("cc")
def test_a_word_without_a_voice_is_blocked_by_a_model_that_is_quantised_otherwise(guarded: Path, tmp_path: Path) -> None:
    component = guarded / "esp_idf" / "wake_words"
    text = heard_on_this_machine(component, tmp_path)
    assert re.findall(r"heard (.*) in row", text) == ["Okay Nabu"] and " 3 models, 0 differences from Python" in text
    events = (component / "test_apps/host/main/recording.h").read_text().split("recording_events")[1]
    rows = [tuple(map(int, row)) for row in re.findall(r"\{(\d+), (\d+)u, (\d+)u\}", events)]
    assert [heard for _, heard, _ in rows if heard] == [1] and {blocked for *_, blocked in rows if blocked} == {2}


@installed("cc")
@pytest.mark.parametrize("wrong", ["a byte", "the row of a word"])
def test_the_host_test_fails_where_python_differs(component: Path, tmp_path: Path, wrong: str) -> None:
    text = (component / "test_apps/host/main/recording.h").read_text()
    name = {"a byte": "recording_bytes", "the row of a word": "recording_events"}[wrong]
    before, after = text.split(name, 1)
    declared, values = after.split("=", 1)
    changed = re.sub(r"\d+", lambda match: str(int(match[0]) ^ 1), values, count=1)
    (tmp_path / "recording.h").write_text(f"{before}{name}{declared}={changed}")
    shutil.copy(component / "test_apps/host/main/main.c", tmp_path)
    build(component, tmp_path / "test", tmp_path / "main.c")
    done = subprocess.run([str(tmp_path / "test")], capture_output=True, text=True)
    assert done.returncode == 1 and re.search(r", [1-9]\d* differences from Python", done.stdout)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("chip", [pytest.param(chip, marks=installed(command[0])) for chip, command in CHIPS.items()])
@pytest.mark.parametrize("models", ["firmware", "guarded"])
def test_the_sources_compile_for_chips_and_need_little(request: pytest.FixtureRequest, tmp_path: Path, chip: str,
                                                       models: str) -> None:
    compiler, *flags = CHIPS[chip]
    component = request.getfixturevalue(models) / "esp_idf" / "wake_words"
    for source in sorted(component.glob("*.c")):
        run([compiler, *flags, *WARNINGS, "-Os", "-ffreestanding", f"-I{component / 'include'}", "-c", str(source), "-o",
             str(tmp_path / f"{source.stem}.o")])
    tools, objects = compiler.removesuffix("gcc"), sorted(map(str, tmp_path.glob("*.o")))
    run([tools + "ld", "-r", *(["-m", "elf32lriscv"] if chip == "riscv32" else []), *objects, "-o", str(tmp_path / "all.o")])
    needed = set(re.findall(r"U (\S+)", run([tools + "nm", "-u", str(tmp_path / "all.o")])))
    assert {name for name in needed if not name.startswith("__")} <= {"memcpy", "memset", "memmove"}
    assert not re.findall(r" [bBdDC] (\S+)", run([tools + "nm", str(tmp_path / "all.o")])), "nothing writable but the caller's"


ON_A_BOARD = """
#include "console.h"
#include "recording.h"
#include "wake_words.h"

static struct wake_words words;

int main(void) {
    int wrong = 0, step = 0, event = 0;
    if (wake_words_init(&words) != TOSAIC_OK) return 1;
    for (int row = 0; row < RECORDING_ROWS; ++row) {
        uint32_t heard;
        if (wake_words_feed(&words, recording_features[row], &heard) != TOSAIC_OK) return 2;
        if ((heard | words.blocked) != 0) {
            if (row != recording_events[event].row || heard != recording_events[event].heard) ++wrong;
            ++event;
        }
        for (int model = 0; model < WAKE_WORDS_COUNT; ++model)
            if (heard >> model & 1u) console_write(wake_word_models[model].name), console_write("\\n");
        if (words.rows != 0) continue;
        for (int model = 0; model < WAKE_WORDS_COUNT; ++model)
            if (words.probabilities[model] != recording_bytes[step][model]) ++wrong;
        ++step;
    }
    return wrong == 0 && event == RECORDING_EVENTS ? 0 : 3;
}
"""


@pytest.mark.parametrize("machine", [pytest.param(m, marks=needs_machine(m), id=m.name) for m in (LX106, CORTEX_M4)])
def test_the_words_are_heard_on_emulated_boards(component: Path, tmp_path: Path, machine: Machine) -> None:
    (tmp_path / "main.c").write_text(ON_A_BOARD)
    includes = [f"-I{component / 'include'}", f"-I{component / 'test_apps' / 'host' / 'main'}"]
    program = machine.build(tmp_path, [tmp_path / "main.c", *sorted(component.glob("*.c")), LIBGCC], includes)
    assert machine.run(program).splitlines() == ["Okay Nabu", "Alexa"]


@installed("cmake")
def test_the_component_is_registered_as_esp_idf_has_it(component: Path, tmp_path: Path) -> None:
    script = tmp_path / "register.cmake"
    script.write_text("function(idf_component_register)\n  cmake_parse_arguments(A \"\" \"\" \"SRCS;INCLUDE_DIRS;REQUIRES\" "
                      "${ARGN})\n  message(\"${A_SRCS}|${A_INCLUDE_DIRS}|${A_REQUIRES}|${A_UNPARSED_ARGUMENTS}\")\n"
                      "endfunction()\ninclude(${FILE})\n")

    def registered(folder: Path) -> list[list[str]]:
        command = ["cmake", f"-DFILE={folder / 'CMakeLists.txt'}", "-P", str(script)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [part.split(";") if part else [] for part in done.stderr.strip().split("|")]

    sources, includes, requires, unknown = registered(component)
    assert sorted(sources) == sorted(path.name for path in component.glob("*.c")) and includes == ["include"]
    assert requires == unknown == [] and (component / "include" / "wake_words.h").exists()
    main = component / "test_apps" / "host" / "main"
    assert registered(main) == [["main.c"], [], [component.name], []]
    project = (main.parent / "CMakeLists.txt").read_text()
    lines = ["cmake_minimum_required(", "include($ENV{IDF_PATH}/tools/cmake/project.cmake)", "project("]
    assert sorted(lines, key=project.index) == lines
    extra = re.search(r'EXTRA_COMPONENT_DIRS "(.*)"', project)
    assert extra and (main.parent / extra[1]).resolve() == component.resolve()


def test_options_and_files_are_those_that_esp_idf_names(component: Path) -> None:
    options = re.findall(r"^\s*config (\w+)", (component / "Kconfig").read_text(), re.MULTILINE)
    source = (component / "wake_words.c").read_text()
    assert options and all(name.startswith(component.name.upper()) and f"CONFIG_{name}" in source for name in options)
    manifest = (component / "idf_component.yml").read_text()
    assert all(re.search(rf"^{key}:", manifest, re.MULTILINE) for key in ("version", "description", "license", "dependencies"))
    assert (component / "README.md").exists() and (component / "LICENSE").exists()
    assert not [path for path in component.rglob("*") if path.is_file() and re.search(r"@\w+@", path.read_text())]


@installed("compote")
def test_the_component_manager_packs_it(component: Path, tmp_path: Path) -> None:
    run(["compote", "--warnings-as-errors", "component", "pack", "--project-dir", str(component), "--name", component.name,
         "--dest-dir", str(tmp_path)])
    assert list(tmp_path.glob(f"{component.name}_1.0.0*"))


def test_the_esphome_component_has_all_sources_in_one_folder(firmware: Path, component: Path) -> None:
    inside = firmware / "esphome" / "components" / "tosaic_wake_words"
    ours = {path.name for path in (*component.glob("*.c"), *component.glob("include/*.h"))}
    assert ours < {path.name for path in inside.iterdir()} and (inside / "__init__.py").exists()
    models = json.loads((inside / "models.json").read_text())
    assert [(model["name"], model["index"]) for model in models] == [("okay_nabu", 0), ("alexa", 1)]


@installed("esphome")
@pytest.mark.parametrize("configuration", ["esp32-s3.yaml", "host.yaml"])
def test_esphome_validates_and_generates(firmware: Path, configuration: str) -> None:
    folder = firmware / "esphome"
    assert "Configuration is valid" in "".join(both(["esphome", "config", configuration], folder))
    assert "Successfully generated" in "".join(both(["esphome", "compile", "--only-generate", configuration], folder))


VOICE = "vad:\n    probability_cutoff: 40%"


def with_voice(guarded: Path, folder: Path, option: str) -> Path:
    """The configuration for this machine, with an option."""
    text = (guarded / "esphome" / "host.yaml").read_text().replace("  id: words\n", f"  id: words\n  {option}\n")
    (folder / "host.yaml").write_text(text.replace("source: components", f"source: {guarded / 'esphome' / 'components'}"))
    shutil.copy(guarded / "esphome" / "recording.h", folder)
    return folder / "host.yaml"


@installed("esphome")
@pytest.mark.parametrize(("option", "cutoffs"), [
    ("models: [alexa]", {1: 229}), ("vad:", {0: 216, 1: 229, 2: 127}), (VOICE, {0: 216, 1: 229, 2: 102}),
    ("models: [{model: alexa, probability_cutoff: 29%}]\n  vad:\n    model: vad", {1: 73, 2: 127})])
def test_esphome_generates_cutoffs_as_its_own_component_rounds_them(guarded: Path, tmp_path: Path, option: str,
                                                                    cutoffs: dict[int, int]) -> None:
    both(["esphome", "compile", "--only-generate", with_voice(guarded, tmp_path, option).name], tmp_path)
    main = (tmp_path / ".esphome/build/wake-words-test/src/main.cpp").read_text()
    assert {int(model): int(cutoff) for model, cutoff in re.findall(r"use_model\((\d+), (\d+)\)", main)} == cutoffs


@installed("esphome")
@pytest.mark.parametrize(("option", "message"), [
    ("models: [hey_nobody]", "hey_nobody"), ("models: [alexa, alexa]", "listed once"),
    ("models: [{model: alexa, probability_cutoff: 200%}]", "at most 1"), ("vad:", "vad.json"),
    ("microphone: ears", "only available on")])
def test_esphome_says_what_is_wrong(firmware: Path, tmp_path: Path, option: str, message: str) -> None:
    text = (firmware / "esphome" / "host.yaml").read_text().replace("  id: words\n", f"  id: words\n  {option}\n")
    (tmp_path / "wrong.yaml").write_text(text.replace("source: components", f"source: {firmware / 'esphome' / 'components'}"))
    shutil.copy(firmware / "esphome" / "recording.h", tmp_path)
    done = subprocess.run(["esphome", "config", "wrong.yaml"], capture_output=True, text=True, cwd=tmp_path,
                          env=at_home(tmp_path))
    assert done.returncode != 0 and message in done.stdout + done.stderr


def at_home(folder: Path) -> dict[str, str]:
    """An environment in which ESPHome leaves nothing in the user's folder."""
    return {**os.environ, "HOME": str(folder), "ESPHOME_DATA_DIR": str(folder / ".esphome")}


def both(command: list[str], folder: Path) -> tuple[str, str]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=at_home(folder))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout, done.stderr


@installed("esphome", "c++")
@pytest.mark.parametrize(("option", "words"), [("", ["Okay Nabu", "Alexa"]), (VOICE, ["Okay Nabu"])], ids=["words", "voice"])
def test_the_esphome_program_hears_the_words_on_this_machine(guarded: Path, tmp_path: Path, option: str,
                                                             words: list[str]) -> None:
    both(["esphome", "compile", "--only-generate", with_voice(guarded, tmp_path, option).name], tmp_path)
    generated = tmp_path / ".esphome" / "build" / "wake-words-test"
    (settings,) = re.findall(r"build_flags =\n((?:    -.*\n)+)", (generated / "platformio.ini").read_text())
    flags = [flag for flag in settings.split() if not flag.startswith("-std")]
    objects = []
    for source in sorted(path for path in (generated / "src").rglob("*.c*") if path.suffix in (".c", ".cpp")):
        ours = "tosaic_wake_words" in source.parts
        compiler = ["cc"] if source.suffix == ".c" else ["c++", "-std=gnu++20"]
        warnings = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"] if ours else ["-w"]
        objects.append(str(tmp_path / f"{len(objects)}.o"))
        run([*compiler, *flags, *warnings, f"-I{generated / 'src'}", "-c", str(source), "-o", objects[-1]])
    run(["c++", *objects, "-lpthread", "-o", str(tmp_path / "program")])
    assert re.findall(r"^heard (.*)$", run([str(tmp_path / "program")]), re.MULTILINE) == words
