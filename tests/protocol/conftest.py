"""What the protocol tests share; the rest is in lines.py, which can be imported by name."""

import pytest
from lines import write_v41_tokenizer


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("v41")
    write_v41_tokenizer(directory)
    return directory
