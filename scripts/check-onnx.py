#!/usr/bin/env python3
"""Checks the ONNX files of a model: valid by the official checker, and the same
answers from ONNX Runtime as from the native backend.

    check-onnx.py FOLDER      with multiset.onnx, dense.onnx, sparse.onnx and native.json, as
                              written by `cargo run --example onnx_sample`
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-4


def session(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    for key in ("tokenizer", "shape", "training", "compliance"):
        json.loads(metadata[f"temponet.{key}"])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def differ(found, expected):
    return float(np.max(np.abs(found - np.array(expected, dtype=np.float32))))


def counted(s):
    """Idle comes first, and stands once per CPU."""
    return [s["cpus"], *s["counts"][1:]]


def multiset_q(multiset, s):
    tokens = np.array([s["tokens"]], dtype=np.int64)
    counts = np.array([counted(s)], dtype=np.float32)
    return multiset.run(["q"], {"tokens": tokens, "counts": counts})[0][0]


def dense_q(dense, s):
    """Of one of the idle rows and of every job."""
    tokens = np.array([[0] * s["cpus"] + s["jobs"]], dtype=np.int64)
    return dense.run(["q"], {"tokens": tokens})[0][0][s["cpus"] - 1 :]


def sparse_q(sparse, s):
    """Of idle and of every job in order of deadline."""
    tokens = np.array([s["sparse"]["tokens"]], dtype=np.int64)
    counts = np.ones(tokens.shape, dtype=np.float32)
    counts[0, 0] = s["cpus"]
    plan = np.array(s["sparse"]["plan"], dtype=np.int64)
    return sparse.run(["q"], {"tokens": tokens, "counts": counts, "plan": plan})[0][0]


def batch_q(multiset, situations):
    """All situations at once, the shorter ones filled up with count 0."""
    longest = max(len(s["tokens"]) for s in situations)
    tokens = np.zeros((len(situations), longest), dtype=np.int64)
    counts = np.zeros((len(situations), longest), dtype=np.float32)
    for i, s in enumerate(situations):
        tokens[i, : len(s["tokens"])] = s["tokens"]
        counts[i, : len(s["tokens"])] = counted(s)
    (q,) = multiset.run(["q"], {"tokens": tokens, "counts": counts})
    return [q[i, : len(s["tokens"])] for i, s in enumerate(situations)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    multiset = session(folder / "multiset.onnx")
    dense = session(folder / "dense.onnx")
    sparse = session(folder / "sparse.onnx")
    situations = json.loads((folder / "native.json").read_text())["situations"]
    batch = batch_q(multiset, situations)
    worst = {
        "multiset": max(differ(multiset_q(multiset, s), s["q"]) for s in situations),
        "dense": max(differ(dense_q(dense, s), s["scores"]) for s in situations),
        "sparse": max(differ(sparse_q(sparse, s), s["sparse"]["q"]) for s in situations),
        "padded batch": max(differ(q, s["q"]) for q, s in zip(batch, situations)),
    }
    for graph, off in worst.items():
        print(f"{graph}: valid, at most {off:.1e} from the native backend")
    if not max(worst.values()) <= TOLERANCE:
        sys.exit(f"check-onnx: that is more than {TOLERANCE}")


if __name__ == "__main__":
    main()
