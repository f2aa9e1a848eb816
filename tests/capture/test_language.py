"""CPython's own tests of the language, with every frame of theirs evaluated here: the same ones pass as without."""

import importlib
import importlib.util
import unittest

import prong as torch
import pytest

MODULES = [
    "test_generators",
    "test_with",
    "test_scope",
    "test_extcall",
    "test_unpack",
    "test_unpack_ex",
    "test_dictcomps",
    "test_listcomps",
    "test_setcomps",
    "test_funcattrs",
    "test_raise",
    "test_patma",
    "test_augassign",
    "test_compare",
    "test_contains",
    "test_decorators",
    "test_exception_variations",
    "test_generator_stop",
    "test_genexps",
    "test_iter",
    "test_keywordonlyarg",
    "test_lambda" if importlib.util.find_spec("test.test_lambda") else "test_longexp",
    "test_opcodes",
    "test_positional_only_arg",
    "test_property",
    "test_slice",
    "test_string_literals",
    "test_super",
    "test_unary",
    "test_with",
    "test_yield_from",
]


def results(module, run):
    """{test: outcome} of the unit tests of a module."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    found = {}

    def each(tests):
        for test in tests:
            if isinstance(test, unittest.TestSuite):
                each(test)
            else:
                result = unittest.TestResult()
                run(lambda test=test, result=result: test.run(result))
                found[test.id()] = (
                    len(result.failures),
                    len(result.errors),
                    [case.id() for case, _ in result.skipped],
                )

    each(suite)
    return found


@pytest.mark.parametrize("name", sorted(set(MODULES)))
@pytest.mark.filterwarnings("ignore")
def test_the_same_tests_pass(name):
    if importlib.util.find_spec(f"test.{name}") is None:
        pytest.skip("this CPython comes without its tests")
    module = importlib.import_module(f"test.{name}")
    plain = results(module, lambda test: test())
    compiled = torch.compile(lambda test: test(), backend="interpreter")
    assert results(module, compiled) == plain
