"""CPython's own tests of the language, with every frame of theirs evaluated here: the same ones pass as without."""

import gc
import importlib
import importlib.util
import unittest

import prong as torch
import pytest


@pytest.fixture(autouse=True)
def no_subinterpreters(monkeypatch):
    """Once a process has had one, PyTorch's backward passes raise in it; other tests need those."""

    def skipped(code):
        raise unittest.SkipTest("makes a subinterpreter")

    if importlib.util.find_spec("test.support"):
        monkeypatch.setattr("test.support.run_in_subinterp", skipped)


@pytest.fixture(autouse=True, scope="module")
def own_garbage():
    """Many of these tests collect garbage: all other tests' objects need not be looked at each time."""
    gc.freeze()
    yield
    gc.unfreeze()


MODULES = """
abc argparse ast asyncgen augassign base64 baseexception bdb binop bisect bool builtin call class cmath code codeop
collections compare complex configparser contains context contextlib contextlib_async copy copyreg coroutines csv
dataclasses decorators defaultdict descr descrtut dict dictcomps doctest dynamic dynamicclassattribute enum enumerate
except_star exception_group exception_variations exceptions extcall float fnmatch format fractions frame fstring
funcattrs functools generator_stop generators genexps global grammar graphlib hash heapq index inspect int ipaddress
isinstance iter iterlen itertools json keyword keywordonlyarg linecache list listcomps longexp math memoryview
metaclass module named_expressions numeric_tower opcache opcodes operator optparse ordered_dict patma pkg
positional_only_arg pprint property raise random range re reprlib richcmp sched scope setcomps shelve shlex slice sort
string string_literals struct subclassinit super symtable syntax sys_setprofile sys_settrace textwrap thread
threading_local traceback tuple type_annotations typechecks types typing unary unicode unpack unpack_ex urlparse
userdict userlist userstring utf8source uuid weakset with yield_from
""".split()

# More than a second each, and about what others are about too: `make test-all` runs them.
LONG = set(
    """
argparse ast asyncgen builtin collections context coroutines descr dict doctest enum functools hash heapq inspect
itertools json math memoryview ordered_dict random re string_literals thread threading_local tuple unicode userstring
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
