"""The rooms of the source: the order in which they import each other, the circles of imports that are left, and what each
says of itself. Imports count wherever they stand, inside functions and for type checks, too."""
from __future__ import annotations

import ast
import pathlib
from collections import defaultdict
from functools import cache

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ORDER_OF_LOWERING = ("target", "graph", "elements", "formulas", "dialects", "text", "rewrite", "flatbuffer", "bytecode",
                     "tflite", "onnx", "kernels", "fuse", "row_tiling", "loops", "schedule", "machine_code", "memory", "native",
                     "options", "fallback", "pipeline", "stage_text")
"""The rooms of lowering: each may import those before it."""
ORDER_OF_JIT = ("tracing", "calls", "source", "descriptors", "graph_tensors", "stage_data", "aot", "tools",
                "projects", "planner", "compiled", "cache", "given_options", "stages",
                "pickled_function", "kept_values", "followed", "outside", "methods", "open_compiled",
                "call_signature", "decorator", "models", "many", "op_by_op", "api", "command_line")
"""The rooms of jit, folders and files alike: `models` takes the stages, which take the tools, so that what both are told of
a model's origin is `source`, below them."""
ORDER_OF_RUNTIME = ("records", "errors", "public_names", "progress", "limits", "import_time", "deprecation", "later",
                    "garbage_collection", "perf_map", "machine_code", "interrupts", "tiles", "arena", "dlpack",
                    "foreign_arrays", "argument_copies", "quantization", "arguments", "c_symbols", "shared_library", "variable",
                    "variables", "joined_context", "threads", "executable", "python_layout", "function_object",
                    "interpreter_variables", "interpreter", "op_by_op")
"""The rooms of runtime."""
ORDERS = {"lowering": ORDER_OF_LOWERING, "jit": ORDER_OF_JIT, "runtime": ORDER_OF_RUNTIME}
CIRCLES = {
    "lowering.elements": ("affine", "expression", "traverse"),
    "lowering.graph": ("graph", "operator"),
    "lowering.fuse": ("checks", "control_flow", "fuse", "inline", "variables"),
    "lowering.dialects": ("standard.interpret", "tf.interpret", "tf_executor.interpret"),
    "lowering.rewrite.tensorflow": ("special", "translate", "variables"),
    "jit.tracing": ("arithmetic", "array_namespace", "choosing", "complex_functions", "complex_tensor", "contractions",
                    "control_flow", "conversion", "counting", "creation", "editing", "elementwise", "fft", "floats",
                    "functions", "indexing", "integers", "known_facts", "layout", "linear_algebra", "numpy_protocol", "ops",
                    "orthogonal", "padding", "polynomials", "promotion", "rearranging", "reduction", "refusals", "running",
                    "sampled", "sorting", "special", "statistics", "tensor", "trace", "ufunc_methods", "windows",
                    "without_nan"),
    "jit.op_by_op.programs": ("control", "execution", "handlers", "kernels"),
    "runtime.op_by_op": ("asynchronous", "buffer_reuse", "chain", "core", "deferred", "effects", "handle", "handler",
                         "kernel_handler", "operands", "operation", "recording", "stealing")}
"""The circles of imports, each inside one room. Data that refers to each other: an index may be computed by an expression,
whose loads have indices; an operation has an operator, whose rules look at operations. One object in several files, each of
which has one of its jobs: the fuser, the translation of a function, the traced tensor, the run of a program, the core
runtime. Three interpreters that run each other's regions."""
MOST_CIRCLES = 8
SOURCES = sorted(p for room in ("jit", "lowering", "runtime") for p in (ROOT / room).rglob("*.py"))
FOLDERS = sorted({p.parent for p in SOURCES})


def name_of(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> dict[str, set[str]]:
    """The modules that each module imports."""
    modules = {name_of(path) for path in SOURCES}
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES:
        own = name_of(path)
        package = own.split(".") if path.stem == "__init__" else own.split(".")[:-1]
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = [*package[:len(package) - node.level + 1], *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                target = whole if whole in modules else ".".join(base)
                if target in modules and target != own:
                    found[own].add(target)
    return found


def circles() -> list[set[str]]:
    """The strongly connected components of more than one module, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[set[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in imports().get(module, ()):
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            found: set[str] = set()
            while module not in found:
                found.add(stack.pop())
            if len(found) > 1:
                result.append(found)

    for module in list(imports()):
        if module not in index:
            visit(module)
    return result


@pytest.mark.parametrize("module", sorted(imports()), ids=str)
def test_a_room_imports_those_before_it(module: str) -> None:
    top, _, rest = module.partition(".")
    if not rest:
        return
    order, own = ORDERS[top], rest.split(".")[0]
    assert own in order
    rooms = {other.split(".")[1] for other in imports()[module] if other.startswith(f"{top}.")}
    assert all(order.index(room) <= order.index(own) for room in rooms), sorted(rooms)


def test_every_room_has_its_place() -> None:
    rooms = {top: {p.relative_to(ROOT / top).parts[0].removesuffix(".py") for p in SOURCES if p.is_relative_to(ROOT / top)}
             for top in ORDERS}
    assert {top: set(order) | {"__init__"} for top, order in ORDERS.items()} == rooms


def test_the_circles_of_imports_are_those_that_are_explained() -> None:
    expected = [{f"{room}.{module}" for module in modules} for room, modules in CIRCLES.items()]
    assert sorted(map(sorted, circles())) == sorted(map(sorted, expected)) and len(expected) <= MOST_CIRCLES


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_folder_says_what_it_is_for(folder: pathlib.Path) -> None:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert text and len(text.split()) >= 6
