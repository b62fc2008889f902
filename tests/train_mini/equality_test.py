"""The fast model against tools/reference on small random checkpoints of the released format, roundings on.

In exact mode (float64 sums, every rounding) the two differ only where they sum a few float32 terms in another order, so
logits agree to 1e-3 at nearly every position: a position whose rounding falls the other way re-rolls its noise (see
tools/compare_logits.py), any wrong rounding point or formula leaves no position equal.
"""

import numpy as np
import torch

from reference.config import Config
from reference.engram_hash import read_token_map
from reference.model import Model as Reference
from train_mini.checkpoint_io import load_parameters
from train_mini.model import Model
from train_mini.numerics import Numerics
from train_mini.ops import Ops
from train_mini.rows import Rows, one_document, with_replay


def fast_logits(folder, rows, exact=True, dense=False):
    config = Config.read(folder)
    nx = Numerics(exact)
    token_map = read_token_map(folder, config.vocab_size, config.engram_compressed_vocab_size)
    model = Model(config, nx, Ops(config, nx), token_map)
    w = model.prepare(load_parameters(folder, model.specs), model.specs.backbone)
    with torch.no_grad():
        hidden = model.forward(w, rows, dense=dense).hidden
        return nx.linear32(hidden, w["head"][0])


def share_equal(got, want):
    rms = (got - want).square().mean(-1).sqrt()
    return (rms < 1e-3).float().mean().item()


def random_tokens(n, vocab, seed=0):
    tokens = np.random.default_rng(seed).integers(3, vocab, n)
    tokens[0] = 0
    if n > 32:
        tokens[n // 2 : n // 2 + 8] = tokens[1:9]
    return tokens.tolist()


def test_one_document(tiny12):
    tokens = random_tokens(56, 512)
    want = Reference.load(tiny12).forward(tokens)
    got = fast_logits(tiny12, one_document(torch.tensor(tokens)))
    assert share_equal(got, want) > 0.9


def test_packed_documents(tiny12):
    """Three documents in two sequences, gaps of pad tokens: each equals the document alone."""
    length, lengths, starts = 48, [21, 20, 43], [0, 24, 48]
    tokens, start = torch.full((2 * length,), 2), torch.arange(2 * length, dtype=torch.int32)
    docs = [random_tokens(n, 512, seed) for seed, n in enumerate(lengths)]
    for doc, at in zip(docs, starts):
        tokens[at : at + len(doc)] = torch.tensor(doc)
        start[at : at + len(doc)] = at
    got = fast_logits(tiny12, Rows(tokens, start, length))
    reference = Reference.load(tiny12)
    for doc, at in zip(docs, starts):
        assert share_equal(got[at : at + len(doc)], reference.forward(doc)) > 0.9


def test_bounded_replay(tiny12):
    """Rows after the cut equal the reference's compact tail of window rows."""
    tokens = random_tokens(40, 512)
    width = Config.read(tiny12).sliding_window
    want = Reference.load(tiny12).forward(tokens, keep=width)
    rows = with_replay(one_document(torch.tensor(tokens)), torch.full((40,), 40, dtype=torch.int32), width)
    got = fast_logits(tiny12, rows)
    assert share_equal(got[-width:], want) > 0.8


def test_dense_is_selection_of_everything(tiny12, tmp_path):
    """With few entries, attending to all of them is what the sparse model does."""
    tokens = random_tokens(8, 512)
    rows = one_document(torch.tensor(tokens))
    assert share_equal(fast_logits(tiny12, rows, dense=True), fast_logits(tiny12, rows)) == 1


def test_stored_in_bf16(tiny12):
    """The mode that trains: same model, sums in another order, so only the bulk agrees."""
    tokens = random_tokens(40, 512)
    want = Reference.load(tiny12).forward(tokens)
    got = fast_logits(tiny12, one_document(torch.tensor(tokens)), exact=False)
    assert (got - want).square().mean(-1).sqrt().median() < 0.75 * want.std()
    assert (got.argmax(-1) == want.argmax(-1)).float().mean() > 0.4
