"""The evaluation's own arithmetic: which cases are kept, what the trainer's log gives, the table and the picture. No engine."""

import json
import pathlib
import sys
from xml.etree import ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.eval_mini import __main__ as command  # noqa: E402
from tools.eval_mini import report  # noqa: E402
from tools.eval_mini.picture import picture  # noqa: E402

CALIBRATION = {"stage": "calibration", "accepted_length": 4.5, "rounds": 30, "ece_after": [0.01, 0.02], "temperatures": [1, 1],
               "domains": {"prose": {"accepted_length": 4.25, "rounds": 20}, "code and JSON": {"accepted_length": 5, "rounds": 10}}}  # fmt: skip
SUMMARY = {
    "families": {"facts known exact": {"share": 0.5, "n": 4}, "tools new call": {"share": 0.75, "n": 3}, "tools new exact": {"share": 0, "n": 1}},
    "arithmetic": {}, "well_formed": 1.0, "needle": {"256 0.0": {"share": 1.0, "n": 2}, "1024 0.5": {"share": 0.5, "n": 2}},
    "needle_grades": {"256 known": {"share": 1.0, "n": 2}, "1024 known": {"share": 1.0, "n": 1}, "1024 new": {"share": 0.0, "n": 1}}, "bits_per_byte": {"code": 1.5},
}  # fmt: skip


def cases():
    plain = [{"family": "facts", "grade": g, "check": "exact", "id": f"{g}{i}"} for g in ("known", "new") for i in range(5)]
    needles = [{"family": "needle", "grade": "known", "check": "exact", "length": n, "depth": 0.0, "id": f"{n}-{i}"} for n in (256, 1024) for i in range(5)]
    return plain + needles


def test_the_first_cases_of_each_kind_are_kept():
    assert [c["id"] for c in command.limited(cases(), 2, 1)] == ["known0", "known1", "new0", "new1", "256-0", "1024-0"]
    assert command.limited(cases(), None, None) == cases()
    assert len(command.limited(cases(), 0, None)) == 10


def test_drafts_come_from_the_calibration_of_a_finished_run(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"stage": "drafter", "step": 1}\n' + json.dumps(CALIBRATION) + "\n")
    assert command.drafts(log) == {k: CALIBRATION[k] for k in ("accepted_length", "rounds", "domains", "ece_after")}
    log.write_text('{"stage": "drafter", "step": 1}\n')
    with pytest.raises(SystemExit, match="not finished"):
        command.drafts(log)


def test_table_has_all_parts():
    table = report.table(SUMMARY | {"drafts": CALIBRATION, "format": {"share": 0.999, "n": 1000}})
    for row in ("| facts known exact | 50.0 % | 4 |", "| 256 | 100.0 % | – | 2 |", "| 1024 | 100.0 % | 0.0 % | 2 |", "| prose | 4.25 | 20 |", "| all | 4.50 | 30 |", "| 2 | 2.0 % |",
                "| code | 1.500 |", "| answers that keep the format (temperature 1) | 99.9 % | 1000 |"):  # fmt: skip
        assert row in table, row


@pytest.mark.parametrize("more", [{}, {"drafts": CALIBRATION}])
def test_picture_is_well_formed_and_small(more):
    text = picture(SUMMARY | more)
    words = [e.text for e in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert {"facts", "tools", "256", "1024", "50"} <= set(words) and len(text) < 200_000
    assert ("4.25" in words) == bool(more)
