"""Functions of Python's library in which a thread waits for another process or thread.

They are Python's own, so that the time in them would count as Python's work. What a Pool, a queue,
a DataLoader, gymnasium's AsyncVectorEnv or concurrent.futures waits in ends in one of these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

# By module: functions, and methods of classes.
WAITS = {
    "multiprocessing.connection": ("wait", "Connection._recv_bytes", "Connection._poll"),
    "multiprocessing.synchronize": ("SemLock.__enter__", "Condition.wait", "Event.wait"),
    "multiprocessing.process": ("BaseProcess.join",),
    "subprocess": ("Popen.wait", "Popen.communicate"),
    "threading": ("Condition.wait", "Thread.join"),
    "os": ("waitpid", "wait"),
}


def waiting_functions() -> Iterator[tuple[Any, str, Any]]:
    """Those of modules that are imported: where, name and function."""
    for module, paths in WAITS.items():
        if module not in sys.modules:
            continue
        for path in paths:
            where: Any = sys.modules[module]
            *classes, name = path.split(".")
            for one in classes:
                where = getattr(where, one, None)
            # A class may have inherited it.
            function = None if where is None else vars(where).get(name)
            if isinstance(function, FunctionType | BuiltinFunctionType):
                yield where, name, function
