"""The memories of the target and the compile settings, from the command line or a file -> `CompileOptions`.

    --workspace-pools dtcm,sram --workspace-pool-dtcm "size=64K,access=c:rw" --parameter-pools flash --pin weights=flash

Both use the same names. A file is JSON or TOML, and a pool's properties may be a table there:

    workspace-pools = ["dtcm", "sram"]
    workspace-pool-dtcm = { size = "64K" }
    pin = { weights = "flash" }

The command line takes precedence over the file.
"""
from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...runtime.errors import Problem
from ...runtime.public_names import closest

if TYPE_CHECKING:
    from ...lowering.memory.buffers import PoolAccess, PoolInfo
    from ...lowering.options import CompileOptions, Tuning
    from ...lowering.target.target import Target

KINDS = ("workspace", "parameter")
"""Kinds of pools: pools that a run reads and writes, and pools of constants."""

SELF = "c"
"""Name of the target that runs the compiled code, in a pool's access list."""

PROPERTIES = {"size": "size_hint_bytes", "alignment": "alignment", "offset": "pool_offset",
              "clock-frequency-hz": "clock_frequency_hz",
              "read-bandwidth-bytes-per-cycle": "read_bandwidth_bytes_per_cycle",
              "write-bandwidth-bytes-per-cycle": "write_bandwidth_bytes_per_cycle",
              "read-latency-cycles": "read_latency_cycles", "write-latency-cycles": "write_latency_cycles"}
"""Numeric properties of a pool, with the names that the planner has for them."""

ACCESS = ("access", "target")
"""Names of the property that lists the targets that may use a pool, such as c:rw,npu:ro; a target without a mode reads and
writes."""

BURSTS = "target-burst-bytes"
"""Name of the property that lists the bytes of each target's bursts to a pool, such as c:32,npu:64; a number alone applies to
the compiled code."""

LISTS = (*ACCESS, BURSTS)
"""Properties whose text may contain commas."""

SWITCHES = ("workspace-io", "overlap")
"""Boolean memory settings."""

SETTINGS = ("workspace-pools", "parameter-pools", "pin", "planner", "alignment", "rows", "threads", "precision", "weights",
            "order", "objective", *SWITCHES)
"""Settings that a file may have, besides workspace-pool-NAME and parameter-pool-NAME."""

POOL = re.compile(r"(workspace|parameter)-pool-(.+)", re.DOTALL)
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

Settings = dict[str, Any]

DESCRIPTION = """--workspace-pool-NAME "size=64K,access=c:rw" and --parameter-pool-NAME say of a pool how much it may hold (what
does not fit goes to the next one), who may use it (c is the compiled code), and its alignment; sizes may end in K or M. Other
properties: offset (bytes at its beginning that are not for buffers), read- and write-bandwidth-bytes-per-cycle, read- and
write-latency-cycles, clock-frequency-hz, target-burst-bytes (c:32)."""


# ---- the command line ------------------------------------------------------------------------------------------------
def add_memory(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that plans memory. The arguments must have passed through `plain` before."""
    group = parser.add_argument_group("memory", DESCRIPTION)
    group.add_argument("--memory", metavar="FILE", help="a JSON or TOML file with these options, by their names")
    group.add_argument("--workspace-pools", metavar="NAME,...", help="memories that a run works in, the best first")
    group.add_argument("--parameter-pools", metavar="NAME,...",
                       help="memories for constants, the best first (default: constants are part of the code)")
    for kind in KINDS:
        group.add_argument(f"--{kind}-pool", action="append", default=[], help=argparse.SUPPRESS)
    group.add_argument("--pin", metavar="TENSOR=POOL", action="append", default=[],
                       help="the only pool for a tensor or a variable")
    group.add_argument("--workspace-io", action="store_true", default=None, help="inputs and outputs lie in the workspace")
    group.add_argument("--no-overlap", dest="overlap", action="store_false", default=None,
                       help="buffers that are live together share no byte")
    group.add_argument("--no-order", dest="order", action="store_false", default=None, help="kernels stay in the graph's order")
    group.add_argument("--threads", type=int, metavar="N", help="steps with work enough run in N tasks at most, at the same "
                       "time where there are threads for them")
    group.add_argument("--precision", metavar="f32|bf16x6|bf16x3|winograd", help="of products of f32: each term exact and "
                       "added in f32 (the default); or, on a matrix unit, six products of bfloat16 limbs, with an error like "
                       "f32's, or three, with about 2^-15 of the sum of absolute values; or fewer products for convolutions "
                       "of 3 x 3")
    group.add_argument("--weights", metavar="int8|int16", help="how weights of bytes are kept for processors that multiply "
                       "pairs of 16 bits (Cortex-M4, M7, M33): as they are (the default), or as pairs, faster for twice the "
                       "flash")
    group.add_argument("--rows", metavar="cache|memory|never", help="which kernels are tiled by rows together: those whose "
                       "tensors outgrow the cache, those that save memory (the default on microcontrollers), or none")
    group.add_argument("--planner", metavar="NAME", help="the planner's algorithm (default: portfolio)")
    group.add_argument("--objective", metavar="traffic|bytes", help="what counts first where there are several pools: the "
                       "bytes that a run moves through slow ones (the default), or the bytes of each pool, the last one first")
    group.add_argument("--alignment", metavar="BYTES", help="the most that a buffer is aligned to (default: a vector)")


def plain(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `--workspace-pool-sram X` as `--workspace-pool=sram=X`: the user chooses the names of these
    options."""
    found: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        match = re.fullmatch(r"--(workspace|parameter)-pool-([^=]*)(?:=(.*))?", argument, re.DOTALL)
        value = None if match is None else match[3] if match[3] is not None else next(rest, None)
        found.append(argument if match is None or value is None else f"--{match[1]}-pool={match[2]}={value}")
    return found


def options_of(options: argparse.Namespace, target: Target | None = None, tuning: Tuning = ()) -> CompileOptions | None:
    """Return the compile options of a command line; None if it gives none."""
    settings = settings_of(options)
    if not settings and target is None and not tuning:
        return None
    return compile_options(settings, target, tuning)


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings of a command line, and those of the file that it names."""
    settings = read_settings(options.memory) if options.memory else {}
    for name in ("workspace_pools", "parameter_pools", "planner", "alignment", "rows", "threads", "precision", "weights",
                 "workspace_io", "overlap", "order", "objective"):
        if getattr(options, name) is not None:
            settings[name.replace("_", "-")] = getattr(options, name)
    for kind in KINDS:
        for text in getattr(options, f"{kind}_pool"):
            name, _, properties = text.partition("=")
            settings[f"{kind}-pool-{name}"] = properties
    if options.pin:
        settings["pin"] = pins(settings.get("pin", {})) | pins(options.pin)
    return settings


def read_settings(path: str) -> Settings:
    """Return the settings of a file; raise a Problem if it cannot be read, or is no table."""
    import json  # most commands read none
    import tomllib
    try:
        text = Path(path).read_text(encoding="utf-8")
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror or error}", kind="option") from None
    except ValueError as error:
        raise Problem(f"{path} is neither JSON nor TOML: {error}", kind="option",
                      help='a line of it may be: workspace-pools = ["dtcm", "sram"]') from None
    return dict(found)


# ---- settings --------------------------------------------------------------------------------------------------------
def compile_options(settings: Mapping[str, Any], target: Target | None = None, tuning: Tuning = ()) -> CompileOptions:
    """Return the options for settings by name. Raise a Problem for wrong settings."""
    from ...lowering.memory.planner import Memory
    from ...lowering.options import CompileOptions
    check_names(settings)
    memory: dict[str, Any] = {"accessor": SELF, "pins": pins(settings.get("pin", {}))} if settings else {}
    workspace, constant = (pools(settings, kind) for kind in KINDS)
    if workspace:
        memory["pools"] = workspace
    if "planner" in settings:
        memory["algorithm"] = word(settings["planner"], "planner")
    if "objective" in settings:
        memory["objective"] = word(settings["objective"], "objective")
    if "alignment" in settings:
        memory["alignment"] = nbytes(settings["alignment"], "alignment")
    memory |= {name.replace("-", "_"): truth(settings[name], name) for name in SWITCHES if name in settings}
    given: dict[str, Any] = {name: word(settings[name], name) for name in ("rows", "precision", "weights") if name in settings}
    given |= {"threads": settings["threads"]} if "threads" in settings else {}
    given |= {"order": truth(settings["order"], "order")} if "order" in settings else {}
    return CompileOptions(target, tuning=tuning, memory=Memory(constant_pools=constant, **memory), **given)


def check_names(settings: Mapping[str, Any]) -> None:
    """Check that every setting is known, and that properties belong to pools that are named."""
    for name in settings:
        match = POOL.fullmatch(name)
        if match is None and name not in SETTINGS:
            raise unknown("memory option", name, SETTINGS)
        if match is not None:
            named = words(settings.get(f"{match[1]}-pools", []), f"{match[1]}-pools")
            if match[2] not in named:
                raise unknown_pool(match[1], match[2], named)


def unknown_pool(kind: str, name: str, named: Sequence[str]) -> Problem:
    """Return the Problem for properties of a pool that {kind}-pools does not name: a typing error, or a pool that is missing
    there."""
    near = closest(name, named)
    return Problem(f"{kind}-pool-{name} is of no pool: {kind}-pools names {', '.join(named) or 'none'}", kind="option",
                   help=f"did you mean {kind}-pool-{near}?" if near else f"name it there, too: {kind}-pools "
                        f"{','.join([*named, name])}")


def pools(settings: Mapping[str, Any], kind: str) -> tuple[PoolInfo, ...]:
    """Return the pools of a kind in the order in which they are named."""
    from ...lowering.memory.buffers import PoolInfo
    found = []
    for name in words(settings.get(f"{kind}-pools", []), f"{kind}-pools"):
        where = f"{kind}-pool-{name}"
        given = properties(settings.get(where, {}), where)
        numbers = {PROPERTIES[key]: nbytes(value, f"{key} of {where}") for key, value in given.items() if key in PROPERTIES}
        access = {target: mode for key in ACCESS for target, mode in accesses(given.get(key, ()), where)}
        found.append(PoolInfo(name, target_access=access, target_burst_bytes=bursts(given.get(BURSTS, {}), where), **numbers))
    return tuple(found)


def properties(value: Any, where: str) -> dict[str, Any]:
    """Return the properties of a pool by name, from a table or from text such as size=1000,access=c:rw,npu:ro;alignment=8."""
    found: dict[str, Any] = {}
    if isinstance(value, Mapping):
        found = dict(value)
    elif isinstance(value, str):
        last = None
        for part in filter(None, (p.strip() for p in re.split("[,;]", value))):
            key, equals, text = (p.strip() for p in part.partition("="))
            if equals:
                found[key], last = text, key
            elif last in LISTS:
                found[last] += f",{part}"
            else:
                raise Problem(f"{part!r} in {where} is no NAME=VALUE", kind="option", help="for example size=64K,access=c:rw")
    else:
        raise Problem(f"{where} is {value!r}", kind="option", help='it may be text, "size=64K,access=c:rw", or a table')
    for key in found:
        if key not in PROPERTIES and key not in LISTS:
            raise unknown(f"property of {where}", key, [*PROPERTIES, "access", BURSTS])
    return found


def accesses(value: Any, where: str) -> list[tuple[str, PoolAccess]]:
    """Return the access of each target to a pool, from a table or from text such as c:rw,npu:ro."""
    pairs = value.items() if isinstance(value, Mapping) else [
        (target.strip(), mode.strip() or "rw") for target, _, mode in (p.partition(":") for p in words(value, where))]
    modes: dict[str, PoolAccess] = {"rw": "rw", "ro": "ro"}
    found: list[tuple[str, PoolAccess]] = []
    for target, mode in pairs:
        if mode not in modes or not target:
            raise Problem(f"access {target}:{mode} in {where} is neither rw nor ro", kind="option",
                          help=f"for example access={SELF}:rw, where {SELF} is the compiled code")
        found.append((target, modes[mode]))
    return found


def bursts(value: Any, where: str) -> dict[str, int]:
    """Return the bytes of a burst by target, from a table, a number, or text such as 32 or c:32,npu:64."""
    if isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        parts = [str(value)] if isinstance(value, int) and not isinstance(value, bool) else words(value, where)
        pairs = [(target or SELF, size) for target, _, size in (part.rpartition(":") for part in parts)]
    return {target: nbytes(size.strip() if isinstance(size, str) else size, f"{BURSTS} of {where}") for target, size in pairs}


def pins(value: Any) -> dict[str, str]:
    """Return pools by tensor, from a table or from texts TENSOR=POOL."""
    if isinstance(value, Mapping):
        return {str(tensor): word(pool, f"pin {tensor}") for tensor, pool in value.items()}
    found = {}
    for text in words(value, "pin"):
        tensor, equals, pool = text.rpartition("=")
        if not (tensor and equals and pool):
            raise Problem(f"pin {text!r} is no TENSOR=POOL", kind="option", help="tosaic show plan lists the tensors' names")
        found[tensor] = pool
    return found


# ---- values ----------------------------------------------------------------------------------------------------------
def nbytes(value: Any, what: str) -> int:
    """Return a number of bytes, from a number or from text such as 1000, 64K or 0x400."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,15})\s*([KMG]?)(?:i?B)?", value.strip()) if isinstance(
        value, str) else None
    if match is None:
        raise Problem(f"{what} is {value!r}, which is no number of bytes", kind="option", help="for example 1000, 64K or 2M")
    return int(match[1], 0 if match[1][:2] in ("0x", "0X") else 10) * UNITS[match[2]]


def words(value: Any, what: str) -> list[str]:
    """Return names, from a list or from text with commas between them."""
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, Sequence) or not all(isinstance(w, str) and w.strip() for w in found):
        raise Problem(f"{what} is {value!r}", kind="option",
                      help="it may be names with commas between them, or a list of names")
    return [w.strip() for w in found]


def word(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise Problem(f"{what} is {value!r}, which is no name", kind="option")
    return value


def truth(value: Any, what: str) -> bool:
    if not isinstance(value, bool):
        raise Problem(f"{what} is {value!r}", kind="option", help="it may be true or false")
    return value


def unknown(what: str, name: str, known: Iterable[str]) -> Problem:
    """Return a Problem with the names that were possible, the nearest one first."""
    names = list(known)
    near = closest(name, names)
    return Problem(f"there is no {what} named {name}", kind="option",
                   help=f"did you mean {near}?" if near else f"there are {', '.join(names)}")
