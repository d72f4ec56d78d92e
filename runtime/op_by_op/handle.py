"""Tensor handles: a client's references to tensors that are ready or pending. Metadata (dtype and shape) is known no later than
the contents.

A handle is a value: its tensor never changes once it is ready. The array inside belongs to the runtime (then it may be written,
once it has no other references: `buffer_reuse`), or is a read-only view of the client's.
"""
from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arena import Array
from ..errors import Problem, TypeProblem, class_of, printable
from ..foreign_arrays import borrowed
from .array_methods import ArrayMethods, install
from .asynchronous import KNOWN, TRANSITION, AsyncValue, Waiting, raised
from .callbacks import Callback, Row, run_callbacks, with_row
from .chain import abandoned
from .metadata import TensorMetadata, on_one_line
from .read_only import read_only
from .reporting import problem_of, sound
from .tensor_kinds import is_strings, strings

if TYPE_CHECKING:
    from .core import CoreRuntime

READABLE = 0x0001 | 0x0100
"""NumPy's flags C_CONTIGUOUS and ALIGNED."""


class TensorHandle(ArrayMethods, AsyncValue):
    """A tensor that is ready, pending or an error. `stolen_from` is the number of the argument whose buffer it has reused, if
    any."""
    __slots__ = ("_array", "_metadata", "_runtime", "_stolen_from")
    _array: Array | None
    _metadata: TensorMetadata | None
    _runtime: CoreRuntime | None

    def __init__(self, runtime: CoreRuntime | None, metadata: TensorMetadata | None, array: Array | None,
                 state: Waiting | Problem | None = None) -> None:
        self._runtime, self._metadata, self._array, self._state = runtime, metadata, array, state

    @classmethod
    def ready(cls, array: Any, runtime: CoreRuntime | None = None) -> TensorHandle:
        """Return a handle of an array, which is borrowed: the client must not change it from now on. `runtime` runs operators
        in which this handle is the only one (`CoreRuntime.tensor` sets it)."""
        borrowed = borrow(array)
        return TensorHandle(runtime, TensorMetadata.of(borrowed), borrowed)

    @classmethod
    def of_error(cls, problem: Problem, runtime: CoreRuntime | None = None) -> TensorHandle:
        """Return a handle that will never have a value."""
        return TensorHandle(runtime, None, None, sound(problem, "a handle"))

    @classmethod
    def pending(cls, metadata: TensorMetadata | None = None,
                runtime: CoreRuntime | None = None) -> tuple[TensorHandle, TensorResolver]:
        """Return a handle, and the object that settles it. `CoreRuntime.pending` also sets the runtime."""
        handle = TensorHandle(runtime, metadata, None, Waiting())
        return handle, TensorResolver(handle)

    # ---- state -------------------------------------------------------------------------------------------------------
    @property
    def is_ready(self) -> bool:
        """True if the contents are there."""
        return self._array is not None

    @property
    def is_valid(self) -> bool:
        """True if the handle is a tensor: False after it has been given away (`donate`, or its last reference taken over)."""
        return self._array is not None or self._state is not None

    @property
    def metadata(self) -> TensorMetadata | None:
        """Dtype and shape; None while they are not known, and if they never will be."""
        return self._metadata

    @property
    def stolen_from(self) -> int | None:
        """The number of the argument whose buffer this tensor has reused; None if it has a new one."""
        return getattr(self, "_stolen_from", None)

    def await_metadata(self, timeout: float | None = None) -> TensorMetadata:
        """Wait for dtype and shape, and return them. Raises the error of a handle that has none."""
        self._check_valid()
        if self._metadata is None and self.is_pending and not self._block("for_metadata", timeout):
            raise Problem(f"the metadata was not known after {timeout} seconds", kind="argument", help="wait longer")
        if self._metadata is None:
            assert self.error is not None
            raise raised(self.error)
        return self._metadata

    def then_metadata(self, callback: Callback) -> None:
        """Call `callback(self)` as soon as the metadata is known, or never will be."""
        with TRANSITION:
            waiting = self._state
            if type(waiting) is Waiting and self._metadata is None:
                waiting.for_metadata.append(callback)
                return
        run_callbacks((callback,), self)

    # ---- the contents ------------------------------------------------------------------------------------------------
    def get(self) -> Array:
        """Wait for the contents, and return them as a read-only array. Raises the error of a handle that has none."""
        if self._array is None:
            self._check_valid()
            self.wait()
        array = self._array
        if array is None:
            self._check_valid()
            assert self.error is not None
            raise raised(self.error)
        return read_only(array)

    def copy(self) -> TensorHandle:
        """Return another handle of the same tensor, to be kept when this one is given to `execute`."""
        if self._array is not None:
            return TensorHandle(self._runtime, self._metadata, self._array)
        self._check_valid()
        if not self.is_pending:
            return TensorHandle(self._runtime, self._metadata, None, self._state)
        handle = TensorHandle(self._runtime, self._metadata, None, Waiting())
        handle._follow(self)
        return handle

    def __copy__(self) -> TensorHandle:
        return self.copy()

    def __deepcopy__(self, memo: object) -> TensorHandle:
        """Return another handle: a handle is a value, whose contents never change once they are available."""
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settled state, after waiting for it: the contents, or the error. The runtime is not pickled:
        `CoreRuntime.tensor` gives the unpickled handle one of its own."""
        self._check_valid()
        if self._array is None:
            self.wait()
        return handle_again, (self._metadata, None if self._array is None else np.array(self._array), self.error)

    def donate(self) -> TensorHandle:
        """Return the same tensor in a new handle for one use, whose result may reuse its buffer. This handle becomes invalid. A
        pending handle is only copied."""
        self._check_valid()
        if self.is_pending:
            return self.copy()
        donated = DonatedHandle(self._runtime, self._metadata, self._array, self._state)
        self._invalidate()
        return donated

    def __await__(self) -> Generator[Any, None, Array]:
        """Return the contents, in asyncio."""
        self._check_valid()
        yield from self._settled()
        return self.get()

    def __repr__(self) -> str:
        if not self.is_valid:
            return "<TensorHandle, given away>"
        if self._array is not None:
            return f"<TensorHandle {self._metadata}: {on_one_line(self._array)}>"
        if self.error is not None:
            return f"<TensorHandle error: {printable(self.error.message)}>"
        return f"<TensorHandle pending: {self._metadata or 'metadata not known'}>"

    # ---- what settles it ---------------------------------------------------------------------------------------------
    def _set(self, array: Array, metadata: TensorMetadata, stolen_from: int | None = None) -> bool:
        """Set the contents; return False if the handle has been settled before."""
        return self._settle(None, (array, metadata, stolen_from))

    def _fill(self, array: Array, metadata: TensorMetadata, stolen_from: int | None) -> None:
        if stolen_from is not None:
            self._stolen_from = stolen_from
        self._metadata, self._array = metadata, array

    def _set_metadata(self, metadata: TensorMetadata) -> None:
        """Set the metadata before the contents."""
        waiting = self._state
        if type(waiting) is not Waiting:
            return
        with_row(lambda row: self._tell_metadata(row, waiting, metadata))

    def _tell_metadata(self, row: Row, waiting: Waiting, metadata: TensorMetadata) -> None:
        with TRANSITION:
            if self._state is waiting and self._metadata is None:
                callbacks = waiting.for_metadata
                callbacks.reverse()
                self._metadata, waiting.for_metadata = metadata, KNOWN
                row.append((self, callbacks))

    def _follow(self, other: TensorHandle) -> None:
        """Take the state of `other` when it is settled."""
        if type(self._state) is Waiting:
            self._state.source = other
        follower = Follower(self)
        other.then_metadata(follower.metadata_arrived)
        other.then(follower.arrived)

    def _invalidate(self) -> None:
        self._array = self._metadata = self._state = None

    def _check_valid(self) -> None:
        if not self.is_valid:
            raise given_away()

    # ---- other libraries ---------------------------------------------------------------------------------------------
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.get()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"a tensor of {array.dtype} is no {np.dtype(dtype)} without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None,
                   copy: bool | None = None) -> Any:
        """Return the contents for other libraries: without a copy if they support read-only tensors (DLPack 1.0)."""
        array = self.get()
        if copy or max_version is None or max_version < (1, 0):
            return array.copy().__dlpack__()
        return array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def handle_again(metadata: TensorMetadata | None, array: Array | None, error: Problem | None) -> TensorHandle:
    """Return the handle of a pickle's contents."""
    if array is not None:
        array.setflags(write=False)
    return TensorHandle(None, metadata, array, error)


class DonatedHandle(TensorHandle):
    """A handle whose buffer its first use may reuse; it is invalid after that use."""
    __slots__ = ()


install(DonatedHandle, is_quick=False)


class Follower:
    """Lets a handle take the state of another one."""
    __slots__ = ("handle",)

    def __init__(self, handle: TensorHandle) -> None:
        self.handle = handle

    def metadata_arrived(self, other: TensorHandle) -> None:
        if other._metadata is not None:
            self.handle._set_metadata(other._metadata)

    def arrived(self, other: TensorHandle) -> None:
        if other._array is not None and other._metadata is not None:
            self.handle._set(other._array, other._metadata)
        else:
            self.handle._fail(other.error or given_away())

    def _give_up(self, error: BaseException) -> None:
        """Fail the handle after an error ended one of these callbacks, which is not called again."""
        self.handle._fail(problem_of(error, "the copy of a handle"))


def keep_settled(arguments: list[TensorHandle]) -> None:
    """Replace settled arguments of a waiting call by new handles: the client may give its own away meanwhile."""
    for number, argument in enumerate(arguments):
        if type(argument) is TensorHandle and type(argument._state) is not Waiting:
            arguments[number] = TensorHandle(argument._runtime, argument._metadata, argument._array, argument._state)


class TensorResolver:
    """Settles one handle, once. If the resolver is destroyed before that, the handle becomes an error: nobody waits for
    ever."""
    __slots__ = ("_handle",)

    def __init__(self, handle: TensorHandle) -> None:
        self._handle = handle

    def set(self, array: Any) -> bool:
        """Set the contents, which are borrowed. Return False if the handle was settled before; raise a Problem if the metadata
        differs."""
        borrowed = borrow(array)
        metadata, known = TensorMetadata.of(borrowed), self._handle.metadata
        if known is not None and known is not metadata:
            raise TypeProblem(f"a handle of {known} cannot be set to {metadata}", kind="argument",
                              help=f"give an array of {known}")
        return self._handle._set(borrowed, metadata)

    def set_metadata(self, metadata: TensorMetadata) -> None:
        """Set dtype and shape, before the contents."""
        self._handle._set_metadata(metadata)

    def fail(self, problem: Problem) -> bool:
        """Make the handle an error."""
        return self._handle._fail(sound(problem, "a pending handle"))

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)  # Ctrl-C may have come before there was one
        if handle is not None and handle.is_pending:
            self.fail(abandoned("handle"))


def borrow(value: Any) -> Array:
    """Return a read-only view of an array, or of a value that NumPy can take as one; a copy if its elements are not
    contiguous."""
    if is_strings(value):
        return strings(value)
    try:
        array = as_numpy(value)
    except Exception as error:
        raise TypeProblem(f"{class_of(value)} is no tensor: {error}", kind="argument", help="pass an array") from error
    if array.dtype.kind not in "biufV" or array.dtype.fields is not None or not array.dtype.isnative:
        raise TypeProblem(f"an array of {array.dtype} is no tensor", kind="argument", help="tensors hold numbers, bools or "
                          "strings, in this machine's byte order")
    if array.flags.num & READABLE != READABLE:
        array = np.array(array, order="C")
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return view


def as_numpy(value: Any) -> Array:
    """Return an array of NumPy arrays, the buffer protocol, DLPack, `__array__`, or Python numbers and lists (as i32 and
    f32)."""
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if isinstance(value, bool | int | float | list | tuple):
        array = np.asarray(value)
        return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
    return borrowed(value)


def given_away() -> Problem:
    return Problem("this handle has been given away: an operation took it over", kind="argument",
                   help="keep a copy: handle.copy() before the call")
