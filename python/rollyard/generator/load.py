"""Generator files as modules, loaded again when they have changed."""

from __future__ import annotations

import importlib.util
import linecache
import os
import sys
import threading
import traceback
from types import ModuleType

from rollyard import slime_modules
from rollyard.errors import RollyardError

_loaded: dict[str, tuple[float, ModuleType]] = {}
_lock = threading.Lock()


class LoadError(RollyardError):
    """A generator file cannot be used; the message names it."""


def load(path: str) -> ModuleType:
    """Runs the file as a module of its own name, with its folder to import from."""
    slime_modules.install()
    folder, file_name = os.path.split(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = file_name.removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise LoadError(f"not a Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    linecache.checkcache(path)
    try:
        # Compiled from the text each time: cached bytecode is told apart by seconds, an editor is faster.
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
        exec(code, vars(module))
    except OSError as error:
        raise LoadError(f"the file cannot be read: {error.strerror}: {path}") from error
    except SyntaxError as error:
        raise LoadError(f"line {error.lineno} is not Python: {error.msg}: {path}") from error
    except BaseException as error:
        # A file that calls exit() on import is as little use as one that raises.
        raise LoadError(f"importing it raised {told(error, path)}: {path}") from error
    return module


def load_once(path: str, stamp: float) -> ModuleType:
    """The module of a file, loaded again if the stamp is another than last time."""
    with _lock:
        known = _loaded.get(path)
        if known is None or known[0] != stamp:
            known = _loaded[path] = (stamp, load(path))
        return known[1]


def told(error: BaseException, path: str) -> str:
    """The exception in a line, with the last place in the file that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((one for one in reversed(frames) if one.filename == path), frames[-1] if frames else None)
    where = f" ({os.path.basename(frame.filename)}:{frame.lineno})" if frame is not None else ""
    kind, text = type(error).__qualname__, str(error)
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"
