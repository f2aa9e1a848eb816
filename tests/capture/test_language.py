"""CPython's own tests of the language, with every frame of theirs evaluated here: the same ones pass as without."""

import importlib
import importlib.util
import unittest

import prong as torch
import pytest

MODULES = """
abc asyncgen augassign baseexception bdb binop bisect bool builtin call class cmath code collections compare contains
contextlib contextlib_async copy coroutines dataclasses decorators defaultdict descr descrtut dict dictcomps dynamic
dynamicclassattribute enum enumerate except_star exception_group exception_variations exceptions extcall float
fractions frame fstring funcattrs functools generator_stop generators genexps global grammar hash heapq index int
isinstance iter iterlen keywordonlyarg list listcomps longexp metaclass named_expressions numeric_tower opcodes
operator patma pkg positional_only_arg property raise range reprlib richcmp scope setcomps slice sort string
string_literals subclassinit super syntax sys_setprofile sys_settrace textwrap tuple type_annotations typechecks types
unary unpack unpack_ex userdict userlist with yield_from
""".split()

# More than a second each, and about what others are about too: `make test-all` runs them.
LONG = set(
    """
asyncgen builtin collections coroutines descr dict enum functools hash heapq string_literals tuple
""".split()
)


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


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in MODULES],
)
@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore")
def test_the_same_tests_pass(name):
    if importlib.util.find_spec("test.test_grammar") is None:
        pytest.skip("this CPython comes without its tests")
    module = importlib.import_module(f"test.test_{name}")
    plain = results(module, lambda test: test())
    compiled = torch.compile(lambda test: test(), backend="interpreter")
    assert results(module, compiled) == plain
