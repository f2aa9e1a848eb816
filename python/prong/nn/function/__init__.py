"""Functions of nn.functional that are Python over ops; nn/functional.py collects them."""
