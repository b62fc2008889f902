#!/usr/bin/env python3
"""The same schemas and valid instances through `deepinfer bench grammar`, llguidance and xgrammar: one table.

  tools/compare_grammar.py --program build/deepinfer --model DIR --input maskbench.jsonl [--limit N]

Peers are left out where they are not installed (tools/requirements-grammar.txt). One thread; times in microseconds; masks are whole
bit rows; compile is from the schema's text to the first mask. A schema that a peer refuses, or of which it loses valid instances, counts
as that; its times count as far as they go.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import subprocess
import time

COLUMNS = ("p50", "p90", "p99", "p999", "max")


def percentiles(times):
    ordered = sorted(times) or [0.0]
    return {name: ordered[round(share * (len(ordered) - 1))] for name, share in zip(COLUMNS, (0.5, 0.9, 0.99, 0.999, 1))} | {"n": len(times)}


class Peer:
    """Times of one engine; begin() returns a session with mask(), advance(token), may_end()."""

    def __init__(self):
        self.n_schemas = self.n_refused = self.n_valid = self.n_accepted = self.n_wrong = self.n_invalid = 0
        self.mask_us, self.advance_us, self.compile_us = [], [], []

    def run(self, cases, n_seconds):
        end = time.monotonic() + n_seconds
        for case in cases:
            if time.monotonic() > end:
                break
            self.n_schemas += 1
            start = time.perf_counter_ns()
            try:
                compiled = self.compile(json.dumps(case["schema"]))
                self.begin(compiled).mask()
            except Exception:  # every engine has its own
                self.n_refused += 1
                continue
            self.compile_us.append((time.perf_counter_ns() - start) / 1000)
            for test in case["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False, separators=(",", ":"))
                accepted = self.replay(self.begin(compiled), text, test["valid"])
                self.n_valid += test["valid"]
                self.n_accepted += test["valid"] and accepted
                self.n_invalid += not test["valid"]
                self.n_wrong += not test["valid"] and accepted

    def replay(self, session, text, is_timed):
        for token in self.encode(text):
            start = time.perf_counter_ns()
            session.mask()
            asked = time.perf_counter_ns()
            good = session.advance(token)
            done = time.perf_counter_ns()
            if is_timed:
                self.mask_us.append((asked - start) / 1000)
                self.advance_us.append((done - asked) / 1000)
            if not good:
                return False
        return session.may_end()

    def row(self):
        return {"schemas": self.n_schemas, "refused": self.n_refused, "instances": self.n_valid, "instances_accepted": self.n_accepted,
                "wrong_accepts": f"{self.n_wrong} of {self.n_invalid}", "mask_us": percentiles(self.mask_us),
                "advance_us": percentiles(self.advance_us), "compile_us": percentiles(self.compile_us)}


class LlGuidance(Peer):
    name = "llguidance 1.9.1"

    def __init__(self, model):
        super().__init__()
        import llguidance
        self.lib = llguidance
        start = time.perf_counter()
        self.tokenizer = llguidance.LLTokenizer((model / "tokenizer.json").read_text(encoding="utf-8"))
        self.vocabulary_seconds = time.perf_counter() - start
        self.n_words = (self.tokenizer.vocab_size + 31) // 32
        self.row_memory = (ctypes.c_uint32 * self.n_words)()

    def encode(self, text):
        return self.tokenizer.tokenize_str(text)

    def compile(self, schema):
        return self.lib.LLMatcher.grammar_from_json_schema(schema)

    def begin(self, compiled):
        peer, matcher = self, self.lib.LLMatcher(self.tokenizer, compiled)
        if matcher.is_error():
            raise ValueError(matcher.get_error())

        class Session:
            def mask(self):
                matcher.unsafe_compute_mask_ptr(ctypes.addressof(peer.row_memory), peer.n_words * 4)

            def advance(self, token):
                return (peer.row_memory[token // 32] >> (token % 32) & 1) and matcher.consume_token(token)

            def may_end(self):
                return matcher.is_accepting()

        return Session()


class XGrammar(Peer):
    name = "xgrammar 0.2.9"

    def __init__(self, model):
        super().__init__()
        import transformers
        import xgrammar
        self.lib = xgrammar
        self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(model / "tokenizer.json"))
        start = time.perf_counter()
        info = xgrammar.TokenizerInfo.from_huggingface(self.tokenizer, stop_token_ids=[1])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.vocabulary_seconds = time.perf_counter() - start
        self.row_memory = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False)

    def compile(self, schema):
        return self.compiler.compile_json_schema(schema, any_whitespace=True, strict_mode=False)

    def begin(self, compiled):
        peer, matcher = self, self.lib.GrammarMatcher(compiled)

        class Session:
            def mask(self):
                matcher.fill_next_token_bitmask(peer.row_memory)

            def advance(self, token):
                return matcher.accept_token(token)

            def may_end(self):
                return matcher.accept_token(1)

        return Session()


def ours(options, lines):
    done = subprocess.run([options.program, "bench", "grammar", "--model", options.model, "--input", "-", "--json"],
                          input="".join(line + "\n" for line in lines).encode(), capture_output=True, check=True)
    row = json.loads(done.stdout)
    return row | {"wrong_accepts": "-"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/deepinfer")
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--input", type=pathlib.Path, required=True)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=600, help="a peer stops after so many; the first column says how far it came")
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"
    all_lines = options.input.read_text(encoding="utf-8").rstrip("\n").split("\n")
    lines = all_lines[:: max(1, len(all_lines) // options.limit)][: options.limit]
    cases = [json.loads(line) for line in lines]
    rows = {"deepinfer": ours(options, lines)}
    for module, peer_class in (("llguidance", LlGuidance), ("xgrammar", XGrammar)):
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed: left out")
            continue
        peer = peer_class(options.model)
        peer.run(cases, options.seconds)
        rows[peer.name] = peer.row() | {"vocabulary_seconds": peer.vocabulary_seconds}
    print(f"{len(cases)} schemas, every {max(1, len(all_lines) // options.limit)}th line of {options.input.name}")
    print(f"{'':18}{'schemas':>9}{'refused':>9}{'valid':>13}{'wrong accepts':>16}{'tokenizer, s':>14}")
    for name, row in rows.items():
        print(f"{name:18}{row['schemas']:>9}{row['refused']:>9}{str(row['instances_accepted']) + '/' + str(row['instances']):>13}"
              f"{row['wrong_accepts']:>16}{row['vocabulary_seconds']:>14.2f}")
    for key in ("mask_us", "advance_us", "compile_us"):
        print(f"{key:18}" + "".join(f"{column:>12}" for column in COLUMNS))
        for name, row in rows.items():
            print(f"  {name:16}" + "".join(f"{row[key][column]:>12.2f}" for column in COLUMNS))


if __name__ == "__main__":
    main()
