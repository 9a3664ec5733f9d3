"""One thread of torch for each test of this folder, whatever a script sets."""

import sys

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    number = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(number)
