"""The soak runs each seed once, tells how many probes fired, and sees a run that differs."""

import json
from pathlib import Path

import pytest

from tests import soak
from tests.system.cases import BY_NAME


def test_a_seed_runs_once_and_what_differs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, case = tmp_path / "soak.jsonl", BY_NAME["kernel-arm64"]
    assert soak.soak([case], [3], log)
    (row,) = map(json.loads, log.read_text().splitlines())
    assert (row["image"], row["seed"], row["differences"]) == ("kernel-arm64", 3, [])
    assert row["sites"] > 0
    assert row["hits"] > 0
    assert soak.soak([case], [3], log)
    assert len(log.read_text().splitlines()) == 1
    # Breakpoints that are not forgiven where the text ran are differences.
    monkeypatch.setattr(soak, "copies_of", lambda _run: ())
    monkeypatch.setattr(soak, "_bias", lambda _run: 64)
    assert not soak.soak([case], [4], log)
    assert "memory at" in json.loads(log.read_text().splitlines()[-1])["differences"][0]
