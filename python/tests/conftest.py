"""Fixtures of these tests."""

from __future__ import annotations

import pathlib
import shutil

import pytest

import rollyard
from generating import generate as generate
from serving import ROOT
from serving import serve as serve
from testengine import engine as engine
from testengine import server as server
from testengine import start_engine as start_engine

FIXTURES = ROOT / "crates/core/tests/fixtures"


def make_model(folder: pathlib.Path, *, template: str | None = "chatml") -> pathlib.Path:
    """A model's folder with the small tokenizer that the Rust tests use too."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(FIXTURES / "tokens/chatml/tokenizer.json", folder / "tokenizer.json")
    if template is not None:
        shutil.copy(FIXTURES / f"templates/{template}.jinja", folder / "chat_template.jinja")
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of a small model that speaks ChatML."""
    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def tokenizer(model: pathlib.Path) -> rollyard.Tokenizer:
    return rollyard.Tokenizer.from_pretrained(model)
