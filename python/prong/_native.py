"""Loads the native module, before anything else of the package.

Its OpenBLAS would start a thread for each CPU when it is loaded; Prong spreads products over its own
pool, so they would only take memory and time. The setting is put back at once, since NumPy's OpenBLAS
reads the same variable.
"""

import importlib
import os

_NAME = "OPENBLAS_NUM_THREADS"
_before = os.environ.get(_NAME)
os.environ[_NAME] = "1"
try:
    importlib.import_module("prong._core")
finally:
    if _before is None:
        del os.environ[_NAME]
    else:
        os.environ[_NAME] = _before
