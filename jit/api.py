"""The first names that `import tosaic` offers: `jit`, `load`, `compile`. To keep them cheap, NumPy and the compiler are
imported on first use, so that `tosaic --help` waits for neither."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from ..runtime.garbage_collection import seldom_collecting
from ..runtime.public_names import public
from .given_options import given

if TYPE_CHECKING:
    from ..lowering.memory.planner import Memory
    from ..lowering.options import CompileOptions
    from ..lowering.target.target import Target
    from ..runtime.limits import Limits
    from ..runtime.variables import Context
    from .compiled import Compiled
    from .decorator import Jit
    from .models.entry import Entry
    from .models.model import Model
    from .stages import Lowered

Given = ParamSpec("Given")
Result = TypeVar("Result")


@overload
def jit(function: Callable[Given, Result], *, static: str | int | Iterable[str | int] = (),
        static_argnums: int | Iterable[int] = (), options: CompileOptions | None = None, context: Context | None = None,
        target: Target | None = None, memory: Memory | None = None, num_threads: int | None = None, precision: str | None = None
        ) -> Jit[Given, Result]: ...


@overload
def jit(*, static: str | int | Iterable[str | int] = (), static_argnums: int | Iterable[int] = (),
        options: CompileOptions | None = None, context: Context | None = None, target: Target | None = None,
        memory: Memory | None = None, num_threads: int | None = None, precision: str | None = None
        ) -> Callable[[Callable[Given, Result]], Jit[Given, Result]]: ...


@public("tosaic.jit")
def jit(function: Callable[..., Any] | None = None, *, static: str | int | Iterable[str | int] = (),
        static_argnums: int | Iterable[int] = (), options: CompileOptions | None = None, context: Context | None = None,
        target: Target | None = None, memory: Memory | None = None, num_threads: int | None = None,
        precision: str | None = None) -> Any:
    """Compile a Python function of tensors, once for every signature that it is called with.

        @tosaic.jit
        def step(x): ...

        @tosaic.jit(static=("n",), options=tosaic.CompileOptions(threads=2))
        def power(x, n): ...

    `static` gives the names (or numbers) of the parameters whose values Python needs; `options` say how to compile
    (`tosaic.CompileOptions`: target, threads, precision, rows, order, tuning, memory); `context` is the namespace of the
    variables that the function uses (a `tosaic.Context`; by default, the process). `target`, `memory`, `num_threads` and
    `precision` are deprecated: they are options.
    """
    with seldom_collecting():
        from .decorator import Jit
    options = given("tosaic.jit", options, target=target, memory=memory, num_threads=num_threads, precision=precision)
    chosen = [*each(static), *each(static_argnums)]
    if function is not None:
        return Jit(called(function), chosen, options, context)
    return lambda f: Jit(called(f), chosen, options, context)


def called(function: Any) -> Any:
    """Return the function itself or, for a model, an entry or compiled code, a function that calls it."""
    if isinstance(function, FunctionType):  # most are, and then the models are not needed
        return function
    from .compiled import Compiled
    from .models.entry import Entry
    from .models.model import Model
    if not isinstance(function, Model | Entry | Compiled):
        return function

    def call(*inputs: Any, **named: Any) -> Any:
        return function(*inputs, **named)

    call.__name__ = call.__qualname__ = (function.entry() if isinstance(function, Model) else function).name
    return call


def each(values: Any) -> list[Any]:
    return [values] if isinstance(values, str | int) else list(values)


@public("tosaic.load")
def load(source: Any, name: str | None = None, *, shapes: Mapping[str, Sequence[int] | int] | None = None,
         variables: Mapping[str, Any] | None = None, context: Context | None = None, level: str = "none",
         limits: Limits | None = None, rfc_merge: bool = False) -> Model:
    """Load a model: a path, an open binary file, bytes, or MLIR text. Its content determines its format: MLIR text (TOSA, or
    TensorFlow's dialects) or bytecode, .tosa, .tflite, ONNX, an exported program of PyTorch (.pt2), a Keras file (.keras,
    HDF5), a SavedModel's folder, a graph of TensorFlow. The last four are read by PyTorch and TensorFlow, which treat a model
    as a program.

    `shapes` maps names of inputs to their shapes, for extents that the model leaves open (`{"image": (1, 224, 224, 3)}`).
    Without it, everything that needs a known shape takes an open batch of a `.tflite` or an ONNX model as the file states it,
    or as 1, and the logger `tosaic` reports it; calls with other shapes are compiled for those. Other open extents are
    determined by a call.

    Its entry functions are attributes and items: `tosaic.load("m.mlir").main`. `variables` is for TensorFlow's texts, in which
    an argument may be a handle of a variable that the text does not name: it gives a name for each such argument, and the
    initial values by the variables' names: `{"arg1": "count", "count": np.int32(0)}`. Raises a Problem with the position of any
    error in the model.

    A model has variables of its own, `model.context`; MLIR and .tosa refer to those of the process, so that such models share
    variables of the same name. With `context`, a `tosaic.Context`, the variables are that context's. A call may name another
    context: `model.main(x, context=c)`.

    `level="8K"` rejects a graph that exceeds a limit of TOSA's level 8K: rank 6, kernels, pads and strides of 8192, a scale of
    256, 64 tensors in a list, 16 extents in a shape. Without a level none of these applies; the limits of control flow nested 6
    deep and of 2^31 - 1 bytes for a tensor always apply.

    `limits`, a `tosaic.Limits`, bounds operators, bytes and seconds, here and whenever an entry is compiled.

    `rfc_merge` is for TensorFlow's executor graphs: a Merge with a dead control input is dead, as in the design document of the
    dialects. In TensorFlow, and without this option, such a Merge is live.
    """
    with seldom_collecting():
        from ..runtime.variables import checked_context
        from .models import front_door
        from .models.given_shapes import with_given_shapes
        from .models.load_model import at_level
        from .models.stated_shapes import say_what_is_stated
        checked_context(context)  # before a long file is read
        bindings = None
        if variables is not None or rfc_merge:
            from .models.tensorflow.graph_entries import bindings_of, check_takes_bindings
            bindings = bindings_of(variables or {}, rfc_merge)
        with limits or nullcontext():
            model = at_level(with_given_shapes(front_door.load(source, name, bindings), shapes), level)
            if bindings is not None:
                check_takes_bindings(model.module, "variables" if variables is not None else "rfc_merge")
        return say_what_is_stated(model).within(context).limited(limits)


@public("tosaic.from_tflite")
def from_tflite(source: Any, name: str | None = None, *, shapes: Mapping[str, Sequence[int]] | None = None,
                context: Context | None = None) -> Model:
    """Load the model of a .tflite: a path, an open binary file, or bytes. `load` does the same with such a file, and takes the
    same `shapes`.

    Its entry functions are the file's signatures by their names, or `main` where there are none; inputs have the names that the
    signature gives them, in the order of the file. All signatures share the file's variables, which belong to the model
    (`model.context`), to `context`, or to the context of the call. Arm's converter (the extra `tflite`) does the conversion to
    TOSA's operators. Raises a Problem at the operator that is wrong or not supported.
    """
    with seldom_collecting():
        from ..runtime.variables import checked_context
        from .models.given_shapes import with_given_shapes
        from .models.load_model import load_tflite
        from .models.stated_shapes import say_what_is_stated
        checked_context(context)
        return say_what_is_stated(with_given_shapes(load_tflite(source, name), shapes)).within(context)


@public("tosaic.compile")
def compile(source: Any, *arguments: Any, entry: str | None = None, options: CompileOptions | None = None,
            context: Context | None = None, target: Target | None = None, memory: Memory | None = None,
            num_threads: int | None = None, precision: str | None = None, limits: Limits | None = None) -> Compiled[Lowered]:
    """Compile a model (loaded, or in any form that `load` takes) or a Python function for these arguments; options are those of
    `jit`. `limits` bounds operators, bytes, and the seconds of reading and compiling together."""
    from ..runtime.variables import checked_context
    options = given("tosaic.compile", options, target=target, memory=memory, num_threads=num_threads, precision=precision)
    checked_context(context)
    with seldom_collecting(), limits or nullcontext():
        if (loaded := loaded_entry(source, entry)) is not None:
            return loaded.compile(options, context)
        if callable(source):
            compiled: Compiled[Lowered] = jit(options=options, context=context)(source).compile(*arguments)
            return compiled
        return load(source).entry(entry).compile(options, context)


def loaded_entry(source: Any, name: str | None) -> Entry | None:
    """Return the entry of a loaded model, or `source` if it is an entry; None for anything else."""
    from .models.entry import Entry
    from .models.model import Model
    match source:
        case Model():
            return source.entry(name)
        case Entry():
            return source
    return None
