"""What tosaic finds on Windows and macOS, as far as this system can show it: other names of the system, functions and modules
that are not there, no files that Linux alone has, and files that cannot be replaced or removed while somebody has them open.

Only the project's own imports are changed: what it imports from the standard library goes on as it is. Started as a program,
with the system's name and a Python file, it runs the file on that system.
"""
from __future__ import annotations

import builtins
import ctypes
import mmap
import os
import platform
import runpy
import signal
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

LINUX_ALONE = ("/proc", "/sys")
"""Folders of files in which Linux describes itself."""


class Changes(NamedTuple):
    """What a module has not, and what it has in another form."""
    missing: Iterable[str] = ()
    other: Mapping[str, Any] = {}


class Changed(ModuleType):
    """A module of the standard library as another system has it."""

    def __init__(self, real: ModuleType, changes: Changes) -> None:
        super().__init__(real.__name__)
        self._real, self._changes = real, changes

    def __getattr__(self, name: str) -> Any:
        if name in self._changes.missing:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        return self._changes.other[name] if name in self._changes.other else getattr(self._real, name)


class WindowsMap(mmap.mmap):
    """Windows' mmap has a name in place of protection and flags."""

    def __new__(cls, fileno: int, length: int, tagname: str | None = None, access: int = mmap.ACCESS_WRITE,
                offset: int = 0) -> WindowsMap:
        return super().__new__(cls, fileno, length, access=access, offset=offset)


class WindowsLibrary(ctypes.CDLL):
    def __init__(self, name: str | None, *arguments: Any, **options: Any) -> None:
        if name is None:
            raise TypeError("bad argument type for built-in operation")
        super().__init__(name, *arguments, **options)


def is_open(path: Any) -> bool:
    """True if this process has a file open or mapped."""
    place = os.path.realpath(path)
    with real_open("/proc/self/maps") as maps:
        is_mapped = any(line.rstrip("\n").endswith(f" {place}") for line in maps)
    return is_mapped or any(os.path.realpath(f"/proc/self/fd/{fd}") == place for fd in os.listdir("/proc/self/fd"))


def refused(path: Any) -> None:
    if is_open(path):
        raise PermissionError(13, "The process cannot access the file because it is being used by another process", str(path))


def replace(source: Any, target: Any) -> None:
    refused(source)
    refused(target)
    os.replace(source, target)


def unlink(path: Any) -> None:
    refused(path)
    os.unlink(path)


PROCESS = ("fork", "register_at_fork", "geteuid", "getuid", "sched_getaffinity", "waitid", "killpg", "mkfifo", "setsid")
OPENING = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
WINDOWS = {
    "os": Changes((*PROCESS, *OPENING, "sysconf", "sysconf_names", "RTLD_DEEPBIND", "uname", "fchmod", "pread"),
                  {"name": "nt", "replace": replace, "unlink": unlink, "remove": unlink, "O_BINARY": 0}),
    "sys": Changes(("setdlopenflags", "getdlopenflags"), {"platform": "win32"}),
    "platform": Changes((), {"machine": lambda: {"x86_64": "AMD64", "aarch64": "ARM64"}.get(platform.machine(), ""),
                             "system": lambda: "Windows"}),
    "signal": Changes(("pthread_kill", "pthread_sigmask", "SIGKILL", "SIGALRM", "SIGUSR1", "setitimer", "alarm")),
    "mmap": Changes(("PROT_READ", "PROT_WRITE", "PROT_EXEC", "MAP_PRIVATE", "MAP_ANONYMOUS"), {"mmap": WindowsMap}),
    "ctypes": Changes((), {"CDLL": WindowsLibrary})}
MACOS = {
    "os": Changes(("sched_getaffinity", "RTLD_DEEPBIND"),
                  {"sysconf_names": {k: v for k, v in os.sysconf_names.items() if "CACHE" not in k}}),
    "sys": Changes((), {"platform": "darwin"}),
    "platform": Changes((), {"machine": lambda: {"aarch64": "arm64"}.get(platform.machine(), platform.machine()),
                             "system": lambda: "Darwin"})}
SYSTEMS: Mapping[str, tuple[Mapping[str, Changes], frozenset[str]]] = {
    "windows": (WINDOWS, frozenset({"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix"})),
    "macos": (MACOS, frozenset())}
"""What each system changes, and the modules that it lacks."""
REAL = {"os": os, "sys": sys, "platform": platform, "signal": signal, "mmap": mmap, "ctypes": ctypes}
real_import, real_open = builtins.__import__, builtins.open


def become(system: str) -> None:
    """From here on, what the project imports is another system's."""
    changes, lacking = SYSTEMS[system]
    modules = {name: Changed(REAL[name], change) for name, change in changes.items()}

    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        importer = str((globals or {}).get("__name__", ""))
        if level == 0 and importer.partition(".")[0] == "tosaic":
            if name.partition(".")[0] in lacking:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in modules:
                return modules[name]
        return real_import(name, globals, locals, fromlist, level)

    def opened(file: Any, *arguments: Any, **options: Any) -> Any:
        if str(file).startswith(LINUX_ALONE) and sys._getframe(1).f_globals["__name__"].startswith("tosaic."):
            raise FileNotFoundError(2, "No such file or directory", file)
        return real_open(file, *arguments, **options)

    builtins.__import__, builtins.open = imported, opened


if __name__ == "__main__":
    become(sys.argv[1])
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
