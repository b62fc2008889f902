"""Texts made of random tokens from the masks must be documents that an independent validator accepts.

DEEPINFER_TEST_WHOLE=1 takes every schema of the development set, else a sample.
"""

import json
import os
import re

import checks
import independent
import pytest

N_WALKS = 3
EVERY = 1 if os.environ.get("DEEPINFER_TEST_WHOLE") else 40
# Not judged: references that the validator would have to fetch.
HUGE = re.compile(r"\d[eE][+-]?\d{5}")  # exponents that Python's numbers do not hold
UNKNOWN = ("Unresolvable", "NotPython", "RecursionError", "PointerToNowhere")


def faults(cases, *options):
    """Name -> first fault of a document, over all schemas that are accepted; how many walks ended, and how many did not."""
    found, n_judged, n_stuck = {}, 0, 0
    for case, answer in zip(cases, checks.answers([{"name": c["name"], "schema": c["schema"]} for c in cases],
                                                  "--walk", N_WALKS, *options)):
        stuck = answer.get("stuck_walks", [])
        assert not any("BUG" in why for why in stuck), (case["name"], stuck)
        n_stuck += len(stuck)
        try:
            fault_of = independent.judge_of(json.dumps(case["schema"]))
            for text in answer.get("walks", []):
                n_judged += 1
                fault = None if HUGE.search(text) else fault_of(text)
                if fault:
                    found[case["name"]] = (fault, text[:300])
        except Exception as error:  # the validator's own limits
            if not any(name in repr(type(error)) + repr(error.__context__) for name in UNKNOWN):
                raise
    return found, n_judged, n_stuck


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("order", ["any", "schema"])
def test_walks_end_in_valid_documents(order, seed):
    cases = [json.loads(line) for line in checks.maskbench()[seed::EVERY]]
    found, n_judged, n_stuck = faults(cases, "--seed", seed, "--property-order", order)
    print(f"{len(cases)} schemas, {n_judged} documents, {n_stuck} walks without an end")
    assert not found
    assert n_judged > 2.5 * len(cases)
    assert n_stuck < 0.1 * n_judged  # names that only together satisfy a oneOf are not found by chance


def test_walks_through_large_vocabulary(large_model):
    cases = [json.loads(line) for line in checks.maskbench()[7 :: 4 * EVERY]]
    done = checks.answers([{"schema": c["schema"]} for c in cases], "--walk", 1, model=large_model)
    assert sum("walks" in answer for answer in done) > 0.9 * len(cases)
    for case, answer in zip(cases, done):
        for text in answer.get("walks", []):
            json.loads(text)
