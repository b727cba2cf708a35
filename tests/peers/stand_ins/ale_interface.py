"""cule's interface of one console in the place of `ale_py.ALEInterface`."""

from __future__ import annotations

import ale_py

from cule.adapters.ale import ALEInterface

ale_py.ALEInterface = ALEInterface
