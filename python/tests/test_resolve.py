"""Workflows by what users call them, and errors that say what was found instead."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import rollyard
import yarns
from rollyard import resolve_workflow

GOOD: list[tuple[Any, dict[str, Any] | None, int]] = [
    (yarns.Plain(3), None, 3),
    (yarns.Plain, None, 8),
    (yarns.Plain, {"max_new_tokens": 5}, 5),
    ("yarns.Plain", {"max_new_tokens": 6}, 6),
]


@pytest.mark.parametrize(("given", "kwargs", "max_new_tokens"), GOOD)
def test_a_workflow_is_an_instance_a_class_or_a_name(
    given: Any, kwargs: dict[str, Any] | None, max_new_tokens: int
) -> None:
    workflow = resolve_workflow(given, kwargs)
    assert isinstance(workflow, yarns.Plain) and workflow.max_new_tokens == max_new_tokens


def test_a_class_of_another_program_needs_no_base() -> None:
    class Foreign:
        async def arun_episode(self, engine: Any, data: dict[str, Any]) -> None:
            return None

    assert isinstance(resolve_workflow(Foreign), Foreign)


BAD: list[tuple[Any, dict[str, Any] | None, str]] = [
    ("nowhere.Plain", None, "there is no module nowhere; is its folder on PYTHONPATH"),
    ("yarns.nothing.Plain", None, "there is no module yarns.nothing"),
    (
        "yarns.Plian",
        None,
        "the module yarns has no Plian; it has Agent, Bad, Chats, NotAsync, Plain, Talk, Told, where: /",
    ),
    ("yarns.NOT_A_CLASS", None, "yarns.NOT_A_CLASS is an int, but must be a class with arun_episode"),
    ("Plain", None, "'Plain' names nothing to import; write \"module.name\""),
    ("", None, "names nothing to import"),
    (yarns.Plain(), {"max_new_tokens": 3}, r"workflow_kwargs \(max_new_tokens\) were given with a Plain"),
    (yarns.Told, {"color": "red"}, "Told cannot be made with color: "),
    (yarns.NotAsync, None, "NotAsync.arun_episode is not async"),
    (7, None, "an int is no workflow: it has no arun_episode"),
    (dict, None, "the class dict is no workflow"),
]


@pytest.mark.parametrize(("given", "kwargs", "told"), BAD)
def test_what_is_no_workflow_is_told_with_what_was_found(
    given: Any, kwargs: dict[str, Any] | None, told: str
) -> None:
    with pytest.raises(rollyard.WorkflowError, match=told):
        resolve_workflow(given, kwargs)


def test_a_module_that_breaks_says_how(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "breaks.py").write_text("1 / 0")
    (tmp_path / "lacks.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(rollyard.WorkflowError, match="breaks raised ZeroDivisionError: division by zero"):
        resolve_workflow("breaks.Workflow")
    with pytest.raises(rollyard.WorkflowError, match="lacks needs no_such_package, which is not installed"):
        resolve_workflow("lacks.Workflow")


@pytest.mark.parametrize("agent", [yarns.Agent, yarns.Agent(), "yarns.Agent"])
def test_an_agent_becomes_a_workflow(agent: Any) -> None:
    workflow = resolve_workflow(agent)
    assert isinstance(workflow, rollyard.AgentWorkflow) and workflow.command is None
    assert resolve_workflow(workflow) is workflow
