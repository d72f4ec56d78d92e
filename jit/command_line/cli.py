"""The command line: `tosaic run | compile | check | show | profile | tune | map | report | convert |
cache | targets`.

Exit codes: 0 yes, 1 no (`check` found a difference), 2 wrong usage, 3 a bad model, 4 an error inside tosaic; 130 after
Ctrl-C. Answers go to standard output, everything else to standard error.
"""
from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from ... import __version__
from ...runtime.errors import Problem, is_interrupt, printable, printable_text, unwritten
from .colour import coloured, is_coloured
from .keyboard_interrupt import forget_interrupt, repeated_interrupts
from .memory_options import add_memory, plain

USAGE, BAD_MODEL, INTERNAL, INTERRUPTED = 2, 3, 4, 130

USAGE_KINDS = frozenset({"argument", "option"})
"""Kinds of problems that are errors of the command line and not of the model."""

EPILOG = """\
MODEL is MLIR, .tosa, .tflite, ONNX, .pt2, a Keras file, a GraphDef or a SavedModel's folder
(its content tells which); - is standard input.
exit codes: 0 yes, 1 no, 2 usage, 3 bad model, 4 internal error"""

CACHE_EPILOG = """\
TOSAIC_CACHE is the cache's folder, or "off"; without it, tosaic/code in XDG_CACHE_HOME or ~/.cache.
TOSAIC_CACHE_LIMIT is the most that it may hold, such as 512M (default: 1G)."""


COMPLETION_EPILOG = """\
bash: tosaic completion bash > ~/.local/share/bash-completion/completions/tosaic
zsh:  tosaic completion zsh > DIR/_tosaic, for a DIR of $fpath
fish: tosaic completion fish > ~/.config/fish/completions/tosaic.fish"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    try:
        with repeated_interrupts(), warnings.catch_warnings():
            warnings.showwarning = warned
            return carried_out(sys.argv[1:] if arguments is None else arguments)
    except BrokenPipeError:  # the reader of our output, help or answer, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        forget_interrupt()
        say("interrupted", sys.stderr)
        return INTERRUPTED


def carried_out(arguments: Sequence[str]) -> int:
    """Return the exit code of a command line that nobody interrupts."""
    try:
        options = parser().parse_args(plain(arguments))
    except SystemExit as end:
        return int(end.code or 0)
    try:
        return answer(options)
    except Problem as problem:
        say(str(problem), sys.stderr, is_message=True)
        return USAGE if problem.kind in USAGE_KINDS else INTERNAL if problem.kind == "internal" else BAD_MODEL
    except BrokenPipeError:
        raise
    except Exception as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from error
        return internal(error, options)


def answer(options: argparse.Namespace) -> int:
    """Carry out a command and print its answer."""
    from .commands import carry_out
    found = carry_out(options)
    text = found.text
    if options.json:
        import json
        text = json.dumps(found.json, indent=1).replace("\x7f", r"\u007f")
    from .tables import is_terminal, show_table
    try:
        if found.table is not None and not options.json and is_terminal(sys.stdout):
            show_table(found.table, sys.stdout)
        else:
            say(text, sys.stdout)
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python reports it again at exit
        raise unwritten(error, "the answer cannot be written") from None
    return found.code


def say(text: str, stream: TextIO, is_message: bool = False) -> None:
    """Print text to a terminal or a file. All output of the command line goes through this function, so that names of models,
    which the output contains, cannot control a terminal. Characters that the stream's encoding lacks are written by their
    numbers. Messages are coloured on a terminal."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    plain = printable_text(text)
    if is_message and is_coloured(stream):
        plain = coloured(plain)
    print(plain.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)


def warned(message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
           line: str | None = None) -> None:
    """Print one of Python's warnings in one line, without its position in the code."""
    say(f"tosaic: warning: {message}", sys.stderr, is_message=True)


class Parser(argparse.ArgumentParser):
    """The library's parser, with its messages printed by `say`: an argument may be the name of a file, which may hold any
    character."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            say(message.removesuffix("\n"), file or sys.stderr)


def internal(error: Exception, options: argparse.Namespace) -> int:
    """Report in few words that tosaic is at fault."""
    if options.traceback:
        say("".join(traceback.format_exception(error)), sys.stderr)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = "/".join(Path(frame.filename).parts[-2:])
    say(f"tosaic: internal error: {type(error).__name__}: {printable(str(error))[:500]}\n"
        f"  at {place}:{frame.lineno}\n"
        "  this is a fault of tosaic, not of the model; --traceback shows where it is", sys.stderr, is_message=True)
    return INTERNAL


def parser() -> argparse.ArgumentParser:
    """Return the parser with the options of all commands."""
    whole: argparse.ArgumentParser = Parser(
        "tosaic", description="Compile TOSA graphs to native code, run and inspect them.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    whole.add_argument("--version", action="version", version=f"tosaic {__version__}", help="print the version")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    run = command(commands, "run", "compile a model and call it; run a kernel program")
    add_inputs(run, "times to call it")
    run.add_argument("--save", metavar="FILE.npz", help="write the outputs of the last call")
    run.add_argument("--state", metavar="FILE.npz", help="start from these variables if the file is there; write them")
    add_memory(run)
    compile_ = command(commands, "compile", "write an object file, or C source, and a C header")
    compile_.add_argument("-o", "--output", metavar="DIR", default=".", help="where to write (default: here)")
    compile_.add_argument("--emit", choices=("object", "c"),
                          help="an object file, or C99 source in its place, for any processor unless --target names one "
                          "(default: object; in projects of systems that compile libraries for many boards, c)")
    compile_.add_argument("--project", choices=("cmake", "esp-idf", "zephyr", "platformio", "arduino", "make"),
                          help="write a folder for that build system, with an example that checks recorded calls")
    compile_.add_argument("--name", help="name in C (default: the model's)")
    compile_.add_argument("--self-contained", action="store_true", help="the object has its own workspace and constants")
    compile_.add_argument("--namespace", metavar="NS", help="share variables of one name with other objects of this namespace")
    compile_.add_argument("--state", choices=("own", "caller"), default="own",
                          help="who holds the variables: the object, or the caller of each function (default: own)")
    compile_.add_argument("--library", action="store_true",
                          help="write a static library, too, of the object and its constant pools")
    compile_.add_argument("--pool-form", choices=("binary", "array"), default="binary",
                          help="files of constant pools: bytes that an assembler file includes, or C (default: binary)")
    compile_.add_argument("-g", "--debug", action="store_true",
                          help="debug information: kernels with their lines of the model's text")
    compile_.add_argument("--main", action="store_true", help="write a main.c that calls the model, to start from")
    add_sources(compile_)
    compile_.add_argument("--calls", type=positive, metavar="N",
                          help="recorded calls of a project (default: 1, or 3 of a model with variables)")
    add_target(compile_)
    add_memory(compile_)
    check = command(commands, "check", "compare compiled code with the reference; exit code 1 where they differ")
    add_inputs(check, "calls to compare")
    add_memory(check)
    show = command(commands, "show", "print a stage: graph, kernels, schedule, loops, plan, llvm, asm", optional=True)
    show.add_argument("stage", metavar="STAGE", nargs="?", help="(default: graph)")
    show.add_argument("--whole", action="store_true", help="print long constants too, so that the text reads back")
    show.add_argument("--after", metavar="PASS", help="print what there is after a pass of the pipeline")
    show.add_argument("--print-after-all", action="store_true", help="print what there is after each pass, with its promise")
    show.add_argument("--from", metavar="FILE", dest="start", action="append", default=[],
                      help="go on from the printed text of a stage: kernels, with a schedule too; or loops, with a plan too")
    add_target(show)
    add_memory(show)
    profile = command(commands, "profile", "print where the time of a call goes, kernel by kernel")
    add_inputs(profile, "calls to measure at least", 100)
    profile.add_argument("--trace", metavar="FILE.json",
                         help="write the last calls, with their threads and the bytes live in each pool, for Perfetto")
    profile.add_argument("--traced-calls", type=positive, default=3, metavar="N", help="calls in the trace (default: 3)")
    profile.add_argument("--model-explorer", metavar="FOLDER", help="write node data for Model Explorer: microseconds")
    add_memory(profile)
    tune = command(commands, "tune", "measure other schedules of a model's kernels; what is faster is kept for later compiles")
    add_inputs(tune, "calls of each measurement at least", 5)
    tune.add_argument("-o", "--output", metavar="FILE", help="keep it in a file, for --tuning, and not in the cache")
    tune.add_argument("--scheduler", metavar="ADDRESS", help="measure on the workers of a Dask cluster that have this "
                      "processor, one on each machine (default: here)")
    add_memory(tune)
    add_map(command(commands, "map", "run a model over many inputs, on processes of this machine or on a Dask cluster"))
    add_report(command(commands, "report", "print memory, kernels and the seconds of each stage"))
    add_shape(bare_command(commands, "info", "print what a model is: inputs, outputs, quantisation, operators, needed extras"))
    convert = bare_command(commands, "convert", "write a model as a .tosa file or as MLIR text")
    convert.add_argument("output", metavar="OUT", help="the file to write; its ending says what: .tosa or .mlir")
    add_shape(convert)
    add_cache(commands)
    text = "print the machines to compile for: processors and boards by name"
    add_output(commands.add_parser("targets", help=text, description=text))
    text = "print what tosaic has to work with: this machine, LLVM, threads, the cache, extras"
    add_output(commands.add_parser("doctor", help=text, description=text))
    text = "print a script that completes command lines in a shell"
    completion = commands.add_parser("completion", help=text, description=text, epilog=COMPLETION_EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    completion.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    add_output(completion)
    return whole


def command(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str,
            help: str, optional: bool = False) -> argparse.ArgumentParser:
    """Add a command on an entry function, with the options that all such commands have."""
    found = bare_command(commands, name, help, optional)
    found.add_argument("--entry", metavar="NAME", help="the entry function (default: main, or the only one)")
    add_shape(found)
    return found


def bare_command(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str,
                 help: str, optional: bool = False) -> argparse.ArgumentParser:
    """Add a command on a whole model, which is `optional` if an option may take its place."""
    found = commands.add_parser(name, help=help, description=help, epilog=EPILOG,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("model", metavar="MODEL", nargs="?" if optional else None,
                       help="a model file, or - for standard input")
    found.add_argument("--level", choices=("none", "8K"), default="none",
                       help="refuse a model beyond a level of TOSA (default: none)")
    found.add_argument("--limits", metavar="nodes=N,bytes=1G,seconds=S",
                       help="what reading, compiling and checking the model may take, of a model that you do not trust")
    add_output(found)
    return found


def add_cache(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "print what the cache of compiled code holds, or clear it"
    found = commands.add_parser("cache", help=text, description=text, epilog=CACHE_EPILOG,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--clear", action="store_true", help="remove all that it holds")
    add_output(found)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options of the form in which the answer is printed."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--traceback", action="store_true", help=argparse.SUPPRESS)


def add_shape(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--shape", metavar="INPUT=2x8", action="append", default=[],
                        help="the shape of an input whose extents the model leaves open, or such an extent by name: batch=4")


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the options for the inputs of a model's calls."""
    parser.add_argument("--input", metavar="[NAME=]SOURCE", action="append", default=[],
                        help="an input from file.npy, file.npz or random:SEED; others are random")
    parser.add_argument("--seed", type=int, default=0, help="for random inputs (default: 0)")


def add_inputs(parser: argparse.ArgumentParser, calls: str, default: int = 1) -> None:
    """Add the options for the inputs of a model's calls, and for the number of calls."""
    add_sources(parser)
    parser.add_argument("--calls", type=positive, default=default, metavar="N", help=f"{calls} (default: {default})")


def add_map(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("inputs", metavar="INPUT", nargs="+",
                        help=".npy or .npz files, folders of them, a Zarr store, or Parquet files")
    parser.add_argument("-o", "--output", metavar="DIR", required=True,
                        help="a folder for the results; one that a run has begun is gone on with")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="the scheduler of a Dask cluster (default: no cluster)")
    parser.add_argument("--workers", type=positive, metavar="N", help="processes of this machine (default: one for each core)")


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"MODEL and OTHER may also be reports that were saved with --json.\n{EPILOG}"
    add_target(parser)
    add_memory(parser)
    parser.add_argument("--fit", metavar="RAM:256K,FLASH:1M",
                        help="hold it against these memories (pools of the plan, or kinds); exit code 1 if it does not fit")
    parser.add_argument("--boards", metavar="Pico,nRF52840",
                        help="hold it against these boards (all: those that tosaic knows), with code for each one's own "
                        "processor; exit code 1 if it fits none of them")
    parser.add_argument("--io-elsewhere", action="store_true",
                        help="--fit and --boards leave out inputs and outputs of the caller, which lie in other memory")
    parser.add_argument("--code", action="store_true", help="measure the object's code, which takes a compile")
    parser.add_argument("--html", metavar="FILE", help="write a page with a picture of each pool")
    parser.add_argument("--diff", metavar="OTHER", help="print what changes from MODEL to another model")
    parser.add_argument("--model-explorer", metavar="FOLDER",
                        help="write node data for Model Explorer: bytes written, bytes live, terms computed")


def add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", help="the machine to compile for, as tosaic targets lists (default: host)")
    parser.add_argument("--cpu", help="a processor, by these names or LLVM's; its features count, and no --target is needed")
    parser.add_argument("--features", metavar="+F,-G", default="", help="more features or fewer, by LLVM's names")
    parser.add_argument("--tuning", metavar="FILE", help="schedules that tosaic tune has found")
    parser.add_argument("--schedule", metavar="FILE", help="use the strategies and tasks of a schedule that show has printed")


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is below 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
