"""`tosaic.from_tflite`: signatures are entries by their names, inputs are called what signatures call them, variables are
shared; and whatever is wrong is said at its operator."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tosaic

from .files import Graph, Operator, Signature, Tensor, constant, file, ints

CORPUS = Path(__file__).parents[1] / "data" / "corpus"
THREE = CORPUS / "v_counter_three_functions.tflite"


@pytest.fixture
def converter() -> None:
    pytest.importorskip("tosa_converter_for_tflite")


def counter(**changes: str) -> bytes:
    """Two signatures over one variable of two floats, which an initialiser sets; nothing in it needs the converter."""
    handle = Operator("VAR_HANDLE", "", "v", (changes.get("container"), changes.get("name", "total")))
    v, two = Tensor("v", (), "resource"), (2,)
    return file(
        Graph("x", "y", [Tensor("x", two), v, Tensor("y", two)],
              [Operator("CALL_ONCE", options=ints(2)), handle, Operator("ASSIGN_VARIABLE", "v x"),
               Operator("READ_VARIABLE", "v", "y")], "set"),
        Graph("", "y", [v, Tensor("y", two)], [Operator("CALL_ONCE", options=ints(2)), handle,
                                               Operator("READ_VARIABLE", "v", "y")], "get"),
        Graph("", "", [v, constant("c", [1, 2])], [handle, Operator("ASSIGN_VARIABLE", "v c")], "NoOp"),
        signatures=[Signature(changes.get("key", "set"), 0, {"x": "value"}, {"y": "now"}),
                    Signature("get", 1, {}, {"y": "now"})])


# ---- entries, inputs, variables --------------------------------------------------------------------------------------
def test_signatures_are_entries_by_their_names() -> None:
    model = tosaic.from_tflite(counter())
    assert [e.name for e in model] == ["set", "get"] and model.get is model["get"]
    assert model["set"].inputs == ("value: tensor<2xf32>",) and model.get.inputs == ()
    assert [o.name for e in model for o in e.outputs] == ["now", "now"]
    context = tosaic.Context("entries")
    write, read = model["set"].compile(context=context), model.get.compile(context=context)
    assert read().tolist() == [1, 2]
    assert write({"value": np.array([5, 6], np.float32)}).tolist() == [5, 6] and read().tolist() == [5, 6]
    assert context.read("total").tolist() == [5, 6]


def test_variables_belong_to_the_model() -> None:
    one, other = tosaic.from_tflite(counter()), tosaic.from_tflite(counter())
    one["set"](np.array([7, 8], np.float32))
    assert one.get().tolist() == [7, 8] and other.get().tolist() == [1, 2]
    assert one.context.read("total").tolist() == [7, 8] and "total" not in tosaic.default_context
    one.context.reset()
    assert one.get().tolist() == [1, 2]


@pytest.mark.parametrize(("changes", "symbol"), [({"container": "box"}, "box/total"), ({"name": ""}, "variable")])
def test_a_container_is_a_part_of_the_name(changes: dict[str, str], symbol: str) -> None:
    context = tosaic.Context(symbol)
    tosaic.from_tflite(counter(**changes)).get.compile(context=context)()
    assert list(context.snapshot()) == [symbol]


def test_load_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(counter())
    with path.open("rb") as opened:
        for model in (tosaic.load(path), tosaic.load(counter()), tosaic.from_tflite(path), tosaic.from_tflite(str(path)),
                      tosaic.from_tflite(opened)):
            assert str(model) == str(tosaic.from_tflite(counter()))


def test_a_file_without_signatures_has_main_and_the_names_of_its_tensors() -> None:
    graph = Graph("a b", "b a", [Tensor("a", (2,)), Tensor("b", (1,))])
    model = tosaic.from_tflite(file(graph))
    assert [e.name for e in model] == ["main"] and model.main.inputs == ("a: tensor<2xf32>", "b: tensor<1xf32>")
    assert [o.name for o in model.main.outputs] == ["b", "a"]
    y, x = model(np.ones(2, np.float32), np.zeros(1, np.float32))
    assert (x.tolist(), y.tolist()) == ([1, 1], [0])


def test_the_only_signature_is_also_called_main() -> None:
    graph = Graph("a", "a", [Tensor("a", (2,))])
    model = tosaic.from_tflite(file(graph, signatures=[Signature("serving_default", 0, {"a": "a"})]))
    assert model.main is model.serving_default is model["main"] and [e.name for e in model] == ["serving_default"]
    assert not hasattr(tosaic.from_tflite(counter()), "main")


def test_one_subgraph_may_have_two_signatures() -> None:
    graph = Graph("a", "a", [Tensor("a", (2,))])
    model = tosaic.from_tflite(file(graph, signatures=[Signature("one", 0, {"a": "x"}), Signature("two", 0, {"a": "y"})]))
    assert (model.one.inputs, model.two.inputs) == (("x: tensor<2xf32>",), ("y: tensor<2xf32>",))


@pytest.mark.usefixtures("converter")
def test_open_extents_are_those_of_each_call() -> None:
    graph = Graph("x", "y", [Tensor("x", (-1, 3)), constant("c", [[1, 2, 3]]), Tensor("y", (-1, 3))],
                  [Operator("MUL", "x c", "y", ints(0))])
    model = tosaic.from_tflite(file(graph))
    assert model.main.for_any_shape.is_dynamic and not model.main.is_dynamic
    for rows in (1, 4):
        assert model(np.ones((rows, 3), np.float32)).tolist() == [[1, 2, 3]] * rows


@pytest.mark.usefixtures("converter")
def test_scalars_of_older_writers_are_scalars() -> None:
    tensors = [Tensor(name, is_known=False) for name in "xyz"]
    handle = Operator("VAR_HANDLE", "", "v", (None, "old"))
    graph = Graph("x", "z", [*tensors, Tensor("v", (), "resource"), Tensor("r", is_known=False)],
                  [handle, Operator("ADD", "x x", "y", ints(0)), Operator("ASSIGN_VARIABLE", "v y"),
                   Operator("READ_VARIABLE", "v", "r"), Operator("MUL", "r y", "z", ints(0))])
    model = tosaic.from_tflite(file(graph))
    assert model.main.outputs == ("tensor<f32>",) and model.main.compile(context=tosaic.Context("old"))(np.float32(3)) == 36


# ---- control flow and variables --------------------------------------------------------------------------------------
def loop(test: str, body: str) -> bytes:
    """`while n < 1000: n = n * 3` over a variable; the subgraphs of the loop have no values of their own."""
    v, n, m = Tensor("v", (), "resource"), Tensor("n"), Tensor("m")
    iteration = {"reads": [Operator("READ_VARIABLE", "v", "n"), Operator("LESS", "n k", "t")],
            "multiplies": [Operator("READ_VARIABLE", "v", "n"), Operator("MUL", "n k", "m", ints(0)),
                           Operator("ASSIGN_VARIABLE", "v m")]}
    return file(
        Graph("", "n", [v, Tensor("w", (), "resource"), n],
              [Operator("CALL_ONCE", options=ints(3)), Operator("VAR_HANDLE", "", "v", (None, "loop.n")),
               Operator("WHILE", "v", "w", ints(1, 2)), Operator("READ_VARIABLE", "w", "n")]),
        Graph("v", "t", [v, n, constant("k", 1000), Tensor("t", (), "i1")], iteration[test], "test"),
        Graph("v", "v", [v, n, m, constant("k", 3)], iteration[body], "body"),
        Graph("", "", [v, constant("k", 2)], [Operator("VAR_HANDLE", "", "v", (None, "loop.n")),
                                              Operator("ASSIGN_VARIABLE", "v k")], "NoOp"))


@pytest.mark.usefixtures("converter")
def test_a_loop_may_have_nothing_but_variables() -> None:
    context = tosaic.Context("loop")
    run = tosaic.from_tflite(loop("reads", "multiplies")).main.compile(context=context)
    assert run() == 1458 == run() and context.read("loop.n") == 1458


@pytest.mark.usefixtures("converter")
def test_effects_keep_their_order() -> None:
    """x is read, written twice with different values, and read between and behind."""
    def write(name: str) -> Operator:
        return Operator("ASSIGN_VARIABLE", f"v {name}")

    def read(name: str) -> Operator:
        return Operator("READ_VARIABLE", "v", name)

    names = "a b c d e"
    tensors = [Tensor("v", (), "resource"), Tensor("x"), *map(Tensor, names.split()), constant("k", 10)]
    add, multiply = Operator("ADD", "a x", "b", ints(0)), Operator("MUL", "c c", "d", ints(0))
    handle = Operator("VAR_HANDLE", "", "v", (None, "order"))
    operators = [handle, write("k"), read("a"), add, write("b"), read("c"), multiply, write("d"), read("e")]
    entry = tosaic.from_tflite(file(Graph("x", names, tensors, operators))).main
    found = entry.compile(context=tosaic.Context("order"))(np.float32(1))
    assert [float(y) for y in found] == [10, 11, 11, 121, 121]


# ---- what is wrong ---------------------------------------------------------------------------------------------------
def problem(data: bytes) -> str:
    with pytest.raises(tosaic.Problem) as found:
        tosaic.from_tflite(data, "m.tflite")
    return str(found.value)


def one(kind: str, *tensors: Tensor, options: tuple[object, ...] = (), outputs: str = "y") -> bytes:
    """A file with one operator, its operands in order."""
    names = " ".join(t.name for t in tensors)
    inputs = " ".join(t.name for t in tensors if t.array is None and t.type != "resource" and not t.is_state)
    results = [Tensor(n, (2,)) for n in outputs.split()]
    graph = Graph(inputs, outputs, [*tensors, *results], [Operator(kind, names, outputs, options)])  # type: ignore[arg-type]
    return file(graph, signatures=[Signature("f", 0)])


@pytest.mark.usefixtures("converter")
def test_what_the_converter_does_not_know_is_said_at_the_operator() -> None:
    """TOPK_V2 of an extent that is open: what is known is written here."""
    tensors = [Tensor("x", (-1, 9)), Tensor("z", (-1, 9)), constant("k", 3, "i32"), Tensor("y", (-1, 3)),
               Tensor("i", (-1, 3), "i32")]
    data = file(Graph("x", "y i", tensors, [Operator("ABS", "x", "z"), Operator("TOPK_V2", "z k", "y i")]),
                signatures=[Signature("best", 0, {"x": "x"})])
    text = problem(data)
    assert text.startswith("m.tflite: signature best, operator 1 TOPK_V2: error[unsupported]: tfl.topk_v2 cannot be converted")
    assert "write this operator in another way" in text


@pytest.mark.usefixtures("converter")
def test_what_the_converter_refuses_is_said_at_the_operator() -> None:
    tensors = [Tensor("x", (2,)), constant("c", [1, 2, 3]), Tensor("z", (2,)), Tensor("y", (2,))]
    text = problem(file(Graph("x", "y", tensors, [Operator("ABS", "x", "z"), Operator("ADD", "z c", "y", ints(0))])))
    assert text.startswith("m.tflite: subgraph 0 main, operator 1 ADD: error[unsupported]: ADD cannot be converted to TOSA")
    assert "note: " in text


@pytest.mark.parametrize(("data", "text"), [
    (one("ADD", Tensor("x", (2,)), Tensor("s", is_state=True)), "operator 0 ADD: error[unsupported]: ADD keeps its state"),
    (one("HASHTABLE", Tensor("r", (), "resource")), "operator 0 HASHTABLE: error[unsupported]: HASHTABLE has a resource"),
    (one("STABLEHLO_WHILE", Tensor("x", (2,))), "operator 0 STABLEHLO_WHILE: error[unsupported]: STABLEHLO_WHILE runs another"),
    (one("READ_VARIABLE", Tensor("x", (2,))), "operator 0 READ_VARIABLE: error[type]: the operand is a tensor"),
    (one("IF", Tensor("x", (), "i1"), options=ints(0, 0)), "operator 0 IF: error[unsupported]: subgraph 0 runs itself"),
    (one("IF", Tensor("x", (), "i1"), options=ints(0, 5)), "operator 0 IF: error[syntax]: IF names subgraph 5, the file has 1"),
    (one("WHILE", Tensor("x", (2,)), options=ints(0, 0), outputs=""), "operator 0 WHILE: error["),
    (file(Graph("x", "x", [Tensor("x", (2,), "string")])), "subgraph 0 main: error[unsupported]: tensor 'x' is of type STRING"),
    (file(Graph("", "y", [Tensor("y", (2,))])), "subgraph 0 main: error[syntax]: tensor 'y' is used, and nothing gives it"),
    (file(), "error[syntax]: the file has no subgraphs"),
    (counter(key="get"), "error[syntax]: two signatures are called 'get'"),
    (counter(key="total"), "signature total: error[symbol]: signature and variable are both called 'total'"),
    (b"\0\0\0\0TOSA" + bytes(50), "m.tflite is no .tflite file"),
    (b"", "m.tflite is no .tflite file")])
def test_what_is_wrong_is_said_at_its_place(data: bytes, text: str) -> None:
    assert text in problem(data)


def test_a_variable_has_one_type() -> None:
    v = Tensor("v", (), "resource")
    graph = Graph("x", "y", [v, Tensor("x", (2,)), Tensor("y", (3,))],
                  [Operator("VAR_HANDLE", "", "v", (None, "n")), Operator("ASSIGN_VARIABLE", "v x"),
                   Operator("READ_VARIABLE", "v", "y")])
    text = problem(file(graph))
    assert "operator 2 READ_VARIABLE: error[variable]: variable 'n' is tensor<3xf32> here" in text
    assert "operator 1 ASSIGN_VARIABLE: it is tensor<2xf32> here" in text


def test_a_variable_that_nothing_has_written_is_said_at_the_read() -> None:
    v = Tensor("v", (), "resource")
    graph = Graph("", "y", [v, Tensor("y", (2,))], [Operator("VAR_HANDLE", "", "v", (None, "n")),
                                                    Operator("READ_VARIABLE", "v", "y")])
    read = tosaic.from_tflite(file(graph), "m.tflite").main.compile(context=tosaic.Context("unwritten"))
    with pytest.raises(tosaic.Problem, match="read before it was written") as found:
        read()
    assert str(found.value).startswith("m.tflite: subgraph 0 main, operator 1 READ_VARIABLE: ")


def test_nothing_is_needed_where_there_is_nothing_to_convert(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(counter())
    code = ("import sys; sys.modules['tosa_converter_for_tflite'] = None; import tosaic\n"
            f"print(tosaic.from_tflite({str(tmp_path / 'm.tflite')!r}).get())")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[1. 2.]"


@pytest.mark.usefixtures("converter")
def test_operations_are_at_their_operators() -> None:
    module = tosaic.from_tflite(CORPUS / "v_assign_in_cond.tflite", "m.tflite").module
    places = {o.op.name: str(o.position) for o in module.functions[0].body.walk()}
    assert places["tosa.cond_if"] == "m.tflite: signature serving_default, operator 2 IF"
    assert places["tosa.negate"] == ("m.tflite: signature serving_default, operator 2 IF, subgraph 2 cond_false_80, "
                                     "operator 1 NEG")


# ---- results ---------------------------------------------------------------------------------------------------------
def test_results_are_called_what_the_signature_calls_them_everywhere(tmp_path: Path) -> None:
    """Several results of one shape: only their names say which is which."""
    graph = Graph("x", "b a c", [Tensor("x", (2,)), *(Tensor(n, (2,)) for n in "abc"), constant("one", [1, 1])],
                  [Operator("FLOOR_DIV", "x one", "a"), Operator("MAXIMUM", "x one", "b"), Operator("MINIMUM", "x one", "c")])
    path = tmp_path / "named.tflite"
    path.write_bytes(file(graph, signatures=[Signature("f", 0, {"x": "x"}, {"a": "floor", "b": "most", "c": "least"})]))
    entry = tosaic.load(path)["f"]
    assert [o.name for o in entry.outputs] == ["most", "floor", "least"]
    found = dict(zip([o.name for o in entry.outputs], entry(np.array([0.5, 2.5], np.float32)), strict=True))
    assert {k: v.tolist() for k, v in found.items()} == {"most": [1, 2.5], "floor": [0, 2], "least": [0.5, 1]}
    saved = tmp_path / "results.npz"
    subprocess.run([sys.executable, "-m", "tosaic", "run", str(path), "--save", str(saved)], check=True, capture_output=True)
    assert sorted(np.load(saved)) == ["floor", "least", "most"]


def test_results_of_one_tensor_keep_their_numbers() -> None:
    """A signature may give a tensor twice, which has one name."""
    model = tosaic.from_tflite(file(Graph("x", "x x", [Tensor("x", (2,))]), signatures=[
        Signature("f", 0, {"x": "x"}, {"x": "y"})]))
    assert [o.name for o in model["f"].outputs] == ["result0", "result1"]
