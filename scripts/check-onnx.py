#!/usr/bin/env python3
"""Checks the ONNX files of a model: valid by the official checker, and the same
answers from ONNX Runtime as from the native backend.

    check-onnx.py FOLDER      with multiset.onnx, dense.onnx and native.json, as
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


def rows(tokens):
    return np.array(tokens, dtype=np.int64).reshape(1, -1, 4)


def differ(found, expected):
    return float(np.max(np.abs(found - np.array(expected, dtype=np.float32))))


def padded_batch(multiset, situations):
    """All situations at once, the shorter ones filled up with count 0."""
    longest = max(len(s["tokens"]) for s in situations)
    tokens = np.zeros((len(situations), longest, 4), dtype=np.int64)
    counts = np.zeros((len(situations), 1 + longest), dtype=np.float32)
    for i, s in enumerate(situations):
        n = len(s["tokens"])
        tokens[i, :n] = rows(s["tokens"])[0]
        counts[i, 0] = s["cpus"]
        counts[i, 1 : 1 + n] = s["counts"]
    (q,) = multiset.run(["q"], {"tokens": tokens, "counts": counts})
    return max(differ(q[i, : len(s["q"])], s["q"]) for i, s in enumerate(situations))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    multiset = session(folder / "multiset.onnx")
    dense = session(folder / "dense.onnx")
    situations = json.loads((folder / "native.json").read_text())["situations"]
    worst = {"multiset": 0.0, "dense": 0.0}
    for s in situations:
        counts = np.array([[s["cpus"], *s["counts"]]], dtype=np.float32)
        (q,) = multiset.run(["q"], {"tokens": rows(s["tokens"]), "counts": counts})
        worst["multiset"] = max(worst["multiset"], differ(q[0], s["q"]))
        cpus = np.array([s["cpus"]], dtype=np.int64)
        (q,) = dense.run(["q"], {"tokens": rows(s["jobs"]), "cpus": cpus})
        worst["dense"] = max(worst["dense"], differ(q[0], s["scores"]))
    worst["padded batch"] = padded_batch(multiset, situations)
    for graph, off in worst.items():
        print(f"{graph}: valid, at most {off:.1e} from the native backend")
    if not max(worst.values()) <= TOLERANCE:
        sys.exit(f"check-onnx: that is more than {TOLERANCE}")


if __name__ == "__main__":
    main()
