#!/usr/bin/env python3
"""Writes src/grammar/metaschemas_data.cc: the metaschemas of JSON Schema and their vocabularies, without blanks.

How to run (only when the pinned version below changes; the result is committed):

    python3 -m venv /tmp/metaschemas && /tmp/metaschemas/bin/pip install jsonschema-specifications==2025.9.1
    /tmp/metaschemas/bin/python tools/make_metaschemas.py src/grammar/metaschemas_data.cc

The metaschemas are by the JSON Schema authors, under the AFL-3.0 or BSD-3-Clause licence; the package is MIT.
"""

import json
import pathlib
import sys

import jsonschema_specifications

HEAD = """// Made by tools/make_metaschemas.py; do not edit.
// The metaschemas of JSON Schema, (c) the JSON Schema authors, AFL-3.0 or BSD-3-Clause (json-schema.org, specification
// repository), as the PyPI package jsonschema-specifications 2025.9.1 (MIT) holds them. Blanks are left out.
#include "grammar/metaschemas.h"

namespace deepinfer::grammar {

// clang-format off
const Metaschema kMetaschemas[kNMetaschemas] = {
"""
TAIL = """};
// clang-format on

}  // namespace deepinfer::grammar
"""
DRAFTS = ["draft4", "draft6", "draft7", "draft201909", "draft202012"]


def main():
    root = pathlib.Path(jsonschema_specifications.__file__).parent / "schemas"
    entries = []
    for draft in DRAFTS:
        for path in [root / draft / "metaschema.json", *sorted((root / draft).glob("vocabularies/*"))]:
            schema = json.loads(path.read_text())
            url = (schema.get("$id") or schema["id"]).rstrip("#")
            text = json.dumps(schema, separators=(",", ":"), ensure_ascii=True)
            assert ')json"' not in text
            pieces = [text[i : i + 100] for i in range(0, len(text), 100)]
            literal = "\n     ".join(f'R"json({piece})json"' for piece in pieces)
            entries.append(f'    {{"{url}",\n     {literal}}},\n')
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(HEAD + "".join(entries) + TAIL)
    print(len(entries))


main()
