# Finds what Prong links to. The packages come from PyPI, into the environment of the Python
# interpreter given (-DPython_EXECUTABLE=...); used by CMakeLists.txt.

set(Python_FIND_VIRTUALENV FIRST)
if(PRONG_PYTHON)
  find_package(Python 3.11...<3.12 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
endif()

# prong_ask_python(<variable> <what for> <code>): the output of a line of Python, or a clear error.
function(prong_ask_python variable package code)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "${code}" OUTPUT_VARIABLE answer
                  ERROR_VARIABLE complaint RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "${package} is missing: install it for ${Python_EXECUTABLE} "
                        "(pyproject.toml names the version).\n${complaint}")
  endif()
  set(${variable} "${answer}" PARENT_SCOPE)
endfunction()

# oneTBB: a peer in bench/runtime.cpp, which is left out where the package is not installed.
execute_process(COMMAND "${Python_EXECUTABLE}" -c "
from importlib.metadata import distribution
d = distribution('tbb-devel')
print(next(f for f in d.files if f.name == 'TBBConfig.cmake').locate().resolve().parent)"
                OUTPUT_VARIABLE PRONG_TBB_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(TBB_FIND_RELEASE_ONLY ON)
if(PRONG_TBB_PREFIX)
  find_package(TBB QUIET CONFIG COMPONENTS tbb PATHS "${PRONG_TBB_PREFIX}" NO_DEFAULT_PATH)
endif()

# OpenBLAS: used by src/ops/blas only. Its symbols carry the prefix scipy_.
prong_ask_python(PRONG_BLAS_INCLUDE "scipy-openblas32"
                 "import scipy_openblas32 as b; print(b.get_include_dir())")
prong_ask_python(PRONG_BLAS_LIBRARY "scipy-openblas32" "
import os, scipy_openblas32 as b; print(os.path.join(b.get_lib_dir(), b.get_library(fullname=True)))")
add_library(prong_openblas SHARED IMPORTED)
set_target_properties(prong_openblas PROPERTIES
  IMPORTED_LOCATION "${PRONG_BLAS_LIBRARY}"
  INTERFACE_INCLUDE_DIRECTORIES "${PRONG_BLAS_INCLUDE}"
  INTERFACE_COMPILE_DEFINITIONS "BLAS_SYMBOL_PREFIX=scipy_")

# Eigen's FFT, headers only: used by src/ops/fft only.
prong_ask_python(PRONG_EIGEN_INCLUDE "cmeel-eigen" "
from importlib.metadata import distribution
d = distribution('cmeel-eigen')
print(next(f for f in d.files if f.match('unsupported/Eigen/FFT')).locate().resolve().parents[2])")
add_library(prong_eigen INTERFACE IMPORTED)
target_include_directories(prong_eigen SYSTEM INTERFACE "${PRONG_EIGEN_INCLUDE}")

# LLVM: used by src/codegen only.
if(PRONG_LLVM)
  prong_ask_python(LLVM_DIR "mlc-llvm-static" "
import subprocess, sys
print(subprocess.check_output([sys.executable, '-m', 'mlc_llvm_static.config', '--cmake-dir'], text=True).strip())")
  prong_ask_python(PRONG_LLVM_PREFIX "mlc-llvm-static" "
import subprocess, sys
print(subprocess.check_output([sys.executable, '-m', 'mlc_llvm_static.config', '--prefix'], text=True).strip())")
  list(PREPEND CMAKE_PREFIX_PATH "${PRONG_LLVM_PREFIX}")
  set(ZLIB_USE_STATIC_LIBS ON)
  set(MLC_LLVM_STATIC_PROFILE native)
  find_package(LLVM 23.1 REQUIRED CONFIG PATHS "${LLVM_DIR}" NO_DEFAULT_PATH)
endif()

if(PRONG_PYTHON)
  prong_ask_python(nanobind_ROOT "nanobind" "import nanobind; print(nanobind.cmake_dir())")
  find_package(nanobind 3.1 REQUIRED CONFIG)
  nanobind_build_library(nanobind-static)
endif()
if(PRONG_TESTS)
  find_package(GTest REQUIRED)  # Debian: libgtest-dev; `make setup` installs it where it may
endif()
