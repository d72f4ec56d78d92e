"""Sample 12: wake words on an ESP32: an ESP-IDF component and an ESPHome external component, with models as C source.

Writes both folders for the models that are named (of the package pymicro-wakeword, or a .json of microWakeWord's with its .wav
beside it, or ESPHome's vad.json), runs the component's test where there is a C compiler, and prints what the firmware needs of
flash and RAM.

    python samples/12_wake_words_on_esp32.py [FOLDER [MODEL ...]]
"""
from __future__ import annotations

import importlib.resources
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from firmware import footprint, models, recording

HERE = Path(__file__).parent
PARTS = HERE / "firmware"
BUILTIN = Path(str(importlib.resources.files("pymicro_wakeword"))) / "models"
WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
HOST_TEST = Path("test_apps") / "host" / "main"
TARGET = "esp32-s3"


def write_component(folder: Path, chosen: list[models.Model]) -> None:
    """The ESP-IDF component, with its test application."""
    shutil.copytree(PARTS / "esp_idf", folder, dirs_exist_ok=True)
    (folder / "include").mkdir(exist_ok=True)
    models.write_sources(chosen, folder, folder / "include", TARGET)
    shutil.copy(PARTS / "wake_words" / "wake_words.c", folder)
    shutil.copy(PARTS / "wake_words" / "wake_words.h", folder / "include")
    fill(folder / "CMakeLists.txt", "@SOURCES@", " ".join(f'"{model.name}.c"' for model in chosen))
    for name in ("idf_component.yml", "README.md"):
        fill(folder / name, "@WORDS@", ", ".join(model.word for model in chosen if not model.is_voice))
    shutil.copy(HERE.parent / "LICENSE", folder)


def fill(path: Path, place: str, text: str) -> None:
    path.write_text(path.read_text().replace(place, text))


def write_esphome(folder: Path, component: Path, chosen: list[models.Model]) -> None:
    """The ESPHome component, whose sources lie in one folder, with two configurations that use it."""
    shutil.copytree(PARTS / "esphome", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    inside = folder / "components" / "tosaic_wake_words"
    for path in (*component.glob("*.c"), *component.glob("include/*.h")):
        shutil.copy(path, inside)
    (inside / "models.json").write_text(json.dumps(models.description(chosen), indent=2) + "\n")


def run_host_test(component: Path, program: Path) -> None:
    """Build and run the component's test with the system's compiler."""
    compiler, main = shutil.which("cc") or shutil.which("gcc"), component / HOST_TEST
    if compiler is None:
        print(f"no C compiler here; the test is in {main}")
        return
    sources = map(str, (*sorted(component.glob("*.c")), main / "main.c"))
    subprocess.run([compiler, "-O2", *WARNINGS, f"-I{component / 'include'}", *sources, "-o", str(program)], check=True)
    print(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout, end="")


def main() -> None:
    top = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    names = sys.argv[2:] or ["okay_nabu", "alexa"]
    chosen = [models.read(Path(name) if name.endswith(".json") else BUILTIN / f"{name}.json") for name in names]
    if all(model.is_voice for model in chosen):
        raise SystemExit("name a wake word beside the model of voice activity, which hears no word")
    component = top / "esp_idf" / "wake_words"
    write_component(component, chosen)
    write_esphome(top / "esphome", component, chosen)
    words = recording.record(chosen, [sound_of(model) for model in chosen if not model.is_voice])
    for folder in (component / HOST_TEST, top / "esphome"):
        (folder / "recording.h").write_text(recording.header_text(words))
    run_host_test(component, top / "host_test")
    with tempfile.TemporaryDirectory() as other:
        components = [(component, chosen)]
        for count in (count for count in (2, 1) if count < len(chosen)):
            components.insert(0, (Path(other) / str(count), chosen[:count]))
            write_component(*components[0])
        footprint.print_table(components)


def sound_of(model: models.Model) -> Path:
    """A spoken word: of the samples, or beside the model."""
    ours = HERE / "sounds" / f"{model.config.stem}.wav"
    return ours if model.config.parent == BUILTIN else model.config.with_suffix(".wav")


if __name__ == "__main__":
    main()
