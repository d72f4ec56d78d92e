"""Flash and RAM of a component, as compilers for chips count them, beside what TensorFlow Lite Micro needs for the same models.

Flash is code and constants, RAM the one structure that holds everything. Of TensorFlow Lite Micro stand here the model files,
and the arenas that the models' .json files ask for, each with the kilobyte for variables of ESPHome's micro_wake_word.
"""
from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .models import Model

COMPILERS = {"Xtensa LX106": ["xtensa-lx106-elf-gcc", "-mlongcalls"],
             "Cortex-M4": ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"]}
FLAGS = ["-Os", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-ffreestanding"]
VARIABLE_ARENA = 1024


@dataclass(frozen=True)
class Footprint:
    """Bytes: `flash` of all sources, `ram` of `struct wake_words` and of whatever else is writable."""
    flash: int
    ram: int


def measure(component: Path, compiler: list[str]) -> Footprint:
    """The sizes of the component's sections, and of one `struct wake_words`."""
    with tempfile.TemporaryDirectory() as folder:
        instance = Path(folder) / "instance.c"
        instance.write_text('#include "wake_words.h"\nstruct wake_words wake_words_instance;\n')
        command, objects = [*compiler, *FLAGS, f"-I{component / 'include'}", "-c"], []
        for source in (*sorted(component.glob("*.c")), instance):
            objects.append(Path(folder) / f"{source.stem}.o")
            subprocess.run([*command, str(source), "-o", str(objects[-1])], check=True)
        size = compiler[0].removesuffix("gcc") + "size"
        lines = subprocess.run([size, *map(str, objects)], check=True, capture_output=True, text=True).stdout.splitlines()[1:]
    text, data, bss = (sum(int(line.split()[column]) for line in lines) for column in range(3))
    return Footprint(text + data, data + bss)


def row(label: str, cells: list[str]) -> str:
    return f"| {' | '.join([label, *cells])} |"


def print_table(components: list[tuple[Path, list[Model]]]) -> None:
    """A row for each compiler that is installed here, and one for TensorFlow Lite Micro; a column for each component."""
    print(row("flash / RAM in bytes", ["1 model" if len(models) == 1 else f"{len(models)} models" for _, models in components]))
    print("|---" * (1 + len(components)) + "|")
    for name, compiler in COMPILERS.items():
        if shutil.which(compiler[0]) is None:
            print(row(f"{name}: {compiler[0]} is not installed", ["-"] * len(components)))
            continue
        footprints = [measure(component, compiler) for component, _ in components]
        print(row(name, [f"{found.flash:,} / {found.ram:,}" for found in footprints]))
    print(row("TFLite Micro, without its code", [beside(models) for _, models in components]))


def beside(models: list[Model]) -> str:
    arenas = [json.loads(model.config.read_text(encoding="utf-8"))["micro"]["tensor_arena_size"] for model in models]
    return f"{sum(model.path.stat().st_size for model in models):,} / {sum(arenas) + VARIABLE_ARENA * len(models):,}"
