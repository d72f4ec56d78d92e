"""What `import tosaic` offers first: `jit`, `load`, `compile`. Kept cheap: the compiler is imported when it is used."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from ..runtime.public_names import public
from ..runtime.variables import checked_context

if TYPE_CHECKING:
    from ..lowering.memory.planner import PlanOptions
    from ..lowering.target.target import Target
    from ..runtime.variables import Context
    from .compiled import Compiled
    from .decorator import Jit
    from .models.model import Model

IMPORTED = time.time()
"""When this process began to import tosaic: sources that are newer may be others than those that run."""


@overload
def jit(function: Callable[..., Any]) -> Jit: ...


@overload
def jit(*, static: str | int | Iterable[str | int] = (), static_argnums: int | Iterable[int] = (),
        target: Target | None = None, context: Context | None = None, memory: PlanOptions | None = None,
        num_threads: int | None = None, precision: str | None = None) -> Callable[[Callable[..., Any]], Jit]: ...


@public("tosaic.jit")
def jit(function: Callable[..., Any] | None = None, *, static: str | int | Iterable[str | int] = (),
        static_argnums: int | Iterable[int] = (), target: Target | None = None, context: Context | None = None,
        memory: PlanOptions | None = None, num_threads: int | None = None, precision: str | None = None) -> Any:
    """Compile a Python function of tensors, once for every signature that it is called with.

        @tosaic.jit
        def step(x): ...

        @tosaic.jit(static=("n",))
        def power(x, n): ...

    `static` names (or numbers) parameters whose values Python needs; `target` is another machine to compile for,
    `context` the namespace of the variables that the function uses (a `tosaic.Context`; without it, the process), `memory` the
    memories that it works in. A call may use `num_threads` threads (without it, as many as `set_num_threads` says), if it has
    work enough for them.

    `precision` is that of matrix products and convolutions of f32. "f32", the default, adds exact products, each sum rounded.
    "bf16x6" adds products of bfloat16 parts on a matrix unit (AMX), where there is one and that is faster: a sum of K terms is
    within (17 + 6.2 ceil(K / 32)) 2^-24 of the sum of |a b|, f32 within K 2^-24; rows with values that are subnormal, nearly
    infinite, infinite or NaN are computed in f32. "bf16x3" is faster still, within (528 + 3.1 ceil(K / 32)) 2^-24.
    `tosaic show schedule` says what takes it.
    """
    from .decorator import Jit
    memory = with_options(memory, num_threads, precision)
    chosen = [*each(static), *each(static_argnums)]
    if function is not None:
        return Jit(function, chosen, target, context, memory)
    return lambda f: Jit(f, chosen, target, context, memory)


def each(values: Any) -> list[Any]:
    return [values] if isinstance(values, str | int) else list(values)


def with_options(memory: PlanOptions | None, number: int | None, precision: str | None) -> PlanOptions | None:
    """The options with a number of threads and a precision, where they are given."""
    if number is None and precision is None:
        return memory
    from ..lowering.memory.planner import with_precision, with_threads
    return with_precision(with_threads(memory, number), precision)


@public("tosaic.load")
def load(source: Any, name: str | None = None, *, variables: Mapping[str, Any] | None = None,
         context: Context | None = None, level: str = "none") -> Model:
    """A model: a path, an open binary file, bytes, or MLIR text. What it is shows in its bytes: MLIR text (TOSA, or
    TensorFlow's dialects), .tosa or .tflite.

    Its entry functions are attributes and items: `tosaic.load("m.mlir").main`. `variables` are for TensorFlow's texts, which
    leave open what an argument that is a handle of a variable stands for: a name for each argument, and the first values by
    the variables' names: `{"arg1": "count", "count": np.int32(0)}`. Raises a Problem with the place for anything that is wrong
    in it.

    Variables belong to the process, by their names, so that models share those that they call the same; or to `context`, a
    `tosaic.Context`, which keeps them apart from other contexts'. A call may name another one: `model.main(x, context=c)`.

    `level="8K"` refuses a graph that is beyond a limit of TOSA's level 8K: rank 6, kernels, pads and strides of 8192, a scale
    of 256, 64 tensors in a list, 16 extents in a shape. Without a level none of these holds; control flow nested 6 deep and a
    tensor of 2^31 - 1 bytes are the limits with and without.
    """
    from .models.model import at_level, load_model
    checked_context(context)  # before a long file is read
    if variables is None:
        return at_level(load_model(source, name), level).within(context)
    from .models.tensorflow.graph_entries import bindings_of
    return at_level(load_model(source, name, bindings_of(variables)), level).within(context)


@public("tosaic.from_tflite")
def from_tflite(source: Any, name: str | None = None, *, context: Context | None = None) -> Model:
    """The model of a .tflite: a path, an open binary file, or bytes. `load` of such a file is the same.

    Its entry functions are the file's signatures by their names, or `main` where there are none; inputs are called what the
    signature calls them, and come in the order of the file. Variables belong to the process (or to `context`, or to that of the
    call), by their names in the file, so that all signatures share them. What TOSA's operators are needed for comes from Arm's
    converter (the extra `tflite`). Raises a Problem at the operator that is wrong or not supported.
    """
    from .models.model import load_tflite
    checked_context(context)
    return load_tflite(source, name).within(context)


@public("tosaic.compile")
def compile(source: Any, *arguments: Any, entry: str | None = None, target: Target | None = None,
            context: Context | None = None, memory: PlanOptions | None = None, num_threads: int | None = None,
            precision: str | None = None) -> Compiled:
    """Compile a model (as `load` takes it), or a Python function for these arguments; options are those of `jit`."""
    memory = with_options(memory, num_threads, precision)
    checked_context(context)
    if callable(source):
        compiled: Compiled = jit(target=target, context=context, memory=memory)(source).compile(*arguments)
        return compiled
    return load(source).entry(entry).compile(target, context, memory)
