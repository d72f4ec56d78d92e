"""The verifier of kernel programs: known kernels, operand and result types, attributes, functions that are called.

The reader checks SSA form: each name is defined once, before its use. A violation is a Problem at the kernel.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

from ....lowering.graph.types import ElementType
from ....lowering.text.attributes import Attribute, Dense, Number, Numbers, Symbol
from ....runtime.errors import Label, Position, Problem
from ....runtime.records import dataclass
from .kernel_program import CHAIN, COMPOSITE, HANDLE, HANDLER, Body, Function, Kernel, Program, pairs_of
from .kernel_table import OPEN, RETURN, SIGNATURES, KernelType

MAXIMUM_ELEMENTS = 1 << 28
"""Maximum number of elements of a tensor that attributes describe."""


def verify_program(program: Program) -> None:
    """Raise a Problem unless the program follows the rules."""
    verifier = Verifier(program)
    for function in program.functions:
        verifier.function(function)


def wrong(kernel: Kernel, rule: str, position: Position | None = None, help: str | None = None,
          labels: tuple[Label, ...] = ()) -> Problem:
    """Return a Problem that names the kernel and its rule."""
    return Problem(f"{kernel.name} {rule}", position or kernel.position, kind="kernel", help=help, labels=labels)


@dataclass(frozen=True, slots=True)
class Verifier:
    """The check of a program's kernels against their rules."""
    program: Program

    def function(self, function: Function) -> None:
        self.body(function.body)
        check_returned(function.body, function.result_types, f"the function @{function.name}")

    def body(self, body: Body) -> None:
        for kernel in body.kernels:
            self.kernel(kernel)
            for region in kernel.regions:
                self.body(region)

    def kernel(self, kernel: Kernel) -> None:
        signature = SIGNATURES.get(kernel.name)
        if signature is None and kernel.name not in OPEN:
            raise Problem(f"there is no kernel {kernel.name}", kernel.position, kind="symbol")
        if kernel.regions and kernel.name not in ("tfrt.if", "tfrt.repeat.i32"):
            raise wrong(kernel, f"has no regions, found {len(kernel.regions)}")
        if signature is not None:
            check_fixed(kernel, signature)
            self.check_functions(kernel)
            return
        match kernel.name:
            case "tfrt.merge.chains":
                check_results(kernel, (CHAIN,))
            case "corert.executeop" | "corert.executeop.seq":
                check_execute(kernel)
            case "corert.execute_crt_op":
                check_composite(kernel)
            case "tfrt.call":
                self.check_call(kernel, "callee", kernel.operand_types, kernel.result_types)
            case "tfrt.if" | "tfrt.repeat.i32":
                check_regions(kernel)
            case "tfrt.while":
                self.check_while(kernel)
            case "corert.while":
                self.check_tensor_while(kernel)
            case _:
                self.check_branches(kernel)

    # Functions that a kernel calls

    def callee(self, kernel: Kernel, value: Attribute | None, what: str) -> Function:
        if not isinstance(value, Symbol):
            raise wrong(kernel, f"needs a function as its attribute {what}")
        name = "::".join(value.path)
        if name not in self.program.by_name:
            raise wrong(kernel, f"calls @{name}, which the program does not have",
                        help=f"it has {', '.join(f'@{n}' for n in self.program.by_name)}")
        return self.program.by_name[name]

    def check_call(self, kernel: Kernel, attribute: str, operands: tuple[str, ...], results: tuple[str, ...]) -> None:
        self.check_callee(kernel, self.callee(kernel, kernel.attributes.get(attribute), attribute), operands, results)

    def check_callee(self, kernel: Kernel, callee: Function, operands: tuple[str, ...], results: tuple[str, ...]) -> None:
        if (callee.argument_types, callee.result_types) != (operands, results):
            raise wrong(kernel, f"calls @{callee.name} as {typed(operands, results)}, but it is "
                                f"{typed(callee.argument_types, callee.result_types)}",
                        labels=(Label(callee.position, "the function is here"),))

    def check_functions(self, kernel: Kernel) -> None:
        """Check the functions among the attributes of a kernel of fixed types: composite operations."""
        if kernel.name != "corert.make_composite_op":
            return
        callee = self.callee(kernel, kernel.attributes.get("fn"), "fn")
        found = callee.argument_types, callee.result_types
        if found[0][:1] != (CHAIN,) or found[1][:1] != (CHAIN,):
            found = (CHAIN, *found[0]), (CHAIN, *found[1])
        if {*found[0][1:], *found[1][1:]} - {HANDLE}:
            raise wrong(kernel, f"takes a function of a chain and tensor handles, @{callee.name} is "
                                f"{typed(callee.argument_types, callee.result_types)}",
                        labels=(Label(callee.position, "the function is here"),))

    def check_branches(self, kernel: Kernel) -> None:
        """Check tfrt.cond, tfrt.case and corert.cond: a predicate, then the operands of the branches."""
        predicate = {"tfrt.cond": "i1", "tfrt.case": "i32", "corert.cond": HANDLE}[kernel.name]
        check_first(kernel, predicate)
        if kernel.name == "corert.cond":
            check_chained(kernel, kernel.operand_types[1:])
        if kernel.name == "tfrt.case":
            branches = kernel.attributes.get("branches")
            if not isinstance(branches, tuple) or not branches:
                raise wrong(kernel, "needs functions as its attribute branches")
            callees = [self.callee(kernel, value, "branches") for value in branches]
        else:
            callees = [self.callee(kernel, kernel.attributes.get(name), name) for name in ("a_true_fn", "b_false_fn")]
        for callee in callees:
            self.check_callee(kernel, callee, kernel.operand_types[1:], kernel.result_types)

    def check_while(self, kernel: Kernel) -> None:
        check_first(kernel, "i1")
        passed = kernel.operand_types[1:]
        check_results(kernel, passed)
        self.check_call(kernel, "body_fn", passed, (*passed, "i1"))

    def check_tensor_while(self, kernel: Kernel) -> None:
        types = kernel.operand_types
        check_chained(kernel, types)
        check_results(kernel, types)
        self.check_call(kernel, "a_cond_fn", types, (CHAIN, HANDLE))
        self.check_call(kernel, "b_body_fn", types, types)


# Operands and results

def typed(operands: tuple[str, ...], results: tuple[str, ...]) -> str:
    return f"({', '.join(operands)}) -> ({', '.join(results)})"


def check_fixed(kernel: Kernel, signature: KernelType) -> None:
    """Check types and attributes of a kernel with a line in the table."""
    check_operands(kernel, signature.operands)
    check_results(kernel, signature.results)
    for name, kind in signature.attributes.items():
        check_attribute(kernel, name, kind)
    if "shape" in signature.attributes:
        check_filling(kernel)
    if kernel.name.startswith("tfrt.constant."):
        check_constant(kernel)
    if kernel.name.startswith("corert.op_attrs_set"):
        check_setter(kernel)


def check_operands(kernel: Kernel, types: tuple[str, ...]) -> None:
    if len(kernel.operands) != len(types):
        missing = CHAIN in types[len(kernel.operands):]
        raise wrong(kernel, f"takes ({', '.join(types)}), found {len(kernel.operands)} "
                            f"operand{'s' * (len(kernel.operands) != 1)}",
                    help="the chain says what has to be done first; tfrt.new.chain makes one" if missing else None)
    for number, (value, type) in enumerate(zip(kernel.operands, types)):
        if value.type != type:
            raise wrong(kernel, f"takes a {type} as operand {number}, %{value.name} is a {value.type}",
                        labels=(Label(value.position, "it comes from here"),))


def check_results(kernel: Kernel, types: tuple[str, ...]) -> None:
    if kernel.result_types != types:
        raise wrong(kernel, f"gives ({', '.join(types)}), not ({', '.join(kernel.result_types)})")


def check_first(kernel: Kernel, type: str) -> None:
    check_operands(kernel, (type, *kernel.operand_types[1:]) if kernel.operands else (type,))


def check_chained(kernel: Kernel, operands: tuple[str, ...]) -> None:
    """Check a chain and tensor handles, as operands and as results."""
    for what, types in (("takes", operands), ("gives", kernel.result_types)):
        if types[:1] != (CHAIN,) or set(types[1:]) - {HANDLE}:
            raise wrong(kernel, f"{what} a chain and then tensor handles, not ({', '.join(types)})")


def check_returned(body: Body, types: tuple[str, ...], owner: str) -> None:
    found = tuple(v.type for v in body.returned)
    if len(found) != len(types):
        raise Problem(f"{RETURN} has {len(found)} operand{'s' * (len(found) != 1)}, but {owner} gives {len(types)}",
                      body.end, kind="kernel")
    for number, (value, type) in enumerate(zip(body.returned, types)):
        if value.type != type:
            raise Problem(f"{RETURN}: operand {number}, %{value.name}, is a {value.type}, but {owner} gives a {type}",
                          body.end, kind="kernel", labels=(Label(value.position, "it comes from here"),))


def check_regions(kernel: Kernel) -> None:
    """Check tfrt.if and tfrt.repeat.i32: their operands are the regions' arguments, the regions' results their results."""
    is_if = kernel.name == "tfrt.if"
    check_first(kernel, "i1" if is_if else "i32")
    if not 1 <= len(kernel.regions) <= 1 + is_if:
        raise wrong(kernel, f"has {'one region or two' if is_if else 'one region'}, found {len(kernel.regions)}")
    if is_if and len(kernel.regions) == 1 and kernel.results:
        raise wrong(kernel, "with results needs a region for else")
    passed = kernel.operands[1:]
    if len(set(passed)) < len(passed):
        raise wrong(kernel, "passes the same value twice")
    if not is_if:
        check_results(kernel, kernel.operand_types[1:])
    for region in kernel.regions:
        if tuple(v.type for v in region.arguments) != kernel.operand_types[1:]:
            raise wrong(kernel, "passes operands of other types than its region's arguments", region.position)
        check_returned(region, kernel.result_types, kernel.name)


# Operations of the core runtime

def check_execute(kernel: Kernel) -> None:
    is_ordered = kernel.name.endswith(".seq")
    context = (HANDLER, CHAIN) if is_ordered else (HANDLER,)
    check_operands(kernel, context + (HANDLE,) * max(len(kernel.operands) - len(context), 0))
    check_results(kernel, context[1:] + (HANDLE,) * max(len(kernel.results) - len(context) + 1, 0))
    check_attribute(kernel, "op_name", "string")
    check_pairs(kernel)


def check_composite(kernel: Kernel) -> None:
    check_operands(kernel, (COMPOSITE, *(HANDLE,) * max(len(kernel.operands) - 1, 0)))
    check_results(kernel, (HANDLE,) * len(kernel.results))
    check_pairs(kernel)


def check_pairs(kernel: Kernel) -> None:
    """Check that `op_attrs` and `op_func_attrs` are lists of a name and a value, of a name and a function."""
    names: set[str] = set()
    for attribute in ("op_attrs", "op_func_attrs"):
        pairs = kernel.attributes.get(attribute, ())
        if not isinstance(pairs, tuple) or not all(map(is_pair, pairs)):
            raise wrong(kernel, f"has a key and a value in each of its {attribute}, the key a string",
                        help=f'{attribute} = [["axis", 1 : i32]]')
        for key, value in pairs_of(kernel.attributes, attribute):
            if attribute == "op_func_attrs" and not isinstance(value, Symbol):
                raise wrong(kernel, f"has functions in op_func_attrs, {key} is none")
            if key in names:
                raise wrong(kernel, f"has the attribute {key} twice")
            names.add(key)


def is_pair(pair: Attribute) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)


# Attributes

def check_attribute(kernel: Kernel, name: str, kind: str) -> None:
    if name not in kernel.attributes:
        raise wrong(kernel, f"needs the attribute {name}")
    if not KINDS[kind](kernel.attributes[name]):
        raise wrong(kernel, f"needs {WORDS[kind]} as its attribute {name}")


def is_number(value: Attribute) -> bool:
    return isinstance(value, bool | Number)


def is_list_of(test: Callable[[Attribute], bool]) -> Callable[[Attribute], bool]:
    return lambda value: (isinstance(value, Numbers) and test is not is_text) or (
        isinstance(value, tuple) and all(map(test, value)))


def is_extent(value: Attribute) -> bool:
    return isinstance(value, Number) and isinstance(value.value, int) and value.value >= 0


def is_text(value: Attribute) -> bool:
    return isinstance(value, str)


KINDS: Mapping[str, Callable[[Attribute], bool]] = {
    "string": is_text, "symbol": lambda value: isinstance(value, Symbol), "number": is_number,
    "dense": lambda value: isinstance(value, Dense), "any": lambda value: True,
    "integers": lambda value: isinstance(value, tuple) and all(map(is_extent, value)), "numbers": is_list_of(is_number),
    "strings": is_list_of(is_text), "list": lambda value: isinstance(value, tuple)}
WORDS = {"string": "a string", "symbol": "a function", "number": "a number",
         "dense": "a constant, as in dense<1> : tensor<i32>",
         "integers": "a list of extents that are not negative", "numbers": "a list of numbers",
         "strings": "a list of strings", "list": "a list", "any": "a value"}


def check_filling(kernel: Kernel) -> None:
    """Check that there are as many values as the shape has elements, or one for all."""
    shape, values = kernel.attributes["shape"], kernel.attributes["value"]
    assert isinstance(shape, tuple) and isinstance(values, tuple)
    size = 1
    for extent in shape:
        assert isinstance(extent, Number)
        size *= int(extent.value)
    if size > MAXIMUM_ELEMENTS:
        raise wrong(kernel, f"makes {size} elements, more than {MAXIMUM_ELEMENTS}")
    if len(values) not in (1, size):
        raise wrong(kernel, f"has {len(values)} values for a shape of {size} elements", help="one value fills all of them")
    element = kernel.name.removeprefix("corert.create_dense_tensor.")
    for value in values:
        if element != kernel.name and not fits(value, element):
            raise wrong(kernel, f"needs numbers of type {element} as its attribute value",
                        help=f"write the type behind each, as in [1 : {element}]")


def fits(value: Attribute, type: str) -> bool:
    """True if a number is of the type."""
    return type == "i1" if isinstance(value, bool) else isinstance(value, Number) and value.type.name == type


def check_constant(kernel: Kernel) -> None:
    type = kernel.name.removeprefix("tfrt.constant.")
    if not fits(kernel.attributes["value"], type):
        raise wrong(kernel, f"needs a number of type {type} as its attribute value")


def check_setter(kernel: Kernel) -> None:
    """Check that the value of an attribute has the type in the kernel's name."""
    family, _, type = kernel.name.rpartition(".")
    value = kernel.attributes["value"]
    values = value if family.endswith("_array") and isinstance(value, tuple) else (value,)
    if not all(is_of(item, type) for item in values):
        raise wrong(kernel, f"needs {'a list of ' * (values is value)}{SETTER_WORDS.get(type, f'numbers of type {type}')} "
                            "as its attribute value")


SETTER_WORDS = {"bool": "true or false", "str": "a string", "dense": "a constant, as in dense<1> : tensor<i32>",
                "aggregate": "a list", "shape": "a shape, as in #corert.shape<1x?x3> or [1, 3]", "dtype": "a type, as in f32"}


def is_of(value: Attribute, type: str) -> bool:
    """True if the setter of `type` takes the attribute."""
    match type:
        case "bool":
            return isinstance(value, bool) or fits(value, "i1")
        case "str":
            return isinstance(value, str)
        case "dense":
            return isinstance(value, Dense)
        case "aggregate":
            return isinstance(value, tuple)
        case "shape":
            from .shape_attributes import is_shape
            return is_shape(value)
        case "dtype":
            return isinstance(value, ElementType)
        case _:
            return fits(value, type)
