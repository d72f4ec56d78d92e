"""`python tests/tensorflow/against_tensorflow.py FILE [ANSWERS]`, where TensorFlow is installed: runs the random graphs of FILE
(`python tests/tensorflow islands FIRST END FILE` writes it) and holds what they give against the interpreter's answers. With
ANSWERS, it writes the texts and TensorFlow's answers there, for tests that run without it.
"""
from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import tensorflow as tf

TYPES = {"i32": tf.int32, "bool": tf.bool}


def graph_def(graph: dict[str, Any]) -> tf.compat.v1.GraphDef:
    found = tf.compat.v1.GraphDef()
    for each in graph["nodes"]:
        found.node.append(node_def(each))
    for name in ("start", "now"):
        found.node.append(node_def({"op": "VarHandleOp", "name": f"{name}_handle", "inputs": [],
                                    "attributes": {"shared_name": "v", "dtype": "i32"}}))
    found.node.append(node_def({"op": "Placeholder", "name": "first", "inputs": [], "attributes": {"dtype": "i32"}}))
    found.node.append(node_def({"op": "AssignVariableOp", "name": "start", "inputs": ["start_handle", "first"],
                                "attributes": {"types": ["i32"]}}))
    found.node.append(node_def({"op": "ReadVariableOp", "name": "now", "inputs": ["now_handle"], "attributes": {"types": []}}))
    return found


def node_def(each: dict[str, Any]) -> Any:
    """A node with its attributes, which for these operators follow from the types of their inputs."""
    node = tf.compat.v1.NodeDef(op=each["op"], name=each["name"], input=each["inputs"])
    attributes, types = each["attributes"], [TYPES[t] for t in each["attributes"].get("types", [])]
    if types and each["op"] not in ("Const", "LoopCond", "AssignAddVariableOp", "AssignVariableOp"):
        node.attr["T"].type = types[0].as_datatype_enum
    match each["op"]:
        case "Const":
            dtype = TYPES[attributes["dtype"]]
            node.attr["dtype"].type = dtype.as_datatype_enum
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(attributes["value"], dtype))
        case "Placeholder" | "VarHandleOp":
            node.attr["dtype"].type = TYPES[attributes["dtype"]].as_datatype_enum
            if each["op"] == "Placeholder":
                node.attr["shape"].shape.CopyFrom(tf.TensorShape(()).as_proto())
            else:
                node.attr["shared_name"].s = attributes["shared_name"].encode()
                node.attr["shape"].shape.CopyFrom(tf.TensorShape(()).as_proto())
        case "AssignAddVariableOp" | "AssignVariableOp" | "ReadVariableOp":
            node.attr["dtype"].type = tf.int32.as_datatype_enum
        case "Merge":
            node.attr["N"].i = len(types)
        case "Enter":
            node.attr["frame_name"].s = attributes["frame_name"].encode()
            node.attr["is_constant"].b = attributes["is_constant"]
            node.attr["parallel_iterations"].i = 10
        case _:
            pass
    return node


def answers(graph: dict[str, Any]) -> list[list[int]]:
    """Results and variable, for each of the inputs."""
    found = []
    with tf.Graph().as_default() as own:
        tf.import_graph_def(graph_def(graph), name="")
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        options = config.graph_options.optimizer_options
        options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.compat.v1.Session(graph=own, config=config) as session:
            outputs = [own.get_tensor_by_name(n if ":" in n else f"{n}:0") for n in graph["fetches"]]
            targets = [own.get_operation_by_name(n) for n in graph["targets"]]
            for x, y, p, q in graph["inputs"]:
                session.run(own.get_operation_by_name("start"), {"first:0": graph["variable"]})
                feeds = {f"argument_{n}:0": value for n, value in zip("xypq", (x, y, p, q))}
                values, _ = session.run((outputs, targets), feeds)
                found.append([*map(int, values), int(session.run("now:0"))])
    return found


def main() -> int:
    graphs = json.loads(pathlib.Path(sys.argv[1]).read_text())
    different = 0
    kept = []
    for graph in graphs:
        found = answers(graph)
        if found != graph["answers"]:
            different += 1
            print(f"seed {graph['seed']}: TensorFlow {found}, the interpreter {graph['answers']}")
        kept.append({"text": graph["text"], "answers": found})
    print(f"{len(graphs)} graphs, {sum(len(g['inputs']) for g in graphs)} runs, {different} graphs different")
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_text(json.dumps(kept, indent=0))
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
