"""Token ids back to text, and the ids of control tokens. Needs tokenizer.json and numpy only.

Encoding is left to the engine's program (task text) and to `tokenizers` (corpus text); a test holds them together.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from reference.engram_hash import bytes_of_unicode  # noqa: E402


class Codec:
    """Of one tokenizer.json."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self.sha256 = hashlib.sha256(content).hexdigest()
        file = json.loads(content)
        bytes_of = bytes_of_unicode()
        self.control = {t["content"]: t["id"] for t in file["added_tokens"]}
        vocab = file["model"]["vocab"]
        self.vocab_size = 1 + max(*vocab.values(), *self.control.values())
        self.bytes_of_id = [b""] * self.vocab_size
        for token, i in vocab.items():
            if token not in self.control:
                self.bytes_of_id[i] = bytes(bytes_of[char] for char in token)
        self.bos, self.eos = self.control["<｜begin▁of▁sentence｜>"], self.control["<｜end▁of▁sentence｜>"]
        self.assistant = self.control["<｜Assistant｜>"]

    def text(self, ids: np.ndarray) -> str:
        """Control tokens print nothing; what a cut leaves of a character is dropped."""
        return b"".join(map(self.bytes_of_id.__getitem__, ids.tolist())).decode("utf-8", "ignore")
