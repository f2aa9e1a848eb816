"""Whether code runs as a script; a module of its own, so that nn need not load jit for it."""


def is_scripting():
    """True in a script, False in Python."""
    return False
