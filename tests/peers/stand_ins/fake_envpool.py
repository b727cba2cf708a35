"""An empty module `envpool`: TorchRL looks for one when it is imported."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

envpool = sys.modules["envpool"] = ModuleType("envpool")
envpool.__spec__ = ModuleSpec("envpool", None)
