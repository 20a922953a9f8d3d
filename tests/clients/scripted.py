"""A small model that says what a test wants: a checkpoint that is written here, number by number.

What a place in the text says is the token that follows it, and nothing else counts.
The format is that of safetensors.
"""

from __future__ import annotations

import json
import pathlib
import struct
import subprocess
from array import array
from typing import TypeAlias

from serving import BINARY

CONTEXT = 256
END = "<|end|>"

Shape: TypeAlias = dict[str, int]
Parts: TypeAlias = "dict[str, array[float]]"


def vocabulary(folder: pathlib.Path) -> dict[str, int]:
    """As `rollyard tiny tokenizer` writes it."""
    subprocess.run([BINARY, "tiny", "tokenizer", str(folder)], check=True, capture_output=True)
    ids: dict[str, int] = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    return ids


def encode(ids: dict[str, int], text: str) -> list[int]:
    tokens = []
    while text:
        word = max((word for word in ids if text.startswith(word)), key=len)
        tokens.append(ids[word])
        text = text[len(word) :]
    return tokens


def write(folder: pathlib.Path, prompt: str, answer: str) -> pathlib.Path:
    """A model that answers every prompt of this length with `answer`."""
    ids = vocabulary(folder / "tokenizer")
    size = len(ids)
    shape = {"vocabulary": size, "width": size, "layers": 1, "heads": 1, "context": CONTEXT}
    parts = zeros(shape)
    for token in range(size):
        parts["norm"][token] = 2.0
        parts["head"][token * size + token] = 1.0
    first = len(encode(ids, prompt)) - 1
    for at, token in enumerate(encode(ids, answer + END)):
        parts["positions"][(first + at) * size + token] = 1.0
    return save(folder / "scripted.safetensors", shape, parts)


def zeros(shape: Shape) -> Parts:
    """Weights that know nothing."""
    width = shape["width"]
    counts = {
        "embed": shape["vocabulary"] * width,
        "positions": shape["context"] * width,
        "norm": width,
        "head": width * shape["vocabulary"],
    }
    block = {
        "attention_norm": 1,
        "qkv": 3 * width,
        "out": width,
        "mlp_norm": 1,
        "up": 4 * width,
        "down": 4 * width,
    }
    for layer in range(shape["layers"]):
        counts |= {f"blocks.{layer}.{name}": rows * width for name, rows in block.items()}
    return {name: array("f", bytes(4 * count)) for name, count in counts.items()}


def save(path: pathlib.Path, shape: Shape, parts: Parts) -> pathlib.Path:
    about = json.dumps({"shape": shape, "adam": None, "notes": {}})
    header: dict[str, object] = {"__metadata__": {"rollyard": about}}
    start = 0
    for name, values in parts.items():
        end = start + 4 * len(values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [start, end]}
        start = end
    head = json.dumps(header).encode()
    body = b"".join(values.tobytes() for values in parts.values())
    path.write_bytes(struct.pack("<Q", len(head)) + head + body)
    return path
