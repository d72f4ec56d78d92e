"""Code and memory of TensorFlow Lite Micro for the wake-word models, compiled with the compilers that sample 12 compiles with.

    python tests/bench/tflite_micro_firmware.py CHECKOUT [FLAG ...]

CHECKOUT is tensorflow/tflite-micro after `make -f tensorflow/lite/micro/tools/make/Makefile third_party_downloads`; flags go to
the compilers (-isystem, where C++ headers lie elsewhere; FLAGS_ARM and FLAGS_XTENSA are for one of them). Prints the bytes of
its own code and constants, with the 20 operators that ESPHome's micro_wake_word registers, their reference kernels, -Os, and
without the C and C++ libraries.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMPILERS = {"Xtensa LX106": ["xtensa-lx106-elf-g++", "-mlongcalls", "-mtext-section-literals"],
             "Cortex-M4": ["arm-none-eabi-g++", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard"]}
FLAGS = ["-std=c++17", "-Os", "-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-ffunction-sections",
         "-fdata-sections", "-DNDEBUG", "-DTF_LITE_STATIC_MEMORY", "-DTF_LITE_STRIP_ERROR_STRINGS", "-w"]
FOLDERS = ("compiler/mlir/lite/core/api", "compiler/mlir/lite/schema", "lite", "lite/core/api", "lite/core/c", "lite/kernels",
           "lite/kernels/internal", "lite/kernels/internal/reference", "lite/micro", "lite/micro/arena_allocator",
           "lite/micro/memory_planner", "lite/micro/tflite_bridge")
KERNELS = ["kernel_util", "micro_tensor_utils", "call_once", "var_handle", "reshape", "reshape_common", "read_variable",
           "strided_slice", "strided_slice_common", "concatenation", "assign_variable", "conv", "conv_common", "mul",
           "mul_common", "add", "add_common", "reduce", "reduce_common", "fully_connected", "fully_connected_common",
           "logistic", "logistic_common", "quantize", "quantize_common", "depthwise_conv", "depthwise_conv_common",
           "pooling", "pooling_common", "pad", "pad_common", "pack", "split_v"]
OPERATORS = ["CallOnce", "VarHandle", "Reshape", "ReadVariable", "StridedSlice", "Concatenation", "AssignVariable", "Conv2D",
             "Mul", "Add", "Mean", "FullyConnected", "Logistic", "Quantize", "DepthwiseConv2D", "AveragePool2D", "MaxPool2D",
             "Pad", "Pack", "SplitV"]
PROGRAM = """
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
extern const unsigned char model[];
alignas(16) static unsigned char arena[65536], variables[1024];
extern "C" int main() {
  static tflite::MicroMutableOpResolver<20> resolver;
  {ADD}
  auto *allocator = tflite::MicroAllocator::Create(variables, sizeof variables);
  auto *resources = tflite::MicroResourceVariables::Create(allocator, 20);
  static tflite::MicroInterpreter interpreter(tflite::GetModel(model), resolver, arena, sizeof arena, resources);
  if (interpreter.AllocateTensors() + interpreter.Invoke() != 0) return -1;
  return interpreter.arena_used_bytes() + interpreter.input(0)->data.uint8[0] + interpreter.output(0)->data.uint8[0];
}
"""


def sources(checkout: Path) -> list[Path]:
    """What a program with these operators may need; the linker leaves out what it does not."""
    found = [path for folder in FOLDERS for path in sorted((checkout / "tensorflow" / folder).glob("*.cc"))
             if not any(word in path.name for word in ("_test", "fake_", "mock_", "test_helper", "hexdump"))]
    return found + [checkout / "tensorflow/lite/micro/kernels" / f"{kernel}.cc" for kernel in KERNELS]


def code_bytes(checkout: Path, compiler: list[str], flags: list[str]) -> int:
    """Code and constants that are left when nothing but the program is asked for, without the program's own."""
    downloads, tools = checkout / "tensorflow/lite/micro/tools/make/downloads", compiler[0].removesuffix("g++")
    includes = [f"-I{checkout}", *(f"-I{downloads / name}" for name in ("flatbuffers/include", "gemmlowp", "ruy"))]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.cc"
        program.write_text(PROGRAM.replace("{ADD}", " ".join(f"resolver.Add{name}();" for name in OPERATORS)))
        objects = []
        for number, source in enumerate([program, *sources(checkout)]):
            objects.append(f"{folder}/{number}.o")
            subprocess.run([*compiler, *FLAGS, *flags, *includes, "-c", str(source), "-o", objects[-1]], check=True)
        whole = f"{folder}/whole.o"
        subprocess.run([tools + "ld", "-r", "--gc-sections", "-u", "main", "-e", "main", *objects, "-o", whole], check=True)
        return size(tools, whole) - size(tools, objects[0])


def size(tools: str, path: str) -> int:
    lines = subprocess.run([tools + "size", path], check=True, capture_output=True, text=True).stdout.splitlines()
    return sum(map(int, lines[1].split()[:2]))


def main() -> None:
    checkout, flags = Path(sys.argv[1]), sys.argv[2:]
    for name, compiler in COMPILERS.items():
        if shutil.which(compiler[0]) is None:
            print(f"{name}: {compiler[0]} is not installed")
            continue
        chosen = [*flags, *os.environ.get(f"FLAGS_{compiler[0].split('-')[0].upper()}", "").split()]
        print(f"{name}: {code_bytes(checkout, compiler, chosen):,} bytes")


if __name__ == "__main__":
    main()
