"""A folder of src/ includes only itself and what stands before it in src/LAYERS."""

import re

from tree import LAYERS, ROOT, cpp_files, files, shown

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)

# Third parties, each with the one place that may include it.
DOORS = {
    r"(cblas|openblas|lapack)": "src/ops/blas/",
    r"(unsupported/)?Eigen/": "src/ops/fft/",
    r"llvm(-c)?/": "src/codegen/llvm_headers.h",
    r"(Python\.h|internal/pycore|cpython/)": ("src/bindings/", "src/capture/"),
    r"nanobind/": ("src/bindings/", "src/capture/"),
}


def includes(path):
    return INCLUDE.findall(path.read_text())


def test_layers_are_the_folders():
    folders = {path.relative_to(ROOT / "src").parts[0] for path in files("src/*")} - {"LAYERS"}
    assert folders == set(LAYERS)


def test_no_include_upwards():
    wrong = []
    for path in cpp_files():
        own = path.relative_to(ROOT / "src").parts[0]
        for quote, name in includes(path):
            target = name.split("/")[0]
            if quote != '"':
                continue
            if target == "prong":
                allowed = LAYERS.index(own) >= LAYERS.index("api")
            elif target not in LAYERS:
                wrong.append(f"{shown(path)}: {name} is not written as folder/file.h")
                continue
            else:
                allowed = LAYERS.index(target) <= LAYERS.index(own)
            if not allowed:
                wrong.append(f"{shown(path)} includes {name}, which stands above {own}")
    assert not wrong, "\n".join(wrong)


def test_included_files_exist():
    roots = (ROOT / "src", ROOT / "include")
    wrong = [
        f"{shown(path)}: {name}"
        for path in cpp_files()
        for quote, name in includes(path)
        if quote == '"' and not any((root / name).exists() for root in roots)
    ]
    assert not wrong, "\n".join(wrong)


def test_third_parties_have_one_door():
    wrong = []
    for path in cpp_files() + cpp_files("include"):
        for _, name in includes(path):
            for pattern, door in DOORS.items():
                if re.match(pattern, name) and not shown(path).startswith(door):
                    wrong.append(f"{shown(path)} includes {name}; only {door} may")
    assert not wrong, "\n".join(wrong)


def test_codegen_headers_show_no_llvm():
    headers = [path for path in cpp_files("src/codegen") if path.suffix == ".h"]
    wrong = [
        shown(path)
        for path in headers
        if path.name != "llvm_headers.h"
        and ("llvm::" in path.read_text() or "llvm_headers.h" in path.read_text())
    ]
    assert not wrong, wrong


def test_public_headers_include_only_each_other_and_the_standard_library():
    wrong = [
        f"{shown(path)}: {name}"
        for path in cpp_files("include")
        for quote, name in includes(path)
        if (quote == '"' and not name.startswith("prong/")) or (quote == "<" and "/" in name)
    ]
    assert not wrong, wrong


def test_python_does_not_import_inside_functions_or_for_types_only():
    pattern = re.compile(r"^[ \t]+(from \.|from prong|import prong)|TYPE_CHECKING", re.MULTILINE)
    wrong = [
        f"{shown(path)}: {match.group().strip()}"
        for path in files("python/prong/*.py")
        for match in pattern.finditer(path.read_text())
    ]
    assert not wrong, "\n".join(wrong)


def test_torch_is_imported_by_the_bridge_only():
    pattern = re.compile(r"^\s*(import torch|from torch)\b", re.MULTILINE)
    wrong = [
        shown(path)
        for path in files("python/prong/*.py")
        if "bridge" not in path.parts and pattern.search(path.read_text())
    ]
    assert not wrong, wrong
