"""The custom forms of kernels, newer and document's: each returns the operands, attributes, result types and regions."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ....lowering.graph.types import ELEMENT_TYPES, I64
from ....lowering.text.attributes import Dictionary, Number, Symbol
from ....runtime.errors import Position, Problem
from .kernel_program import CHAIN, HANDLE, Body, Value
from .kernel_table import SIGNATURES
from .program_reader import Parts
from .scanner import COUNT

if TYPE_CHECKING:
    from .program_reader import ProgramReader

Form: TypeAlias = Callable[["ProgramReader", int, Position], Parts]
CONSTANT, DENSE, GET = "tfrt.constant.", "corert.const_dense_tensor", "corert.get_op_handler"


def read_form(reader: ProgramReader, name: str, named: int, position: Position) -> Parts:
    """Read the text after a kernel's name. `named` is the number of results that the text names."""
    form = FORMS.get(name)
    if form is not None:
        return form(reader, named, position)
    if name not in SIGNATURES:
        raise Problem(f"there is no kernel {name}", position, kind="symbol")
    return read_fixed(reader, name, position)


# Kernels with fixed types

def read_fixed(reader: ProgramReader, name: str, position: Position) -> Parts:
    """Read `kernel %a, %b`, or in the document's form `kernel(%a, %b)`; a name in quotes, data, attributes, types."""
    scanner, signature = reader.scanner, SIGNATURES[name]
    attributes: Dictionary = {}
    operands: list[Value] = []
    closes = scanner.accept("(")
    while (scanner.sees("%") and signature.operands) or ("name" in signature.attributes and scanner.sees('"')):
        if scanner.sees('"'):
            attributes["name"] = scanner.string()
            break
        operands.append(reader.use())
        if not scanner.accept(",") and not ("name" in signature.attributes and scanner.sees('"')):
            break
    if closes:
        scanner.expect(")")
    attributes |= read_data(reader, name)
    attributes |= reader.attributes.optional_dictionary()
    if name == GET and not operands:
        operands.append(reader.new_chain(position))
    check_types(reader, tuple(operands), signature.results)
    return Parts(tuple(operands), attributes, signature.results)


def read_data(reader: ProgramReader, name: str) -> Dictionary:
    """Read the number or the tensor after a constant's name."""
    if name == DENSE and not reader.scanner.sees("{"):
        return {"value": reader.attributes.dense()}
    if not name.startswith(CONSTANT) or reader.scanner.sees("{"):
        return {}
    type = name.removeprefix(CONSTANT)
    if type == "i1" and reader.scanner.sees("true"):
        return {"value": reader.attributes.value()}
    if type == "i1" and reader.scanner.sees("false"):
        return {"value": reader.attributes.value()}
    return {"value": reader.attributes.number(ELEMENT_TYPES[type])}


def check_types(reader: ProgramReader, operands: tuple[Value, ...], results: tuple[str, ...]) -> None:
    """Read the types after a kernel that does not need them: those of the operands, or a signature."""
    scanner = reader.scanner
    if not scanner.accept(":"):
        return
    position = scanner.here()
    if not scanner.sees("("):
        reader.agree(operands, reader.types(), position)
    elif (found := reader.signature(operands)) != results:
        raise Problem(f"it gives ({', '.join(results)}), but its type here is ({', '.join(found)})", position, kind="type")


# Operations of the core runtime

def read_execute(reader: ProgramReader, named: int, position: Position, is_ordered: bool = False) -> Parts:
    """Read `(%handler) "op"(%a) {attributes} : 1`; without a number there are as many results as are named."""
    scanner = reader.scanner
    context = reader.passed()
    needed = 1 + is_ordered
    if len(context) != needed:
        name, takes = ("corert.executeop.seq", "its op handler and a chain") if is_ordered else (
            "corert.executeop", "its op handler")
        raise Problem(f"{name} takes {takes} in the first brackets, found {len(context)} operands", position, kind="type",
                      help=None if is_ordered else "corert.executeop.seq takes a chain, too")
    op_name = scanner.string()
    operands = reader.passed()
    given = reader.attributes.optional_dictionary()
    count = int(scanner.take(COUNT).group()) if scanner.accept(":") else max(named - is_ordered, 0)
    types = ((CHAIN,) if is_ordered else ()) + (HANDLE,) * count
    return Parts((*context, *operands), {"op_name": op_name, **split(given)}, types)


def read_ordered(reader: ProgramReader, named: int, position: Position) -> Parts:
    return read_execute(reader, named, position, is_ordered=True)


def split(given: Dictionary) -> Dictionary:
    """Return an operation's attributes as pairs, those that are functions separately."""
    functions = tuple((key, value) for key, value in given.items() if isinstance(value, Symbol))
    others = tuple((key, value) for key, value in given.items() if not isinstance(value, Symbol))
    return {"op_attrs": others, "op_func_attrs": functions}


# Calls and control flow

def read_merge(reader: ProgramReader, named: int, position: Position) -> Parts:
    operands = reader.passed() if reader.scanner.sees("(") else reader.uses() if reader.scanner.sees("%") else ()
    check_types(reader, operands, (CHAIN,))
    return Parts(operands, {}, (CHAIN,))


def read_call(reader: ProgramReader, named: int, position: Position) -> Parts:
    callee = Symbol((reader.scanner.symbol(),))
    operands = reader.passed()
    return Parts(operands, {"callee": callee}, typed(reader, operands))


def typed(reader: ProgramReader, operands: tuple[Value, ...]) -> tuple[str, ...]:
    """`: (types) -> types`"""
    reader.scanner.expect(":")
    return reader.signature(operands)


def read_branches(reader: ProgramReader, named: int, position: Position) -> Parts:
    """`tfrt.cond %p @then @else (%a) : (types) -> types`"""
    predicate = reader.use()
    functions = two_functions(reader, "a_true_fn", "b_false_fn")
    operands = reader.passed()
    return Parts((predicate, *operands), functions, typed(reader, operands))


def two_functions(reader: ProgramReader, first: str, second: str) -> Dictionary:
    return {first: Symbol((reader.scanner.symbol(),)), second: Symbol((reader.scanner.symbol(),))}


def read_case(reader: ProgramReader, named: int, position: Position) -> Parts:
    """`tfrt.case %i [@f0, @f1] (%a) : (types) -> types`"""
    scanner = reader.scanner
    index = reader.use()
    scanner.expect("[")
    branches = [Symbol((scanner.symbol(),))]
    while scanner.accept(","):
        branches.append(Symbol((scanner.symbol(),)))
    scanner.expect("]")
    operands = reader.passed()
    return Parts((index, *operands), {"branches": tuple(branches)}, typed(reader, operands))


def read_while(reader: ProgramReader, named: int, position: Position) -> Parts:
    """`tfrt.while %p @body(%a) parallel_iterations(1) : (types) -> types`"""
    scanner, predicate = reader.scanner, reader.use()
    attributes: Dictionary = {"body_fn": Symbol((scanner.symbol(),))}
    operands = reader.passed()
    if scanner.accept("parallel_iterations"):
        scanner.expect("(")
        attributes["parallel_iterations"] = Number(int(scanner.take(COUNT).group()), I64)
        scanner.expect(")")
    return Parts((predicate, *operands), attributes, typed(reader, operands))


def read_if(reader: ProgramReader, named: int, position: Position) -> Parts:
    """Read `tfrt.if %p, %a : (types) -> types {...} else {...}`; the regions use the operands by their names outside."""
    condition, *passed = reader.uses()
    results = typed(reader, tuple(passed))
    regions = [reader.body(as_arguments(passed, position))]
    if reader.scanner.accept("else"):
        regions.append(reader.body(as_arguments(passed, position)))
    return Parts((condition, *passed), {}, results, tuple(regions))


def read_repeat(reader: ProgramReader, named: int, position: Position) -> Parts:
    """`tfrt.repeat.i32 %n, %a : types {...}`"""
    count, *passed = reader.uses()
    types: tuple[str, ...] = ()
    if reader.scanner.accept(":"):
        where, types = reader.scanner.here(), reader.types("{")
        reader.agree(passed, types, where)
    elif passed:
        raise reader.scanner.expected("':' and the types of what is passed")
    body: Body = reader.body(as_arguments(passed, position))
    return Parts((count, *passed), {}, types, (body,))


def as_arguments(values: list[Value], position: Position) -> list[tuple[str, str, Position]]:
    """Return the operands that are passed to a region, as its arguments."""
    twice = next((v for n, v in enumerate(values) if v in values[:n]), None)
    if twice is not None:
        raise Problem(f"%{twice.name} is passed twice, but the region has one name for it", position, kind="symbol")
    return [(value.name or "", value.type, value.position) for value in values]


def read_tensor_cond(reader: ProgramReader, named: int, position: Position) -> Parts:
    """`corert.cond %p @then @else (%ch, %a) : (handles) -> (handles)`"""
    predicate = reader.use()
    functions = two_functions(reader, "a_true_fn", "b_false_fn")
    chain, operands, results = chained(reader)
    return Parts((predicate, chain, *operands), functions, results)


def read_tensor_while(reader: ProgramReader, named: int, position: Position) -> Parts:
    """`corert.while @condition @body (%ch, %a) : (handles) -> (handles)`"""
    functions = two_functions(reader, "a_cond_fn", "b_body_fn")
    chain, operands, results = chained(reader)
    return Parts((chain, *operands), functions, results)


def chained(reader: ProgramReader) -> tuple[Value, tuple[Value, ...], tuple[str, ...]]:
    """Read `(%ch, %a) : (handles) -> (handles)`; the types omit the chain."""
    position = reader.scanner.here()
    chain, *operands = reader.passed() or (None,)
    if chain is None or chain.type != CHAIN:
        raise Problem("expected a chain as the first operand in the brackets", position, kind="type",
                      help="a chain comes from tfrt.new.chain, or from the kernel that has to be done first")
    return chain, tuple(operands), (CHAIN, *typed(reader, tuple(operands)))


FORMS: dict[str, Form] = {
    "corert.executeop": read_execute, "corert.executeop.seq": read_ordered, "tfrt.merge.chains": read_merge,
    "tfrt.call": read_call, "tfrt.cond": read_branches, "tfrt.case": read_case, "tfrt.while": read_while,
    "tfrt.if": read_if, "tfrt.repeat.i32": read_repeat, "corert.cond": read_tensor_cond,
    "corert.while": read_tensor_while}
"""Forms of the kernels whose types depend on their use."""
