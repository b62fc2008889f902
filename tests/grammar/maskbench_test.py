"""Schemas that real users wrote, with valid and invalid instances: none of the invalid ones may be accepted.

A fixed sample; DEEPINFER_TEST_WHOLE=1 runs all of them.
"""

import json
import os

import checks

EVERY = 1 if os.environ.get("DEEPINFER_TEST_WHOLE") else 5


def test_maskbench():
    lines = checks.maskbench()[::EVERY]
    n_compiled = n_valid = n_accepted = 0
    wrong_accepts, refused, lost = [], {}, []
    for line, answer in zip(lines, checks.answers(lines)):
        case = json.loads(line)
        assert answer["name"] == case["name"]
        if not answer["accepted"]:
            assert answer["refused"]["reason"]
            refused[case["name"]] = answer["refused"]
            continue
        n_compiled += 1
        for i, (test, accepted) in enumerate(zip(case["tests"], answer["results"], strict=True)):
            if test["valid"]:
                n_valid += 1
                n_accepted += accepted
                if not accepted:
                    lost.append(f"{case['name']} test {i}")
            elif accepted:
                wrong_accepts.append(f"{case['name']} test {i}")
    print(f"{len(lines)} schemas, {n_compiled} compiled; {n_valid} valid instances, {n_accepted} accepted")
    assert not wrong_accepts
    assert n_compiled >= 0.97 * len(lines), refused
    assert n_accepted >= 0.995 * n_valid, lost
