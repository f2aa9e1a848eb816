"""AdamW under PyTorch's module path; adam.py has it."""

from .adam import AdamW

__all__ = ["AdamW"]
