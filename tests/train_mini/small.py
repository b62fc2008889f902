"""A config small enough to train on a CPU in a test, its tokenizer, and a data folder of random documents."""

import hashlib
import json
import pathlib

import numpy as np

from tiny_tokenizer import make_tokenizer, tokenizer_config

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = {
    "hidden_size": 64, "q_lora_rank": 32, "num_attention_heads": 4, "head_dim": 32, "moe_intermediate_size": 32,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "dspark_n_routed_experts": 4, "num_nextn_predict_layers": 2,
    "compress_ratios": [0, 0, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 0, 0], "candidate_block_size": 8, "engram_vocab_size": 50,
}  # fmt: skip


def config():
    from make_checkpoint import complete_config

    preset = json.loads((ROOT / "tools/presets/tiny12.json").read_text())
    preset["text_config"].update(SMALL)
    return complete_config(preset, make_tokenizer(preset["text_config"]["vocab_size"]))


def write_model_folder(folder):
    """config.json, tokenizer.json and tokenizer_config.json."""
    top = config()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(top))
    (folder / "tokenizer.json").write_text(json.dumps(make_tokenizer(top["text_config"]["vocab_size"])))
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(4096)))
    return top


def write_data(folder, tokenizer: bytes, vocab: int, seed=0):
    """One text part and one task part of the trainer's data format."""
    folder.mkdir(parents=True, exist_ok=True)
    g = np.random.default_rng(seed)
    parts = []
    for kind in ("text", "tasks"):
        docs = [np.concatenate([[0], g.integers(3, 40, g.integers(6, 60)), [1]]) for _ in range(40)]
        tokens = np.concatenate(docs).astype("<u2")
        offsets = np.cumsum([0, *map(len, docs)]).astype("<u4")
        mask = np.packbits(np.concatenate([np.arange(len(d)) >= len(d) // 2 for d in docs]))
        contents = {"tokens": tokens.tobytes(), "docs": offsets.tobytes(), "loss": mask.tobytes()}
        if kind == "text":
            contents["loss"] = None
        entry = {"name": kind, "kind": kind, "n_tokens": len(tokens), "n_documents": len(docs)}
        digest = hashlib.sha256()
        for key, content in contents.items():
            entry[key] = None if content is None else f"{kind}.{key}"
            if content is not None:
                (folder / f"{kind}.{key}").write_bytes(content)
                digest.update(content)
        parts.append({**entry, "sha256": digest.hexdigest(), "weight_main": 0.5, "weight_final": 0.5})
    sha = hashlib.sha256(tokenizer).hexdigest()
    facts = json.dumps([sha, vocab, parts], sort_keys=True)
    manifest = {
        "fingerprint": hashlib.sha256(facts.encode()).hexdigest(), "tokenizer_sha256": sha, "vocab_size": vocab,
        "parts": parts,
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
