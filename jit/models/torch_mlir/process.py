"""The separate process of the bridge to PyTorch: torch-mlir's passes, down to TOSA.

torch-mlir is native code that may abort, which must not end the user's process. The request is one JSON object in the first
argument (`to_tosa.ConversionRequest`), the answer is another on the standard output; the module is in a file. Nothing of tosaic
is imported here.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

PIPELINE = ("func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline{extra-library=},"
            "torch-backend-to-tosa-backend-pipeline")
MOST_DIAGNOSTICS = 20
MOST_CHARACTERS = 2000
"""Maximum length of one diagnostic, in characters: MLIR prints an operation with its constants."""


def main() -> None:
    request = json.loads(sys.argv[1])
    sys.path[:] = request["path"]
    print(json.dumps(answered(request)))


def answered(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer: the last step begun, and the diagnostics."""
    answer: dict[str, Any] = {"diagnostics": []}
    try:
        lower(request, answer)
    except Exception as error:
        answer |= {"failure": f"{type(error).__name__}: {error}"[:MOST_CHARACTERS]}
    return answer


def lower(request: Mapping[str, Any], answer: dict[str, Any]) -> None:
    """Write the module as TOSA; `answer` is updated as the steps proceed."""
    from torch_mlir import ir
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.passmanager import PassManager

    context = ir.Context()
    torch_dialect.register_dialect(context)
    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(taker(answer["diagnostics"], str(ir.DiagnosticSeverity.ERROR)))
    answer["step"] = "read"
    with open(request["source"], "rb") as file:
        module = ir.Module.parse(file.read(), context).operation
    answer["step"] = "lower"
    with context:
        PassManager.parse(f"builtin.module({PIPELINE},strip-debuginfo)").run(module)
        make_constants(module)
    answer["step"] = "write"
    write(module, request["result"], request["is_text"])
    handler.detach()


def taker(found: list[dict[str, Any]], error: str) -> Callable[[Any], bool]:
    """Return a handler that stores errors with their locations and notes."""
    def take(diagnostic: Any) -> bool:
        if str(diagnostic.severity) == error and len(found) < MOST_DIAGNOSTICS:
            texts = [diagnostic.message, str(diagnostic.location), *(note.message for note in diagnostic.notes)]
            message, location, *notes = [text[:MOST_CHARACTERS] for text in texts]
            found.append({"message": message, "location": location, "notes": notes})
        return True
    return take


def make_constants(module: Any) -> None:
    """Convert the remaining constants of tensors in another dialect to TOSA's."""
    from torch_mlir import ir
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == "arith.constant" and isinstance(operation.results[0].type, ir.RankedTensorType):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for operation in found:
        with ir.InsertionPoint(operation), operation.location:
            new = ir.Operation.create("tosa.const", [operation.results[0].type],
                                      attributes={"values": operation.attributes["value"]})
        operation.results[0].replace_all_uses_with(new.results[0])
        operation.erase()


def write(module: Any, path: str, is_text: bool) -> None:
    if is_text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(module.get_asm(enable_debug_info=False, print_generic_op_form=True))
    else:
        with open(path, "wb") as file:
            module.write_bytecode(file)


if __name__ == "__main__":
    main()
