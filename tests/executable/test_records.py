"""`runtime.records.dataclass` makes what the standard library's makes."""
from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from tosaic.runtime import records

Make = Callable[..., Callable[[type], Any]]
OPTIONS = [{"frozen": frozen, "slots": slots, "eq": eq} for frozen in (False, True) for slots in (False, True)
           for eq in (False, True)]


def point(make: Make, **options: bool) -> Any:
    class Point:
        """A point."""
        x: int
        name: str = dataclasses.field(default="p", repr=False)
        tags: list[int] = dataclasses.field(default_factory=list, compare=False)
        size: float = dataclasses.field(init=False, default=0.5)
        made: dict[str, int] = dataclasses.field(init=False, default_factory=dict, compare=False)
        last: Any = None

        def double(self) -> int:
            return 2 * self.x

    return make(**options)(Point)


def outcome(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_as_the_librarys(options: dict[str, bool]) -> None:
    seen = []
    for make in (records.dataclass, dataclasses.dataclass):
        Point = point(make, **options)
        one, same, other = Point(1), Point(1, "p", [2]), Point(x=2, last=Point(3))
        one_again = dataclasses.replace(other, x=1, last=None)
        seen.append([
            repr(one), repr(other), one == same, one == other, one != same, one == one_again, one == 1,
            outcome(lambda: hash(one) == hash(same)), outcome(lambda: Point()), outcome(lambda: Point(1, 2, 3, 4, 5)),
            outcome(lambda: Point(1, z=2)), outcome(lambda: setattr(one, "x", 3)), one.x, outcome(lambda: delattr(same, "x")),
            options["slots"] or outcome(lambda: setattr(one, "unknown", 3)), one.tags is not Point(1).tags, one.size, one.made,
            one.double(),
            [f.name for f in dataclasses.fields(one)], Point.__match_args__, dataclasses.asdict(other), Point.__doc__,
            hasattr(one, "__dict__"), copy.copy(other).last == other.last, repr(copy.deepcopy(other))])
    assert seen[0] == seen[1]


@records.dataclass(frozen=True, slots=True)
class Base:
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", self.y + 1)


@records.dataclass(frozen=True, slots=True, weakref_slot=True)
class Derived(Base):
    z: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.x}>"


@dataclasses.dataclass(frozen=True, slots=True)
class Library(Base):
    w: int = 4


def test_inheritance() -> None:
    derived, library = Derived(1, z=(3,)), Library(1, 2, 5)
    assert (derived.x, derived.y, derived.z, repr(derived)) == (1, 1, (3,), "<1>")
    assert (library.x, library.y, library.w) == (1, 3, 5)
    assert derived == Derived(1, 0, (3,)) and derived != Base(1) and hash(derived) == hash(Derived(1, 0, (3,)))
    for each in (derived, library, Base(1)):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            each.x = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="frozen"):
        records.dataclass(slots=True)(type("Wrong", (Base,), {"__annotations__": {"v": int}}))


def test_pickles() -> None:
    assert pickle.loads(pickle.dumps(Derived(1, 5, (2,)))).z == (2,)
    assert pickle.loads(pickle.dumps(Base(7, 1))).y == 2


def test_a_record_in_itself_has_a_text() -> None:
    Point = point(records.dataclass)
    one = Point(1)
    one.last = one
    assert "..." in repr(one)


def test_methods_are_made_once() -> None:
    Point = point(records.dataclass, frozen=True)
    first = Point.__init__
    Point(1)
    made = Point.__init__
    Point(2)
    assert first is not made is Point.__init__
    assert made.__qualname__ == first.__qualname__ and made.__name__ == "__init__"
