"""Doors to other packages, all of them optional: PyTorch, ONNX Runtime and TVM as back ends of compile().

Nothing else in prong imports these packages, and this folder imports one only when it is asked for by name.
"""
