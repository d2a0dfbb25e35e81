"""What a bundled Octavo does before its first import."""

import os

from engine.blas_check import answer_check

answer_check()

# PyInstaller points the loader at the bundle's own libraries, which would break a browser that is started
# from here. The loader has read the variable already; what is left of it reaches only children.
original = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
os.environ.pop("LD_LIBRARY_PATH", None)
if original:
    os.environ["LD_LIBRARY_PATH"] = original
