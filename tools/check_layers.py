#!/usr/bin/env python3
"""Rebuilds the include graph of src/, include/, bench/ and python/ and fails on any edge that the layer table forbids.

Also checked: every edge is declared by the folder's CMakeLists.txt and every declared edge is used; headers start with
#pragma once; includes are root-relative and name files that exist; getenv only in the option parser; no preprocessor
condition on a backend outside its folder and the one factory. Tests are free to include what they test.

Usage: check_layers.py [--root DIR] [--stamp FILE]    exit 1 and one line per violation
       check_layers.py --self-test                    proves on small trees that each violation is found
"""

import argparse
import pathlib
import re
import sys
import tempfile

# docs/ARCHITECTURE.md, layer table. A folder includes only from rows with a smaller number, or from itself.
ROWS = {
    "base": 0,
    "text": 1, "platform": 1, "numerics": 1,
    "tensor": 2,
    "checkpoint": 3, "tokenizer": 3, "grammar": 3, "kv": 3, "parallel": 3,
    "ops": 4,
    "backend/ref": 5, "backend/cpu": 5, "backend/cuda": 5,
    "model": 6, "sampling": 6, "sched": 6,
    "engine": 7,
    "protocol": 8,
    "server": 9, "cli": 9, "python": 9,
    "bench": 8.5,  # beside src/: sees everything up to protocol; only the command line may include it
}
TOP_ROW = 9

# include/deepinfer/<name> -> the folder that implements it. An include of the header is an edge to that folder.
PUBLIC_OWNERS = {
    "status.h": "base",
    "tokenizer.h": "tokenizer", "tokenize_service.h": "tokenizer",
    "tensor_file.h": "checkpoint",
    "constraint.h": "grammar",
    "engine.h": "engine", "request.h": "engine", "options.h": "engine", "c.h": "engine",
}

# Row 9 is our own first embedder: besides public headers it sees only these.
TOP_ROW_MAY_INCLUDE = {
    "server": {"protocol", "grammar", "text"}, "cli": {"protocol", "bench", "grammar", "text"},
    "python": {"protocol", "text"},
}

# Folders that are written in ops only: which backend runs is the engine's choice.
BACKEND_BLIND = {"model", "sampling", "sched"}

GETENV_FILES = {"src/cli/arguments.cc"}            # the option parser
BACKEND_FACTORY = "src/engine/backend_factory.cc"  # the one place that knows which backends are linked

SOURCE_SUFFIXES = {".h", ".cc", ".cuh", ".cu", ".inc"}
HEADER_SUFFIXES = {".h", ".cuh"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*)$", re.MULTILINE)
BACKEND_WORD = re.compile(r"\w*(?:CUDA|NVCC|NCCL|ASCEND|DI_(?:HAVE|WITH|USE|ENABLE)_\w*BACKEND|DI_BACKEND)\w*")
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
GETENV = re.compile(r"\b(?:secure_)?getenv\s*\(")
CMAKE_COMMAND = re.compile(r"\b(di_add_layer|target_link_libraries)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", re.IGNORECASE)
DI_ADD_LAYER_KEYWORDS = {"SOURCES", "DEPS", "LIBRARIES"}


def strip_comments(text):
    """Comments become blanks of as many lines; string literals stay (include paths are string literals)."""
    return COMMENT.sub(lambda m: m.group(1) or "\n" * m.group(0).count("\n") or " ", text)


def folder_of(path):
    """Layer folder of a path relative to the repository root, or None."""
    parts = path.parts
    if parts[0] in ("bench", "python"):
        return parts[0]
    if parts[:2] == ("include", "deepinfer"):
        return PUBLIC_OWNERS.get("/".join(parts[2:]))
    if parts[0] == "src" and len(parts) >= 3:
        two = "/".join(parts[1:3])
        return two if two in ROWS else parts[1]
    return None


def edge_error(source, target, is_public_header):
    """Why `source` may not include from `target`, or None."""
    if source == target:
        return None
    if ROWS[source] == TOP_ROW:
        if is_public_header or target in TOP_ROW_MAY_INCLUDE[source]:
            return None
        allowed = ", ".join(sorted(TOP_ROW_MAY_INCLUDE[source]))
        return f"{source} (row {TOP_ROW}) sees only include/deepinfer and {allowed}"
    if target == "bench":
        return "only cli may include bench"
    if source == "bench" and ROWS[target] <= ROWS["engine"]:
        return None
    if ROWS[target] >= ROWS[source]:
        return f"{source} is row {ROWS[source]}, {target} is row {ROWS[target]}: only lower rows may be included"
    if source in BACKEND_BLIND and target.startswith("backend/"):
        return f"{source} is written in ops only and sees no backend"
    return None


class Checker:
    def __init__(self, root):
        self.root = root
        self.errors = []
        self.edges = {}  # (source folder, target folder) -> "file:line" of one such include

    def fail(self, where, message):
        self.errors.append(f"{where}: {message}")

    def run(self):
        files = []
        for top in ("src", "include", "bench", "python"):
            files += sorted(p for p in (self.root / top).rglob("*") if p.suffix in SOURCE_SUFFIXES and p.is_file())
        for file in files:
            self.check_file(file.relative_to(self.root))
        self.check_declarations()
        return self.errors

    def check_file(self, path):
        name = path.as_posix()
        folder = folder_of(path)
        if folder is None or folder not in ROWS:
            self.fail(name, "is in no folder of the layer table (add it to ROWS or PUBLIC_OWNERS in tools/check_layers.py)")
            return
        text = strip_comments((self.root / path).read_text(encoding="utf-8"))
        if path.suffix in HEADER_SUFFIXES and not re.match(r"\s*#pragma once\b", text):
            self.fail(name, "header does not start with #pragma once")
        if name not in GETENV_FILES:
            for match in GETENV.finditer(text):
                self.fail(at(name, text, match), f"getenv outside the option parser ({', '.join(sorted(GETENV_FILES))})")
        if not name.startswith("src/backend/") and name != BACKEND_FACTORY:
            for match in CONDITION.finditer(text):
                word = BACKEND_WORD.search(match.group(1))
                if word:
                    self.fail(at(name, text, match), f"condition on a backend ({word.group(0)}) outside src/backend and {BACKEND_FACTORY}")
        for match in INCLUDE.finditer(text):
            self.check_include(name, folder, at(name, text, match), match.group(1) == '"', match.group(2))

    def check_include(self, name, folder, where, is_quoted, target):
        resolved = next((top for top in ("src", "include", "") if (self.root / top / target).is_file() and
                         (top or target.startswith(("bench/", "python/")))), None)
        if resolved is None:
            if is_quoted:
                self.fail(where, f'"{target}" is no file of src/ or include/ (own includes are root-relative, others use <>)')
            return
        if not is_quoted:
            self.fail(where, f"<{target}> is ours: include it with quotes")
        target_path = pathlib.Path(resolved) / target
        target_folder = folder_of(target_path)
        if target_folder not in ROWS:
            return  # reported for the file itself
        if target_folder != folder:
            self.edges.setdefault((folder, target_folder), where)
        error = edge_error(folder, target_folder, resolved == "include")
        if error:
            self.fail(where, f'"{target}": {error}')

    def check_declarations(self):
        declared = {}  # folder -> (CMakeLists name, set of folders)
        for top in ("src", "bench", "python"):
            for cmake in sorted((self.root / top).rglob("CMakeLists.txt")):
                folder = folder_of(cmake.relative_to(self.root) / "x") if top == "src" else top
                if cmake.parent == self.root / "src":
                    continue
                if cmake.parent.relative_to(self.root).as_posix() not in (f"src/{folder}", folder):
                    continue  # a helper below a layer folder, or src/backend itself
                declared[folder] = (cmake.relative_to(self.root).as_posix(), declared_deps(cmake, folder))
        for (source, target), where in sorted(self.edges.items()):
            name, deps = declared.get(source, (None, set()))
            if name is None:
                self.fail(where, f"{source} has no CMakeLists.txt that declares its dependency on {target}")
            elif target not in deps:
                self.fail(where, f"{source} includes {target}, but {name} does not declare it (DEPS {target})")
        for source, (name, deps) in sorted(declared.items()):
            for target in sorted(deps):
                if (source, target) not in self.edges:
                    self.fail(name, f"{source} declares {target} and includes nothing of it")


def declared_deps(cmake, folder):
    """Folders named by DEPS of di_add_layer, or linked as di_<folder>, in one CMakeLists.txt."""
    text = re.sub(r"#[^\n]*", "", cmake.read_text(encoding="utf-8"))
    by_target = {"di_" + name.replace("/", "_"): name for name in ROWS}
    deps = set()
    for command, arguments in CMAKE_COMMAND.findall(text):
        keyword = None
        for word in arguments.replace('"', " ").split():
            if command.lower() == "di_add_layer":
                if word in DI_ADD_LAYER_KEYWORDS:
                    keyword = word
                elif keyword == "DEPS":
                    deps.add(word)
            elif word in by_target:
                deps.add(by_target[word])
    deps.discard(folder)
    return deps


def at(name, text, match):
    return f"{name}:{text.count(chr(10), 0, match.start()) + 1}"


def self_test():
    """Each case: files of a tree, and a piece of the one error expected (None: clean)."""
    clean = {
        "include/deepinfer/status.h": "// text\n#pragma once\n",
        "include/deepinfer/engine.h": '#pragma once\n#include "deepinfer/status.h"\n',
        "src/base/CMakeLists.txt": "di_add_layer(base SOURCES a.cc)",
        "src/base/a.cc": '#include "deepinfer/status.h"\n#include <vector>\n',
        "src/tensor/CMakeLists.txt": "di_add_layer(tensor SOURCES t.cc DEPS base)",
        "src/tensor/t.h": "#pragma once\n",
        "src/tensor/t.cc": '#include "tensor/t.h"\n#include "deepinfer/status.h"\n',
        "src/backend/ref/CMakeLists.txt": "di_add_layer(backend/ref SOURCES r.cc DEPS tensor)",
        "src/backend/ref/r.h": '#pragma once\n#include "tensor/t.h"\n',
        "src/engine/CMakeLists.txt": "di_add_layer(engine SOURCES backend_factory.cc DEPS base)\n"
                                     "if(DI_X)\n  target_link_libraries(di_engine PRIVATE di_backend_ref) # di_kv\nendif()\n",
        "src/engine/backend_factory.cc": '#ifdef DI_HAVE_CUDA_BACKEND\n#endif\n#include "backend/ref/r.h"\n',
        "src/cli/CMakeLists.txt": "add_executable(deepinfer main.cc)\ntarget_link_libraries(deepinfer PRIVATE di_engine)\n",
        "src/cli/arguments.cc": 'auto x = getenv("A");\n',
        "src/cli/main.cc": '#include "deepinfer/engine.h"\n',
    }
    def tensor_cc(text):
        return {"src/tensor/t.cc": '#include "tensor/t.h"\n#include "deepinfer/status.h"\n' + text}
    ops = {"src/ops/CMakeLists.txt": "di_add_layer(ops)", "src/ops/o.h": "#pragma once\n"}
    cases = {
        "clean": ({}, None),
        "comments are no code": (tensor_cc('// #include "ops/o.h"\n/* getenv("X") */\n'), None),
        "upward": ({**ops, **tensor_cc('#include "ops/o.h"\n'),
                    "src/tensor/CMakeLists.txt": "di_add_layer(tensor SOURCES t.cc DEPS base ops)"}, "only lower rows"),
        "same row": ({"src/kv/CMakeLists.txt": "di_add_layer(kv)", "src/kv/k.h": "#pragma once\n",
                      "src/grammar/CMakeLists.txt": "di_add_layer(grammar DEPS kv)",
                      "src/grammar/g.h": '#pragma once\n#include "kv/k.h"\n'}, "only lower rows"),
        "backend sees backend": ({"src/backend/cpu/CMakeLists.txt": "di_add_layer(backend/cpu DEPS backend/ref)",
                                  "src/backend/cpu/c.h": '#pragma once\n#include "backend/ref/r.h"\n'}, "only lower rows"),
        "model sees backend": ({"src/model/CMakeLists.txt": "di_add_layer(model DEPS backend/ref)",
                                "src/model/m.h": '#pragma once\n#include "backend/ref/r.h"\n'}, "written in ops only"),
        "public header owner": ({"include/deepinfer/engine.h": '#pragma once\n#include "deepinfer/status.h"\n',
                                 "src/tensor/CMakeLists.txt": "di_add_layer(tensor SOURCES t.cc DEPS base engine)",
                                 **tensor_cc('#include "deepinfer/engine.h"\n')}, "only lower rows"),
        "public header without owner": ({"include/deepinfer/new.h": "#pragma once\n"}, "no folder of the layer table"),
        "unknown folder": ({"src/utils/u.h": "#pragma once\n"}, "no folder of the layer table"),
        "top row": ({"src/cli/main.cc": '#include "deepinfer/engine.h"\n#include "tensor/t.h"\n',
                     "src/cli/CMakeLists.txt": "target_link_libraries(deepinfer PRIVATE di_engine di_tensor)"}, "sees only"),
        "bench from below": ({"bench/CMakeLists.txt": "di_add_layer(bench)", "bench/b.h": "#pragma once\n",
                              "src/engine/options.cc": '#include "bench/b.h"\n',
                              "src/engine/CMakeLists.txt": "di_add_layer(engine DEPS base backend/ref bench)"}, "only cli"),
        "undeclared": ({"src/tensor/CMakeLists.txt": "di_add_layer(tensor SOURCES t.cc)"}, "does not declare it"),
        "unused": ({"src/platform/CMakeLists.txt": "di_add_layer(platform DEPS base)", "src/platform/p.h": "#pragma once\n"},
                   "includes nothing of it"),
        "no pragma once": ({"src/tensor/t.h": "int x;\n"}, "#pragma once"),
        "not root-relative": ({"src/tensor/t.cc": '#include "t.h"\n#include "deepinfer/status.h"\n'}, "root-relative"),
        "angle brackets": ({"src/base/a.cc": "#include <deepinfer/status.h>\n"}, "with quotes"),
        "getenv": (tensor_cc('auto x = std::getenv("A");\n'), "getenv outside"),
        "backend condition": (tensor_cc("#if defined(__CUDACC__)\n#endif\n"), "condition on a backend"),
    }
    n_failed = 0
    for name, (files, expected) in cases.items():
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**clean, **files}.items():
                file = pathlib.Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            errors = Checker(pathlib.Path(root)).run()
        as_expected = not errors if expected is None else len(errors) == 1 and expected in errors[0]
        if not as_expected:
            n_failed += 1
            print(f"self-test '{name}': expected {expected!r}, got {errors}")
    print(f"check_layers self-test: {len(cases) - n_failed} passed, {n_failed} failed")
    return 1 if n_failed else 0


def main():
    parser = argparse.ArgumentParser(description="checks the layer table; see the head of this file")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--stamp", type=pathlib.Path, help="file to touch when the tree is clean (for build systems)")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    checker = Checker(options.root)
    errors = checker.run()
    for error in errors:
        print(f"layer check: {error}", file=sys.stderr)
    if errors:
        return 1
    if options.stamp:
        options.stamp.touch()
    print(f"layer check: {len(checker.edges)} edges, all allowed and declared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
