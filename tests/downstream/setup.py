from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

import bincp

include = {"include_dirs": [bincp.get_include()]}
cython = {"language_level": 3, "include_path": [str(Path(bincp.__file__).parents[1])]}
setup(
    name="pixel",
    ext_modules=[
        *cythonize([Extension("pixel_cython", ["pixel_cython.pyx"], **include)], **cython),
        Extension("pixel_c", ["pixel_c.c"], py_limited_api=True, **include),
    ],
)
