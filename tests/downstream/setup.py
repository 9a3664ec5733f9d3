from Cython.Build import cythonize
from setuptools import Extension, setup

import bincp

include = {"include_dirs": [bincp.get_include()]}
setup(
    name="pixel",
    ext_modules=[
        *cythonize([Extension("pixel_cython", ["pixel_cython.pyx"], **include)], language_level=3),
        Extension("pixel_c", ["pixel_c.c"], py_limited_api=True, **include),
    ],
)
