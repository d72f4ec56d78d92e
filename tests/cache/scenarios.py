"""What the tests of the cache do in processes of their own: each function here gives answers that a process with a full cache
must give, too. Run with the functions' names; prints JSON."""
from __future__ import annotations

import copy
import hashlib
import importlib.util
import io
import json
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import tosaic
from models import ADD, OPEN, SEVERAL, product  # type: ignore[import-not-found]

Answers = dict[str, Any]
ROOT = Path(__file__).parents[2]
X = np.array([1, -1, 2], np.float32)


def written(name: str, text: str) -> str:
    """A model file, which both processes write alike."""
    Path(name).write_text(text)
    return name


# ---- without parsing, lowering or LLVM in a second process -----------------------------------------------------------
def call() -> Answers:
    model, x = tosaic.load(written("add.mlir", ADD)), np.ones(4, np.float32)
    return {"first": model(x), "again": model(x * 2), "entry": model.main(x)}


def weights() -> Answers:
    a = np.arange(9 * 64, dtype=np.float32).reshape(1, 9, 64) % 13 / 97
    return {"bits": tosaic.load(written("product.mlir", product(9)))(a).view(np.int32)}


def sources() -> Answers:
    x = np.zeros(4, np.float32)
    data = ADD.encode()
    return {"text": tosaic.load(ADD)(x), "bytes": tosaic.load(data)(x), "file": tosaic.load(io.BytesIO(data))(x)}


def state() -> Answers:
    model, x = tosaic.load(written("several.mlir", SEVERAL)), np.ones(2, np.float32)
    model.count(x)
    return {"total": model.count(x), "kept": tosaic.default_context.read("cache.total"),
            "names": [v.name for v in tosaic.default_context.list()], "own": model.count(x, context=tosaic.Context("own"))}


ENDLESS = """func.func @main(%x: tensor<i32>, %c: tensor<i1>) -> tensor<i32> {
  %0 = tosa.while_loop (%y = %x) : (tensor<i32>) -> tensor<i32> {
    tosa.yield %c : tensor<i1>
  } do {
  ^bb0(%z: tensor<i32>):
    tosa.yield %z : tensor<i32>
  }
  return %0 : tensor<i32> }"""


def interrupted() -> Answers:
    model, x = tosaic.load(written("endless.mlir", ENDLESS)), np.array(3, np.int32)
    before = model(x, np.array(False))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        model(x, np.array(True))
    except KeyboardInterrupt:
        return {"before": before, "after": model(x, np.array(False))}
    return {}


def entries() -> Answers:
    model = tosaic.load(written("several.mlir", SEVERAL))
    e, a = model["both"](np.array([0, -2], np.float32))
    out = np.empty(2, np.float32), np.empty(2, np.float32)
    again = model.both({"x": np.array([0, -3], np.float32)}, out=out)
    return {"names": [entry.name for entry in model], "e": e, "a": a, "out": out[1], "is_out": again[1] is out[1],
            "is_dynamic": model.both.is_dynamic, "is_listed": "both" in dir(model), "length": len(model)}


def wrong_arguments() -> Answers:
    model = tosaic.load(written("add.mlir", ADD))
    wrong = (np.zeros(5, np.float32), np.zeros(4), [1, 2], "four")
    return {"messages": [message(lambda w=w: model(w)) for w in wrong]}  # type: ignore[misc]


def open_extents() -> Answers:
    model, x = tosaic.load(written("open.mlir", OPEN)), np.ones((2, 3), np.float32)
    special = model.main.specialize({"x": (2, 3), "y": (2, 3)})
    return {"called": model(x, x), "special": special(x, x), "is_dynamic": [model.main.is_dynamic, special.is_dynamic]}


def signatures() -> Answers:
    """Only run where Arm's converter is: not among those that all processes run."""
    path = Path(__file__).parents[1] / "data" / "corpus" / "v_counter_three_functions.tflite"
    model, other = tosaic.from_tflite(path), tosaic.load(path.read_bytes())
    added = model.add({"d": np.ones(3, np.float32)})
    needed = [n for n in ("tosaic.jit.models.tflite.from_tflite", "tosaic.lowering.tflite.decode", "importlib.metadata")
              if n in sys.modules]
    return {"added": added, "got": model.get(), "reset": model["reset"](), "again": other.get(),
            "names": [e.name for e in model], "loaded": needed}


# ---- without LLVM, at least ------------------------------------------------------------------------------------------
def memories() -> Answers:
    memory = tosaic.Memory(pools=(tosaic.Pool("fast", 64), tosaic.Pool("slow")), alignment=16)
    compiled = tosaic.load(written("add.mlir", ADD)).main.compile(tosaic.target("x86-64"), tosaic.Context("c"), memory)
    return {"y": compiled(np.zeros(4, np.float32))}


def traced() -> Answers:
    from tosaic import ops
    total = tosaic.Variable("cache.jit", initial=np.zeros(3, np.float32))

    @tosaic.jit
    def step(x: Any, scale: Any) -> Any:
        total.write(total.read() + ops.maximum(x, 0) * scale)
        return {"total": total.read(), "pair": (x * 2, scale)}

    step(X, 2.0)
    found = step(X, 2.0)
    return {"total": found["total"], "pair": list(map(plain, found["pair"])), "compiles": step.cache_info().compiles}


def fault_of_a_model() -> Answers:
    return {"text": message(lambda: tosaic.load(written("several.mlir", SEVERAL)).fails(np.ones(2, np.float32)))}


def fault_of_a_function() -> Answers:
    unset = tosaic.Variable("cache.unset_too", shape=(3,), dtype="f32")

    @tosaic.jit
    def fails(x: Any) -> Any:
        return unset.read() + x

    return {"text": message(lambda: fails(X))}


def checks_of_a_function() -> Answers:
    @tosaic.jit
    def checked(x: Any) -> Any:
        tosaic.check(x[0] > 0, "the first is not above 0")
        tosaic.check(x[1] > 0, "the second is not above 0")
        return x + 1.0

    def on(*numbers: int) -> Any:
        return checked(np.array(numbers, np.float32))

    return {"answer": on(1, 2), "first": message(lambda: on(0, 2)), "second": message(lambda: on(1, 0)),
            "both": message(lambda: on(0, 0))}


def check_of_a_model() -> Answers:
    text = """func.func @main(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  "tosaic.assert"(%c) <{message = "c is false"}> : (tensor<i1>) -> ()
  return %x : tensor<2xf32>
}
"""
    main = tosaic.load(written("checked.mlir", text)).main
    x = np.ones(2, np.float32)
    return {"y": main(np.array(True), x), "text": message(lambda: main(np.array(False), x))}


def wrong_shapes() -> Answers:
    return {"text": message(lambda: tosaic.load(written("open.mlir", OPEN)).main.specialize({"z": (2, 3)}))}


def stages() -> Answers:
    compiled = tosaic.load(written("add.mlir", ADD)).main.compile()
    return {"kernels": compiled.show("kernels"), "arena": compiled.report().arena, "name": compiled.name,
            "is_same": compiled.lowered is compiled.lowered, "inputs": compiled.inputs, "outputs": compiled.outputs,
            "repr": repr(compiled)}


def model_text() -> Answers:
    model = tosaic.load(written("several.mlir", SEVERAL))
    return {"text": model.show(), "inputs": model.both.inputs, "outputs": model.both.outputs, "repr": repr(model)}


def copies() -> Answers:
    """What a user has, through pickle, `copy.copy` and `copy.deepcopy`: those that do not come through, and why."""
    context, x = tosaic.Context("here"), np.ones(2, np.float32)
    model = tosaic.load(written("several.mlir", SEVERAL), context=context)
    entry, step = model.count, tosaic.jit(lambda x: x + 1)
    entry(x)
    step(x)
    compiled = entry.compile()
    total = tosaic.Variable("cache.copied", initial=np.zeros(2, np.float32))
    added = tosaic.jit(lambda x: (total.write(total.read() + x), total.read())[1])
    added(x)
    objects = {
        "model": model, "entry": entry, "compiled": compiled, "bound": compiled.bind(tosaic.Context("b")),
        "executable": compiled.executable, "context": context, "state": context.state(), "snapshot": context.snapshot(),
        "state of the process": tosaic.default_context.state(), "status": context.list(), "inputs": entry.inputs,
        "variables": entry.variables, "constants": entry.constants, "tensors": entry.tensors,
        "declarations": compiled.variables,
        "problem": problem_of(lambda: model.fails(x)), "signatures": step.cache_info(), "code of a function": step.compile(x),
        "traced": entry.trace(), "lowered": compiled.lowered, "report": compiled.report(), "check": entry.check([[x]]),
        "function's graph": step.trace(x), "variable": total, "options": tosaic.CompileOptions(threads=1),
        "limits": tosaic.Limits(nodes=9), "target": tosaic.target("cortex-m7"), "spec": tosaic.TensorSpec((2, 4))}
    state = pickle.loads(pickle.dumps(context.state()))
    return {"failed": {name: fault for name, value in objects.items() if (fault := fault_of_copies(value))},
            "value": tosaic.Context.from_state(state).read("cache.total"),
            "problem": str(pickle.loads(pickle.dumps(objects["problem"]))), "has text": b"func.func" in pickle.dumps(state)}


def fault_of_copies(value: Any) -> str | None:
    try:
        pickle.loads(pickle.dumps(value))
        copy.copy(value)
        copy.deepcopy(value)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def models() -> Answers:
    """Calls of all models of the repository that need no converter, and of a .tflite with state where that is."""
    return {path.name: digest_of_calls(tosaic.load(path, context=tosaic.Context(path.name))) for path in model_files()}


def model_files() -> list[Path]:
    folders = [ROOT / "tests/data/corpus", ROOT / "samples/models"]
    endings = ["*.mlir", *["[mv]_*.tflite"] * (importlib.util.find_spec("tosa_converter_for_tflite") is not None)]
    found = [path for folder in folders for ending in endings for path in sorted(folder.glob(ending))]
    return [p for p in found if p.name != "op_by_op.mlir"]  # a program, and no model


def digest_of_calls(model: Any) -> str:
    """What two calls of each entry give, and the state after them."""
    found, context = hashlib.sha256(), tosaic.Context("calls")
    for entry in model:
        for number in (1, 2):
            arrays = [np.full([n or 2 for n in t.shape], number, t.dtype) for t in entry.inputs]
            results = entry(*arrays, context=context)
            for array in results if isinstance(results, tuple) else (results,):
                found.update(array.tobytes())
    for name, value in sorted(context.snapshot().items()):
        found.update(name.encode() + (b"" if value is None else value.tobytes()))
    return found.hexdigest()


# ---- not run by default ----------------------------------------------------------------------------------------------
def other_shapes() -> Answers:
    x = np.ones((5, 3), np.float32)
    return {"y": tosaic.load(written("open.mlir", OPEN))(x, x)}


def own_algorithm() -> Answers:
    from tosaic.lowering.memory.algorithms.run import greedy_by_size
    memory = tosaic.Memory(algorithm=lambda buffers, pools: greedy_by_size(buffers, pools))
    return {"y": tosaic.load(ADD).main.compile(memory=memory)(np.zeros(4, np.float32))}


def own_operator() -> Answers:
    @tosaic.custom("cache", "twice")
    class Twice(tosaic.Op):
        def infer(self, x: Any) -> Any: return x.type
        def element(self, out: Any, x: Any) -> Any: return lambda *index: x[index] * 2.0

    use = 'tosa.custom %x {operator_name = "twice", domain_name = "cache", implementation_attrs = ""} :'
    lines = ("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {", f"  %y = {use} (tensor<2xf32>) -> tensor<2xf32>",
             "  return %y : tensor<2xf32>", "}")
    return {"y": tosaic.load("\n".join(lines))(np.ones(2, np.float32))}


def own_operator_in_tosa_s_place() -> Answers:
    from tosaic.lowering.dialects import tosa as _  # noqa: F401  fills the table
    from tosaic.lowering.graph.operator import OPERATORS

    class Add(OPERATORS["tosa.add"], name="tosa.add"):  # type: ignore[misc, call-arg]
        def element(self, out: Any, *operands: Any) -> Any:
            inner = super().element(out, *operands)
            return lambda *index: inner(*index) + 100.0

    return call()


def digests() -> Answers:
    from tosaic.jit.cache.graph_digest import graph_digest
    texts = (ADD, SEVERAL, OPEN)
    return {"digests": [graph_digest(tosaic.load(text).module) for text in texts],
            "files": sorted(p.name for p in Path("cache").iterdir())}


QUICK = (call, weights, sources, state, entries, wrong_arguments, open_extents, interrupted)
AGAIN = (memories, traced, fault_of_a_model, fault_of_a_function, check_of_a_model, checks_of_a_function,
         wrong_shapes, model_text, stages, copies)


# ---- running ---------------------------------------------------------------------------------------------------------
def message(wrong: Callable[[], object]) -> str:
    """The text of the problem that a call ends in."""
    return str(problem_of(wrong))


def problem_of(wrong: Callable[[], object]) -> tosaic.Problem:
    """The problem that a call ends in."""
    try:
        wrong()
    except tosaic.Problem as problem:
        return problem
    raise AssertionError("no problem")


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def loaded() -> list[str]:
    """What a process with a full cache does not need."""
    return [name for name in ("llvmlite", "lark", "tosaic.lowering.fuse.fuse", "tosaic.lowering.graph.graph")
            if name in sys.modules]


def main() -> None:
    chosen = [globals()[name] for name in sys.argv[1:]] or [*QUICK, *AGAIN]
    found: dict[str, Any] = {}
    for scenario in chosen:
        found[scenario.__name__] = {name: plain(value) for name, value in scenario().items()}
        found[f"{scenario.__name__} loaded"] = loaded()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
