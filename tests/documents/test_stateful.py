"""Texts and types of the RFC of stateful operators, tried as they are written."""
from __future__ import annotations

import numpy as np
import pytest
from tosaic.jit.stages import Traced
from tosaic.lowering.graph.types import ELEMENT_TYPES
from tosaic.lowering.graph.verify import verify
from tosaic.lowering.text.reader import read_module
from tosaic.runtime.interpreter import Interpreter
from tosaic.runtime.interpreter_variables import InterpreterVariables
from tosaic.runtime.variables import Context


@pytest.mark.parametrize("text", [
    "tosa.variable @myvar : tensor<1xf32>\nfunc.func @f() {\n  return\n}",
    "tosa.variable @ctr : tensor<13x21x3xi32>\nfunc.func @f() -> tensor<13x21x3xi32> {\n"
    "  %1 = tosa.variable.read @ctr : tensor<13x21x3xi32>\n  return %1 : tensor<13x21x3xi32>\n}",
    "tosa.variable @cell_state : tensor<24xf32>\nfunc.func @f(%22: tensor<24xf32>) {\n"
    "  tosa.variable.write @cell_state, %22 : tensor<24xf32>\n  return\n}",
    "tosa.variable @v : tensor<f32>\nfunc.func @f() {\n  return\n}",
    "tosa.variable @v : tensor<1x2x1x2x1x2xf32>\nfunc.func @f() {\n  return\n}"])
def test_the_texts_of_the_document_are_read(text: str) -> None:
    verify(read_module(text))


@pytest.mark.parametrize("element", ["i1", "i8", "i16", "i32", "f16", "bf16", "f32"])
@pytest.mark.parametrize("shape", ["", "3x", "1x2x1x2x1x2x"])
def test_a_variable_of_every_type_of_the_document_is_kept_in_both_engines(element: str, shape: str) -> None:
    type = f"tensor<{shape}{element}>"
    module = read_module(f"tosa.variable @v : {type}\nfunc.func @main(%x: {type}, %first: tensor<i1>) -> {type} {{\n"
                         f"  %0 = tosa.cond_if %first : tensor<i1> -> {type} {{\n    tosa.variable_write @v, %x : {type}\n"
                         f"    tosa.yield %x : {type}\n  }} else {{\n    %1 = tosa.variable_read @v : {type}\n"
                         f"    tosa.yield %1 : {type}\n  }}\n  return %0 : {type}\n}}")
    verify(module)
    dims = module.functions[0].arguments[0].tensor.dims
    x = np.arange(np.prod(dims, dtype=int)).reshape(dims).astype(ELEMENT_TYPES[element].dtype)
    interpreter = Interpreter(module, None, InterpreterVariables())
    compiled = Traced(module, "main").compile(context=Context("test"))
    for first, given in ((True, x), (False, np.zeros_like(x))):
        found = interpreter(given, np.array(first))[0], compiled(given, np.array(first))
        assert all(a.dtype == x.dtype and a.tobytes() == x.tobytes() for a in found)
