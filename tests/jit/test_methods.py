"""A jitted method follows its object: a changed attribute is seen, or refused, and the object is not kept alive."""
from __future__ import annotations

import enum
import functools
import gc
import pickle
import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import tosaic

X = np.arange(4, dtype=np.float32)


class Mode(enum.Enum):
    PLAIN = 1
    DOUBLE = 2


@dataclass
class Layer:
    weight: Any
    bias: float = 0.0
    inner: Any = None

    def __call__(self, x: Any) -> Any:
        y = x * self.weight + self.bias
        return self.inner(y) if self.inner is not None else y


class Net:
    factor = 1.0

    def __init__(self) -> None:
        self.gain, self.mode, self.sizes, self.table = 2.0, Mode.PLAIN, [1, 2], {"a": 1.0}
        self.layer = Layer(np.full(4, 3, np.float32), inner=Layer(np.float32(1)))
        self.calls, self.lock = 0, object()

    @property
    def scale(self) -> float:
        return self.gain * self.factor

    @tosaic.jit
    def apply(self, x: Any) -> Any:
        y = self.layer(x) * self.scale + self.table["a"] + sum(self.sizes)
        return y * 2 if self.mode is Mode.DOUBLE else y

    def plainly(self, x: Any) -> Any:
        return Net.apply.function(self, x)


def change(net: Net, how: str) -> None:
    match how:
        case "a number": net.gain = 5.0
        case "an attribute of the class": net.factor = 3.0
        case "an enum": net.mode = Mode.DOUBLE
        case "an element of a list": net.sizes[0] = 7
        case "an element of a dict": net.table["a"] = 4.0
        case "an element of an array": net.layer.weight[1] = 9
        case "another array": net.layer.weight = np.ones(4, np.float32)
        case "an object inside an object": net.layer.inner.bias = 0.5
        case "another object": net.layer = Layer(np.float32(2))


@pytest.mark.parametrize("how", ["a number", "an attribute of the class", "an enum", "an element of a list",
                                 "an element of a dict", "an element of an array", "another array",
                                 "an object inside an object", "another object"])
def test_a_changed_attribute_is_seen(how: str) -> None:
    net = Net()
    np.testing.assert_allclose(net.apply(X), net.plainly(X), rtol=1e-6)
    before = net.apply(X)
    change(net, how)
    np.testing.assert_allclose(net.apply(X), net.plainly(X), rtol=1e-6)
    assert not np.array_equal(net.apply(X), before)


def test_what_the_method_does_not_read_compiles_nothing_again() -> None:
    net = Net()
    net.apply(X)
    for _ in range(3):
        net.calls += 1
        net.lock = object()
        net.apply(X)
    assert net.apply.cache_info().compiles == 1 and net.apply._code.states == 1


def test_a_state_that_comes_back_is_not_compiled_again() -> None:
    traced = []

    class Toggle:
        on = False

        @tosaic.jit
        def apply(self, x: Any) -> Any:
            traced.append(self.on)
            return x * 2 if self.on else x

    toggle = Toggle()
    for on in (False, True, False, True):
        toggle.on = on
        np.testing.assert_array_equal(toggle.apply(X), X * (1 + on))
    assert traced == [False, True]


def test_the_object_goes_when_nobody_holds_it_and_its_code_with_it() -> None:
    net = Net()
    net.apply(X)
    net.self = net  # type: ignore[attr-defined]
    code, gone = weakref.ref(net.apply._code), weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None and code() is None


def test_each_object_has_its_own_code_whatever_its_hash_and_equality() -> None:
    @dataclass
    class Point:
        x: float

        @tosaic.jit
        def times(self, y: Any) -> Any:
            return y * self.x

    one, two = Point(2.0), Point(2.0)
    assert one == two and Point.__hash__ is None
    np.testing.assert_array_equal(one.times(X) + two.times(X), X * 4)
    two.x = 3.0
    np.testing.assert_array_equal(one.times(X) + two.times(X), X * 5)


@pytest.mark.parametrize("read", ["getattr(self, 'value')", "(lambda: self.value)()", "helper(self)", "vars(self)['value']",
                                  "self.__dict__['value']", "[self.value for _ in range(1)][0]", "self.cached", "self.called()",
                                  "self.of_class()", "self.descriptor"])
def test_however_the_attribute_is_read(read: str) -> None:
    class Descriptor:
        def __get__(self, instance: Any, owner: Any = None) -> Any:
            return instance.value

    space: dict[str, Any] = {"tosaic": tosaic, "helper": lambda owner: owner.value, "Descriptor": Descriptor}
    exec(f"class Reader:\n"
         f"    value, shared, descriptor = 1.0, 1.0, Descriptor()\n"
         f"    def called(self): return self.value\n"
         f"    @classmethod\n"
         f"    def of_class(cls): return cls.shared\n"
         f"    @property\n"
         f"    def cached(self): return self.called()\n"
         f"    @tosaic.jit\n"
         f"    def apply(self, x): return x * ({read})\n", space)
    reader = space["Reader"]()
    reader.value = 1.0
    np.testing.assert_array_equal(reader.apply(X), X)
    reader.value = type(reader).shared = 5.0
    np.testing.assert_array_equal(reader.apply(X), X * 5)


def test_slots_are_followed_and_an_object_without_weak_references_is_refused() -> None:
    class Slotted:
        __slots__ = ("_Slotted__hidden", "__weakref__", "gain")

        @tosaic.jit
        def apply(self, x: Any) -> Any:
            return x * self.gain

    class Bare:
        __slots__ = ("gain",)
        apply = Slotted.apply

    slotted, bare = Slotted(), Bare()
    for gain in (2.0, 3.0):
        slotted.gain = bare.gain = gain
        np.testing.assert_array_equal(slotted.apply(X), X * gain)
    with pytest.raises(tosaic.TypeProblem, match=r'put "__weakref__" into its __slots__'):
        bare.apply(X)


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value

    @tosaic.jit
    def apply(self, x: Any) -> Any:
        return x * self.value.sum() if isinstance(self.value, np.ndarray) else x


def test_large_arrays_are_followed_with_a_warning_unless_they_are_read_only() -> None:
    large = np.ones(2 << 20, np.float32)
    view = Holder(np.broadcast_to(large, large.shape))  # a view that cannot be written, of memory that can
    for holder in (Holder(large), view):
        with pytest.warns(RuntimeWarning, match=r"attribute value .* 8,388,608 bytes that may be written"):
            np.testing.assert_array_equal(holder.apply(X), X * large.sum())
            large[5] += 2
            np.testing.assert_array_equal(holder.apply(X), X * large.sum())
    large[5] = 1
    large.setflags(write=False)
    holder = Holder(large)
    np.testing.assert_array_equal(holder.apply(X), X * large.size)
    holder.value = large[:1024]
    np.testing.assert_array_equal(holder.apply(X), X * 1024)


def test_what_cannot_be_followed_is_refused_with_its_name() -> None:
    for value in (iter([1]), functools.partial(len), type("Items", (list,), {})()):
        holder = Holder([value])
        if isinstance(value, list):
            value.more = 1  # type: ignore[attr-defined]
        with pytest.raises(tosaic.TypeProblem, match=r"attribute value\[0\] of the object is an? .* cannot be seen"):
            holder.apply(X)


def test_numbers_that_are_equal_but_not_the_same_are_told_apart() -> None:
    holder = Holder(np.float32("nan"))
    for value in (np.float32("nan"), 0.0, -0.0, 1, True, 1.0, np.float32(1)):
        holder.value = value
        holder.apply(X)
        assert holder.apply._code._states[0][0].matches(holder)
    assert holder.apply._code.states == 7


def test_a_method_that_writes_what_it_reads_is_told_so() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        @tosaic.jit
        def step(self, x: Any) -> Any:
            self.count += 1
            return x + self.count

    with pytest.raises(tosaic.ValueProblem, match=r"step changes what it reads of its object while (.|\n)*Variable"):
        Counter().step(X)


def test_bound_methods_are_like_pythons() -> None:
    net = Net()
    bound = net.apply
    assert bound == net.apply and hash(bound) == hash(net.apply) and bound != Net().apply and bound.__self__ is net
    assert repr(bound) == "<tosaic.jit of apply, of a Net>" and bound.__name__ == "apply"
    assert net.apply.trace(X).inputs == ("x: tensor<4xf32>",)
    np.testing.assert_array_equal(net.apply.compile(X)(X), net.apply(X))
    np.testing.assert_array_equal(tosaic.jit(lambda x: net.apply(x) + 1)(X), net.apply(X) + 1)
    again = pickle.loads(pickle.dumps(Holder(np.ones(2, np.float32)).apply))
    np.testing.assert_array_equal(again(X), X * 2)
    np.testing.assert_array_equal(tosaic.jit(static="self")(Net.plainly)(net, X), net.apply(X))


def test_variables_and_other_jitted_methods_of_the_object_work() -> None:
    @dataclass
    class Model:
        total: Any = field(default_factory=lambda: tosaic.Variable("methods.total", initial=np.zeros(4, np.float32)))
        rate: float = 0.5

        @tosaic.jit
        def rated(self, x: Any) -> Any:
            return x * self.rate

        @tosaic.jit
        def add(self, x: Any) -> Any:
            self.total.write(self.total.read() + self.rated(x))
            return self.total.read()

    model = Model()
    np.testing.assert_array_equal(model.add(X), X * 0.5)
    model.rate = 1.0
    np.testing.assert_array_equal(model.add(X), X * 1.5)
