"""Functions and methods over ops; the package takes FUNCTIONS, install_methods() takes METHODS."""

from . import cells, copies, geometry, products, scattering, spectral, stacking, statistics
from .registering import FUNCTIONS, METHODS, REPLACED

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "REPLACED",
    "cells",
    "copies",
    "geometry",
    "products",
    "scattering",
    "spectral",
    "stacking",
    "statistics",
]
