"""Model files in the cache: facts known of a file from its bytes alone, so that it need not be parsed.

A `KnownFile` identifies bytes, an `Origin` the model that is read from them. A large file's digest is remembered by the file's
identity, size and times, as in Make and git, so that it need not be read: only for a file that has rested for a while, because
a change within the clock's resolution would not show.
"""
from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...runtime.later import Later
from ...runtime.variables import Context
from .code import LaterSource, own_source
from .folder import Folder, folder
from .keys import PACKAGE, NotKept, digest, is_own
from .programs import CachedCompiler, CodeRequest, compile, lowered, positions, recall
from .sha256 import sha256
from .versions import RESTED_NS, package_version, versions

if TYPE_CHECKING:
    from ..compiled import Compiled
    from ..descriptors import Interface
    from ..stage_data import TracedData

Form = Literal["text", "bytes", "tflite", "onnx"]
OPERATORS = PACKAGE + "lowering.graph.operator"
"""The module with the table of operators, if a process has needed it."""
Shapes = tuple[tuple[str, tuple[int, ...]], ...]
LARGE = 1 << 15
"""Minimum bytes of a file whose digest is remembered. Measured: reading such a file and detecting its form takes a start two
milliseconds."""


class Outline(NamedTuple):
    """The facts about a model's entry function that a call needs: whether an input has open extents, the inputs' names;
    `stated` are the shapes that the file suggests for the inputs with open extents."""
    name: str
    is_dynamic: bool
    inputs: tuple[str, ...]
    stated: Shapes = ()


class Origin(NamedTuple):
    """A model's bytes, by their digest in keys."""
    digest: str

    @property
    def key(self) -> bytes:
        return digest(("model", versions(), self.digest))

    def recall(self) -> CachedModel | None:
        """Return the model if a process has compiled one of its functions."""
        where = usable_folder()
        found = where.read("model", self.key) if where else None
        if found is None:
            return None
        return CachedModel(self, tuple(Outline(name, is_dynamic, tuple(inputs), tuple((n, tuple(s)) for n, s in stated))
                                       for name, is_dynamic, inputs, stated in found.fields["entries"]), True)


class CachedModel(NamedTuple):
    """A model that the cache may know: its origin, its entry functions, and whether these are kept already."""
    origin: Origin
    outlines: tuple[Outline, ...]
    is_kept: bool = False

    def compile(self, name: str, shapes: Shapes, request: CodeRequest, context: Context | None,
                traced: Callable[[], TracedData], compiler: Callable[[], CachedCompiler]) -> Compiled:
        """Return one of the model's functions compiled for these shapes; if it is in the cache, call neither `traced` nor the
        compiler."""
        source = LaterSource(lambda: own_source(positions(traced().module)))
        key = self.code_key(name, shapes, request)
        later = Later(lambda: lowered(traced(), request, key, compiler()))
        found = recall(key, context, later, None, source) if key else None
        if found is not None:
            self.keep_outlines()
            return found
        compiled, code = compile(traced(), request, context, compiler())
        if code is not None and code != key:
            self.keep(name, shapes, request, code)
            self.keep_interface(name, shapes, traced().tensors)
        return compiled

    def interface_key(self, name: str, shapes: Shapes) -> bytes:
        return digest(("interface", versions(), self.origin.digest, name, shapes))

    def keep_interface(self, name: str, shapes: Shapes, tensors: Interface) -> None:
        """Remember a function's description of its tensors."""
        where = usable_folder()
        if where is not None:
            where.write("interface", self.interface_key(name, shapes), {"tensors": tensors.fields()})

    def recall_interface(self, name: str, shapes: Shapes) -> Interface | None:
        """Return a function's description of its tensors, if a process has compiled it."""
        where = usable_folder()
        found = where.read("interface", self.interface_key(name, shapes)) if where else None
        if found is None:
            return None
        from ..descriptors import interface_from
        return interface_from(found.fields["tensors"])

    def code_key(self, name: str, shapes: Shapes, request: CodeRequest) -> bytes | None:
        """Return the key of a function's code, if a process has compiled it."""
        where, key = usable_folder(), self.entry_key(name, shapes, request)
        found = where.read("entry", key) if where and key else None
        return bytes.fromhex(found.fields["code"]) if found else None

    def entry_key(self, name: str, shapes: Shapes, request: CodeRequest) -> bytes | None:
        """Return the key of a function's entry; None if it is not kept."""
        try:
            return digest(("entry", request.settings(), self.origin.digest, name, shapes))
        except NotKept:
            return None

    def keep(self, name: str, shapes: Shapes, request: CodeRequest, code: bytes) -> None:
        """Remember the key of a function's code, and the model's functions."""
        where, key = usable_folder(), self.entry_key(name, shapes, request)
        if where is None or key is None:
            return
        where.write("entry", key, {"code": code.hex()})
        self.keep_outlines()

    def keep_outlines(self) -> None:
        """Remember the model's functions."""
        where = None if self.is_kept else usable_folder()
        if where is not None and where.read("model", self.origin.key) is None:
            where.write("model", self.origin.key, {"entries": [list(o) for o in self.outlines]})


def usable_folder() -> Folder | None:
    """Return the cache's folder, if models mean in this process what they mean in every other."""
    loaded, where = sys.modules.get(OPERATORS), folder()
    if where is None or versions() is None:
        return None
    return where if loaded is None or all(map(is_own, loaded.OPERATORS.values())) else None


# ---- bytes and files -----------------------------------------------------------------------------------------------
PACKAGES = {"tflite": "tosa_converter_for_tflite", "onnx": "onnx"}
"""Packages that read files of each form."""


class KnownFile(NamedTuple):
    """The identity of a file's contents: its form (a text of Python always as MLIR), and its digest."""
    form: Form
    sha256: str

    @property
    def origin(self) -> Origin | None:
        """Origin of the model; None if it is read by a package of unknown version."""
        package = PACKAGES.get(self.form)
        converter = package_version(package) if package else ""
        return None if converter is None else Origin(f"{self.form} {converter} {self.sha256}")


def known_data(data: str | bytes | memoryview) -> KnownFile | None:
    """Return the identity of a model's text or bytes; None if the cache is off, and for a model that has weights in other
    files."""
    if usable_folder() is None:
        return None
    form: Form = "text" if isinstance(data, str) else "tflite" if data[4:8] == b"TFL3" else "bytes"
    if isinstance(data, memoryview) or data[:1] == b"\x08":
        if names_files(data):
            return None
        form = "onnx"
    encoded = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    return KnownFile(form, sha256(encoded).hexdigest())


def names_files(data: str | bytes | memoryview) -> bool:
    """True if an ONNX model may have weights in other files: the model refers to their paths by this word."""
    held = data.obj if isinstance(data, memoryview) else data
    return held.find(b"location") >= 0 if hasattr(held, "find") and not isinstance(held, str) else True


def known_file(key: bytes | None) -> KnownFile | None:
    """Return the file of that key, if it has been read before."""
    where = usable_folder()
    found = where.read("file", key) if where and key else None
    return KnownFile(found.fields["form"], found.fields["sha256"]) if found else None


def remember_file(path: str, key: bytes | None, file: KnownFile) -> None:
    """Remember the contents of a file that had this key when it was opened, unless it has changed since."""
    where = usable_folder()
    if where is not None and key is not None and file_key(path) == key:
        where.write("file", key, {"form": file.form, "sha256": file.sha256})


def file_key(path: str) -> bytes | None:
    """Return a key that distinguishes a large file that has rested from every other, without reading it; None for other files,
    and if the system does not record a file's last change."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    rested = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > RESTED_NS
    is_plain = os.name == "posix" and stat.S_ISREG(status.st_mode)
    if not is_plain or status.st_size < LARGE or not rested or usable_folder() is None:
        return None
    return digest(("file", versions(), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
