#!/usr/bin/env python3
"""Masks of `deepinfer grammar check --masks` against those of llguidance and xgrammar, token by token along valid instances.

  tools/compare_masks.py --program build/deepinfer --model DIR --input maskbench.jsonl [--limit N]

All three write compact JSON (no blanks between tokens). What differs is counted by kind of token, since the engines differ on purpose:
  escape    a token with a backslash: which spellings of a character are offered
  number    a token that goes on with a point or an exponent: which spellings of a number are offered
  control   a token with the character DEL
  blank     a token with blanks or line ends outside of a string
  cut       bytes that are not UTF-8 by themselves
  other     everything else: each of these is a fault of somebody, and an example is shown
Needs the packages of tools/requirements-grammar.txt.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess

from compare_grammar import LlGuidance, XGrammar


class CompactLlGuidance(LlGuidance):
    def compile(self, schema):
        compact = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        return self.lib.LLMatcher.grammar_from_json_schema(schema, overrides=compact)

    def row(self):
        return bytes(self.row_memory)


class CompactXGrammar(XGrammar):
    def compile(self, schema):
        return self.compiler.compile_json_schema(schema, any_whitespace=False, separators=(",", ":"), strict_mode=False)

    def row(self):
        return self.row_memory.numpy().tobytes()


def kind_of(piece):
    if "\ufffd" in piece:
        return "cut"
    if "\\" in piece:
        return "escape"
    if "\x7f" in piece:
        return "control"
    if re.fullmatch(r"[0-9]*(\.[0-9]*)?([eE][+-]?[0-9]*)?|-[0-9.]*", piece):
        return "number"
    return "blank" if piece != piece.strip() or "\n" in piece else "other"


def pieces_of(model):
    """Text by token id, from a byte-level tokenizer.json; without special tokens."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    spelt = {chr(byte): byte for byte in plain}
    spelt |= {chr(0x100 + i): byte for i, byte in enumerate(sorted(set(range(256)) - set(plain)))}
    file = json.loads((model / "tokenizer.json").read_text(encoding="utf-8"))
    added = {token["id"] for token in file["added_tokens"]}
    return {token: bytes(spelt[c] for c in text).decode("utf-8", "replace") for text, token in file["model"]["vocab"].items() if token not in added}


def bits(row):
    return {i for i in range(row.bit_length()) if row >> i & 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/deepinfer")
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--input", type=pathlib.Path, required=True)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--order", choices=("any", "schema"), default="schema", help="of properties; the others' is the schema's")
    options = parser.parse_args()
    all_lines = options.input.read_text(encoding="utf-8").rstrip("\n").split("\n")
    lines = all_lines[:: max(1, len(all_lines) // options.limit)][: options.limit]
    cases = [json.loads(line) for line in lines]
    for case in cases:
        case["tests"] = [test for test in case["tests"] if test["valid"]][:2]
    done = subprocess.run([options.program, "grammar", "check", "--model", options.model, "--input", "-", "--masks", "--whitespace", "0,0",
                           "--property-order", options.order], input="".join(json.dumps(c) + "\n" for c in cases).encode(), capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    for peer in (CompactLlGuidance(options.model), CompactXGrammar(options.model)):
        compare(peer, cases, answers, pieces_of(options.model))


def compare(peer, cases, answers, pieces):
    n_refused = n_masks = n_equal = n_forced = 0
    ours, theirs = collections.Counter(), collections.Counter()
    examples = {"only here": [], f"only {peer.name}": []}
    text_tokens = sum(1 << token for token, piece in pieces.items() if piece)
    for case, answer in zip(cases, answers, strict=True):
        if not answer["accepted"]:
            continue
        try:
            compiled = peer.compile(json.dumps(case["schema"]))
            peer.begin(compiled)
        except Exception:  # every engine has its own
            n_refused += 1
            continue
        for test, masks in zip(case["tests"], answer.get("masks", [])):
            session, text = peer.begin(compiled), ""
            for token, words in masks:
                session.mask()
                n_tokens = len(words) // 16 * 64
                here = sum(int(words[i * 16 : i * 16 + 16], 16) << (64 * i) for i in range(len(words) // 16))
                there = int.from_bytes(peer.row(), "little") & ((1 << n_tokens) - 1)
                if there.bit_count() == 1:  # what is forced has one cutting in llguidance
                    n_forced += 1
                    if not session.advance(token):
                        break
                    text += pieces.get(token, "")
                    continue
                n_masks += 1
                n_equal += (here ^ there) & text_tokens == 0
                for own, other, counts, name in ((here, there, ours, "only here"), (there, here, theirs, f"only {peer.name}")):
                    for extra in bits(own & ~other & text_tokens):
                        piece = pieces.get(extra, "")
                        kind = kind_of(piece)
                        counts[kind] += 1
                        if kind == "other" and not any(case["name"] == seen for seen, *_ in examples[name]):
                            examples[name].append((case["name"], text[-60:], piece))
                if token < 0 or not session.advance(token):
                    break
                text += pieces.get(token, "")
    print(f"{peer.name}: {n_refused} of {len(cases)} schemas refused; {n_masks} masks, {n_equal} equal, {n_forced} with one token left out")
    print("  only here:  ", dict(ours.most_common()))
    print("  only there: ", dict(theirs.most_common()))
    for name, found in examples.items():
        print(f"  other, {name}: {len(found)} schemas")
        for schema, text, piece in found[:12]:
            print(f"    {schema}: behind {text!r}: {piece!r}")


if __name__ == "__main__":
    main()
