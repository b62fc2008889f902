"""Cached decoding and the drafter, each against a plain way of computing the same."""

import torch

from equality_test import random_tokens, share_equal
from reference import attention, mhc, moe
from reference.config import Config
from reference.engram_hash import read_token_map
from reference.numerics import Arithmetic
from reference.rope import frequencies
from train_mini.checkpoint_io import load_parameters
from train_mini.drafter import DraftLoss, draft_blocks, fit_temperatures
from train_mini.generate import Decoder, generate
from train_mini.model import Model
from train_mini.numerics import Numerics
from train_mini.ops import Ops
from train_mini.rows import Rows, one_document


def exact_model(folder):
    config, nx = Config.read(folder), Numerics(exact=True)
    token_map = read_token_map(folder, config.vocab_size, config.engram_compressed_vocab_size)
    model = Model(config, nx, Ops(config, nx), token_map)
    return model, model.prepare(load_parameters(folder, model.specs), model.specs.all())


@torch.no_grad()
def test_decoding_equals_forward(tiny12):
    """Position by position from caches, two sequences at once: the same logits as all at once."""
    model, w = exact_model(tiny12)
    n = 40
    docs = [random_tokens(n, 512, seed) for seed in (0, 1)]
    flat = torch.tensor(docs).flatten()
    start = (torch.arange(2 * n) // n * n).int()
    want = model.nx.linear32(model.forward(w, Rows(flat, start, n)).hidden, w["head"][0]).view(2, n, -1)
    decoder = Decoder(model, w, 2, n, "cpu")
    got = torch.stack([decoder.step(torch.tensor([d[i] for d in docs])) for i in range(n)], 1)
    assert share_equal(got, want) > 0.9


def test_generation_keeps_prompts_and_is_greedy(tiny12):
    model, w = exact_model(tiny12)
    prompts = [[0, 5, 9, 11], [0, 7]]
    out = generate(model, w, prompts, torch.zeros(2), 8, seed=0, device="cpu")
    assert out[0, :4].tolist() == prompts[0] and out[1, :2].tolist() == prompts[1]
    with torch.no_grad():
        hidden = model.forward(w, one_document(out[1])).hidden
        best = model.nx.linear32(hidden, w["head"][0]).argmax(-1)
    assert best[1:-1].tolist() == out[1, 2:].tolist()


@torch.no_grad()
def test_draft_blocks(tiny12):
    """Part A.4 of the protocol, written out with the reference's pieces, for two anchors of a packed batch."""
    model, w = exact_model(tiny12)
    c, nx = model.config, Arithmetic()
    n = 32
    tokens = torch.tensor(random_tokens(n, 512) + random_tokens(n, 512, 1))
    rows = Rows(tokens, (torch.arange(2 * n) // n * n).int(), n)
    taps = model.forward(w, rows, want_taps=True).taps
    anchors = torch.tensor([3, n + 20])
    draft = draft_blocks(model, w, rows, taps, anchors)
    for i, a in enumerate(anchors.tolist()):
        begin = int(rows.start[a])
        z = plain_draft(c, nx, w, tokens[a], a - begin, taps[begin:a])
        assert share_equal(draft.z[5 * i : 5 * i + 5], z) > 0.7


def plain_draft(c, nx, w, anchor, position, taps):
    """z [5, d] of one anchor; taps of the positions before it."""

    def stage_weights(stage, prefix=""):
        def get(name, *shape):
            key = "mtp/" + prefix + name
            for spelled in (key, key.removesuffix(".weight")):
                if spelled in w:
                    return w[spelled][stage].float()
            e = int(name.split(".")[1]) if name.startswith("experts.") else int(prefix.split("experts.")[1][:-1])
            return w[f"mtp/ffn.experts.{name.split('.')[0]}"][stage][e].float()

        get.scope = lambda more: stage_weights(stage, prefix + more)
        return get

    freq = frequencies(c, 0)
    where = torch.arange(position - len(taps), position)
    main = nx.rms_norm(nx.linear_fp8(taps.float(), w["mtp/main_proj"][0]), w["mtp/main_norm"][0], c.rms_norm_eps)
    ids = torch.full((5,), c.dspark_noise_token_id)
    ids[0] = anchor
    at = position + torch.arange(5)
    streams = w["embed"][0][ids][:, None, :].repeat(1, c.hc_mult, 1)
    carried = torch.zeros(5, c.hc_mult)
    carried[:, 0] = 1
    none = torch.zeros(5, dtype=torch.bool)
    for stage in range(c.num_nextn_predict_layers):
        get = stage_weights(stage)
        site = mhc.mix(nx, c, get, "attn", streams)
        x = nx.rms_norm(mhc.collapse(nx, streams, carried), get("attn_norm.weight"), c.rms_norm_eps)
        a = get.scope("attn.")
        q = attention.queries(nx, c, a, attention.query_low_rank(nx, c, a, x), at, freq)
        past = attention.window_kv(nx, c, a, main, where, freq)[-c.sliding_window :]
        own = attention.window_kv(nx, c, a, x, at, freq)
        keys = torch.cat([past, own])
        scores = torch.einsum("qhd,kd->qhk", q.double(), keys.double()) * c.head_dim**-0.5
        top = scores.amax(-1, keepdim=True)
        p = torch.exp(scores - top)
        total = p.sum(-1) + torch.exp(get("attn.attn_sink").double() - top[..., 0])
        o = torch.einsum("qhk,kd->qhd", p.float().bfloat16().double(), keys.double()) / total[..., None]
        y = attention.project_output(nx, c, a, nx.bf16(o.float()), at, freq)
        streams = mhc.expand(nx, y, streams, site)
        ffn = mhc.mix(nx, c, get, "ffn", streams)
        x = nx.rms_norm(mhc.collapse(nx, streams, site.pre), get("ffn_norm.weight"), c.rms_norm_eps)
        logit = nx.linear_f32(x, get("ffn.gate.weight"))
        score = torch.nn.functional.softplus(logit).sqrt()
        chosen = (score + get("ffn.gate.bias")).topk(c.dspark_num_experts_per_tok, dim=1).indices
        weight = score.gather(1, chosen)
        weight = weight / (weight.sum(1, keepdim=True) + 1e-20) * c.routed_scaling_factor
        streams = mhc.expand(nx, moe.moe(nx, c, get.scope("ffn."), x, chosen, weight), streams, ffn)
        carried = ffn.pre
        assert not none.any()
    return mhc.collapse(nx, streams, carried)


def test_draft_loss_gradients():
    """The hand-made gradient against autograd on the same formula."""
    g = torch.Generator().manual_seed(0)
    shapes = [(6, 8), (6, 4), (16, 8), (16, 4), (6, 8)]
    hidden, e, head, markov, target_hidden = (torch.randn(s, generator=g) for s in shapes)
    token, weight = torch.randint(16, (6,), generator=g), torch.rand(6, generator=g)
    leaves = [t.requires_grad_() for t in (hidden, e, markov)]
    loss, accept = DraftLoss.apply(hidden, e, head, markov, target_hidden, token, weight)
    got = torch.autograd.grad(loss, leaves)
    log_draft = (hidden @ head.t() + e @ markov.t()).log_softmax(-1)
    distance = (log_draft.exp() - (target_hidden @ head.t()).softmax(-1)).abs().sum(-1)
    want_loss = ((0.9 * distance - 0.1 * log_draft.gather(1, token[:, None])[:, 0]) * weight).sum()
    torch.testing.assert_close(loss, want_loss)
    torch.testing.assert_close(accept, 1 - 0.5 * distance)
    for a, b in zip(got, torch.autograd.grad(want_loss, leaves)):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_temperatures_are_found():
    """Confidences that are twice too sharp get temperatures of about 2."""
    g = torch.Generator().manual_seed(0)
    true = torch.randn(40_000, 3, generator=g) + 1
    accepted = (torch.rand(true.shape, generator=g) < torch.sigmoid(true)).cumprod(1).bool()
    temperatures, before, after = fit_temperatures(2 * true, accepted)
    assert all(1.6 < t < 2.5 for t in temperatures)
    assert all(a < 0.02 for a in after) and before[0] > 0.05
