"""The grammar's rules for TensorFlow's executor and for its design document: from the parts of a rule to a node of the syntax
tree. `rules.py` has the other rules.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .syntax import AttributeSyntax, BlockSyntax, DictionarySyntax, InlineSyntax, OperationSyntax, RegionSyntax, TypesSyntax

if TYPE_CHECKING:
    from lark import Token

Option = tuple[InlineSyntax, tuple[Any, ...]]
"""An option of an executor operation: the attribute, and the operands after it."""
WRAPS = "wraps"
"""Spelling of a short-form island in the syntax tree."""


class ExecutorRules:
    """One method per rule, as in `Rules`."""

    def graph(self, name: Token, types: Any, region: RegionSyntax,
              attributes: DictionarySyntax | None) -> OperationSyntax:
        return OperationSyntax(name, str(name), None, types_syntax(types), attributes=attributes, regions=(region,))

    def island(self, name: Token, control: tuple[Token, ...] | None, types: Token | None, region: RegionSyntax,
               attributes: DictionarySyntax | None) -> OperationSyntax:
        return OperationSyntax(name, str(name), control, types_syntax(types), attributes=attributes, regions=(region,))

    def wrapping(self, name: Token, control: tuple[Token, ...] | None, inner: OperationSyntax) -> OperationSyntax:
        block = BlockSyntax(None, (), (inner,))
        region = RegionSyntax(inner.name, inner.name, (block,), 1 + max((r.depth for r in inner.regions), default=0))
        return OperationSyntax(name, WRAPS, control, regions=(region,))

    def control(self, operands: Token | None) -> tuple[Token, ...]:
        return (operands,) if operands else ()

    def node(self, name: Token, token: Token | None, operands: Token | None, *rest: Any) -> OperationSyntax:
        *options, before, types, after = rest
        controls = [o for option in options for o in option[1]]
        return OperationSyntax(name, str(name), tuple(filter(None, (token, operands, *controls))), types_syntax(types),
                               inline=tuple(o[0] for o in options), attributes=joined(before, after))

    def option_outputs(self, number: Token, controls: tuple[Token, ...] | None) -> Option:
        return InlineSyntax(number.update(value="num_outs"), AttributeSyntax(number, None)), controls or ()

    def option_frame(self, name: Token) -> Option:
        return InlineSyntax(name.update(value="frame_name"), AttributeSyntax(name, None)), ()

    def option_iterations(self, number: Token) -> Option:
        return InlineSyntax(number.update(value="parallel_iterations"), AttributeSyntax(number, None)), ()

    def option_constant(self, name: Token) -> Option:
        value = AttributeSyntax(name.update("WORD", "true"), None)
        return InlineSyntax(name.update(value="is_constant"), value), ()

    def executor_end(self, name: Token, operands: Token | None, types: tuple[Token, ...] | None,
                     attributes: DictionarySyntax | None) -> OperationSyntax:
        return OperationSyntax(name, str(name), operands, TypesSyntax(None, types or ()), attributes=attributes)

    def unquoted(self, name: Token, operands: tuple[Token, ...] | None, attributes: DictionarySyntax | None,
                 types: Any) -> OperationSyntax:
        return OperationSyntax(name, str(name), operands or (), types_syntax(types), attributes=attributes)

    def literals(self, *operands: Token) -> tuple[Token, ...]:
        return operands

    def splat(self, name: Token, type: Token, number: Token) -> OperationSyntax:
        value = AttributeSyntax(number, None)
        return OperationSyntax(name, "constant", types=TypesSyntax(None, None, (type,)), initial=value)

    def colon_entry(self, key: Token, value: AttributeSyntax) -> tuple[Token, AttributeSyntax | None]:
        return key.update(value=key[:-1].rstrip()), value


def types_syntax(types: Any) -> TypesSyntax:
    """Return the types of `: (types) -> types`, `: types` or nothing."""
    if types is None:
        return TypesSyntax(None)
    return TypesSyntax(None, None, types) if isinstance(types, tuple) and not isinstance(types, str) else TypesSyntax(types)


def joined(before: DictionarySyntax | None, after: DictionarySyntax | None) -> DictionarySyntax | None:
    """Join two dictionaries of one operation."""
    if before is None or after is None:
        return before or after
    return after._replace(entries=before.entries + after.entries)
