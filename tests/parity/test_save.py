"""save and load against PyTorch's: files go both ways; hostile and damaged ones are refused and run nothing."""

import argparse
import collections
import io
import os
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import prong  # noqa: E402

DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()


def net(m):
    return m.nn.Sequential(
        m.nn.Linear(4, 3), m.nn.BatchNorm1d(3), m.nn.LSTM(3, 2, bidirectional=True)
    )


def shared(m):
    whole = m.arange(12).to(m.float32)
    return [whole, whole[3:7], whole.reshape(3, 4).t(), whole[::5]]


def mixed(m):
    return {
        "epoch": 3, "loss": 0.25, "name": "späß", "flags": [True, None, False], "big": 2**70,
        "neg": -5, "tuple": (1, (2, 3), ()), "set": {1, 2}, "bytes": b"abc\x00", 7: "seven",
        "ordered": collections.OrderedDict([("b", 1), ("a", 2)]), "complex": 1 + 2j,
        "size": m.Size([2, 3]), "dtype": m.bfloat16, "device": m.device("cpu"),
    }  # fmt: skip


OBJECTS = {
    "a tensor": lambda m: m.arange(6).reshape(2, 3),
    "a number": lambda m: m.tensor(2.5),
    "no elements": lambda m: m.empty(0, 3),
    "a parameter": lambda m: m.nn.Parameter(m.ones(3), requires_grad=False),
    "one that requires grad": lambda m: m.ones(2).requires_grad_(),
    "shared memory": shared,
    "expanded": lambda m: m.tensor([1.0, 2.0]).reshape(2, 1).expand(2, 1000),
    "a state dict": lambda m: net(m).state_dict(),
    "all dtypes": lambda m: {d: m.tensor([0, 1, 5]).to(getattr(m, d)) for d in DTYPES},
    "mixed": mixed,
}


def plain(value):
    if isinstance(value, (prong.Tensor, torch.Tensor)):
        kind = "Parameter" if type(value).__name__ == "Parameter" else "Tensor"
        values = value.detach().to(dtype=type(value.detach()) and value.dtype).double().tolist()
        return (
            kind,
            str(value.dtype),
            tuple(value.shape),
            value.stride(),
            value.requires_grad,
            values,
        )
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    return (type(value).__name__, str(value)) if not isinstance(value, (set, frozenset)) else value


def made(m, name):
    m.manual_seed(1)
    return OBJECTS[name](m)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("mmap", [False, True])
def test_files_go_both_ways(name, mmap, tmp_path):
    path = tmp_path / "file.pt"
    want = plain(made(torch, name))
    torch.save(made(torch, name), path)
    assert plain(prong.load(path, mmap=mmap)) == want
    prong.save(made(prong, name), path)
    assert plain(torch.load(path, mmap=mmap)) == want
    assert plain(prong.load(path, mmap=mmap)) == want


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(protocol):
    file = io.BytesIO()
    torch.save(made(torch, "mixed"), file, pickle_protocol=protocol)
    file.seek(0)
    assert plain(prong.load(file)) == plain(mixed(torch))


def test_files_before_pytorch_1_6(tmp_path):
    for name in OBJECTS:
        path = tmp_path / "file.pt"
        torch.save(made(torch, name), path, _use_new_zipfile_serialization=False)
        assert plain(prong.load(path)) == plain(made(torch, name)), name


def test_sharing_survives():
    file = io.BytesIO()
    prong.save(shared(prong), file)
    assert len(file.getvalue()) < 3000
    file.seek(0)
    whole, part, turned, _ = prong.load(file)
    whole[4] = 50.0
    assert part[1].item() == 50.0 and turned[0, 1].item() == 50.0


def test_modules_and_their_metadata(tmp_path):
    path = tmp_path / "net.pt"
    prong.manual_seed(5)
    source = net(prong)
    prong.save(source.state_dict(), path)
    theirs = net(torch)
    theirs.load_state_dict(torch.load(path))
    assert torch.load(path)._metadata["1"] == {"version": 2}
    fresh = net(prong)
    fresh.load_state_dict(prong.load(path))
    for (key, a), b in zip(fresh.state_dict().items(), theirs.state_dict().values()):
        assert a.tolist() == b.tolist() == source.state_dict()[key].tolist()


def test_optimizer_states(tmp_path):
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight], lr=0.1)
    weight.sum().backward()
    optimizer.step()
    path = tmp_path / "optimizer.pt"
    torch.save(optimizer.state_dict(), path)
    ours = prong.load(path)
    prong.save(ours, path)
    again = torch.load(path)
    optimizer.load_state_dict(again)
    assert plain(again) == plain(ours) == plain(optimizer.state_dict())


def test_mapped_pages_are_ones_own(tmp_path):
    path = tmp_path / "file.pt"
    prong.save(prong.zeros(1000), path)
    a, b = prong.load(path, mmap=True), prong.load(path, mmap=True)
    a.fill_(3)
    assert b.sum().item() == 0 and prong.load(path).sum().item() == 0


def test_whole_modules_of_nn(tmp_path):
    path = tmp_path / "net.pt"
    source = prong.nn.Sequential(prong.nn.Linear(2, 2), prong.nn.ReLU())
    prong.save(source, path)
    with pytest.raises(pickle.UnpicklingError, match="add_safe_globals"):
        prong.load(path)
    back = prong.load(path, weights_only=False)
    x = prong.ones(1, 2)
    assert back(x).tolist() == source(x).tolist()


def test_plain_numpy_data(tmp_path):
    path = tmp_path / "arrays.pt"
    data = {
        "a": np.arange(6, dtype="int16").reshape(2, 3),
        "f": np.asfortranarray(np.ones((2, 2))),
        "s": np.float64(2.5),
        "options": argparse.Namespace(lr=0.1),
    }
    torch.save(data, path)
    with pytest.raises(pickle.UnpicklingError):
        prong.load(path)
    back = prong.load(path, weights_only=False)
    assert back["a"].tolist() == data["a"].tolist() and back["a"].dtype == np.int16
    assert back["f"].tolist() == [[1, 1], [1, 1]]
    assert back["s"] == 2.5 and back["options"].lr == 0.1


class Mine:
    def __init__(self, x):
        self.x = x


def test_classes_that_the_program_lets_through(tmp_path):
    path = tmp_path / "mine.pt"
    prong.save({"mine": Mine(3)}, path)
    for weights_only in (True, False):
        with pytest.raises(pickle.UnpicklingError, match=r"Mine was not an allowed global"):
            prong.load(path, weights_only=weights_only)
    with prong.serialization.safe_globals([Mine]):
        assert prong.load(path)["mine"].x == 3
    assert prong.serialization.get_safe_globals() == []
    with prong.serialization.safe_globals([(Mine, f"{Mine.__module__}.Mine")]):
        assert prong.load(path)["mine"].x == 3


MAPS = {
    "cpu": "cpu",
    "device": lambda m: m.device("cpu"),
    "function": lambda m: lambda storage, location: storage,
    "dict": {"cuda:0": "cpu"},
}


def on_cuda(path):
    """A file as a machine with a GPU writes it."""
    torch.save({"w": torch.arange(3.0)}, path)
    with zipfile.ZipFile(path) as archive:
        records = {i.filename: archive.read(i) for i in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            if name.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            archive.writestr(name, data)
    return path


def test_map_location(tmp_path):
    path = on_cuda(tmp_path / "cuda.pt")
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
        prong.load(path)
    for how in MAPS.values():
        how = how(prong) if callable(how) else how
        assert prong.load(path, map_location=how)["w"].tolist() == [0, 1, 2]


# ── hostile and damaged files ──


def file_of(program, storages=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x/data.pkl", program)
        archive.writestr("x/version", b"3\n")
        for i, data in enumerate(storages):
            archive.writestr(f"x/data/{i}", data)
    file.seek(0)
    return file


class Evil:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def marker(tmp_path):
    return str(tmp_path / "it ran")


HOSTILE = {
    "os.system": lambda mark: pickle.dumps(Evil(os.system, f"touch '{mark}'"), 2),
    "eval": lambda mark: pickle.dumps(Evil(eval, f"open({mark!r}, 'w')"), 2),
    "open": lambda mark: pickle.dumps(Evil(open, mark, "w"), 2),
    "getattr": lambda mark: pickle.dumps(Evil(getattr, "abc", "upper"), 2),
    "in a list": lambda mark: pickle.dumps([1, Evil(os.mkdir, mark)], 4),
    "INST": lambda mark: b"(S'touch \"%s\"'\nios\nsystem\n." % mark.encode(),
    "OBJ": lambda mark: b"(cos\nmkdir\nX" + struct.pack("<I", len(mark)) + mark.encode() + b"o.",
    "an extension": lambda mark: b"\x80\x02\x82\x01.",
    "a module's inside": lambda mark: b"ctorch.serialization\nos\n.",
    "a name with dots": lambda mark: b"\x80\x04\x8c\x05torch\x8c\x09os.system\x93.",
    "calling a tensor": lambda mark: b"\x80\x02K\x01)R.",
    "BUILD on a class": lambda mark: (
        b"\x80\x02ccollections\nOrderedDict\n}X\x01\x00\x00\x00aK\x01sb."
    ),
    "NEWOBJ of a function": lambda mark: b"\x80\x02c_codecs\nencode\n)\x81.",
    "a factory": lambda mark: b"\x80\x02ccollections\ndefaultdict\nc_codecs\nencode\n\x85R.",
    "bytes without end": lambda mark: (
        b"\x80\x02cbuiltins\nbytearray\n\x8a\x06\x00\x00\x00\x00\x00\x01\x85R."
    ),
    "a codec": lambda mark: (
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00zip\x86R."
    ),
}


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused(name, weights_only, tmp_path):
    mark = marker(tmp_path)
    with pytest.raises(pickle.UnpicklingError) as raised:
        prong.load(file_of(HOSTILE[name](mark)), weights_only=weights_only)
    assert str(raised.value)
    assert not os.path.exists(mark)


def tensor_program(count=4, offset=0, size=(2, 2), stride=(2, 1), key="0", kind="FloatStorage"):
    file = io.BytesIO()

    class Storage:
        pass

    class Writer(pickle._Pickler):
        def persistent_id(self, obj):
            if isinstance(obj, Storage):
                return ("storage", getattr(torch, kind), key, "cpu", count)

        def reducer_override(self, obj):
            if isinstance(obj, Evil):
                return torch._utils._rebuild_tensor_v2, obj.call[1]
            return NotImplemented

    Writer(file, 2).dump(
        Evil(None, Storage(), offset, size, stride, False, collections.OrderedDict())
    )
    return file.getvalue()


DATA = struct.pack("<4f", 1, 2, 3, 4)
WRONG_TENSORS = {
    "beyond its storage": {"size": (3, 2)},
    "a huge stride": {"stride": (2**62, 1)},
    "a huge size": {"size": (2**40, 2**40)},
    "a negative stride": {"stride": (-1, 1)},
    "a negative size": {"size": (-2, -2)},
    "a negative offset": {"offset": -1},
    "a large offset": {"offset": 1},
    "text for a size": {"size": "ab"},
    "floats for a size": {"size": (2.0, 2)},
    "strides missing": {"stride": (1,)},
    "a storage longer than its record": {"count": 5},
    "a storage of no length": {"count": -1},
    "no text for a key": {"key": 0},
}


@pytest.mark.parametrize("name", WRONG_TENSORS)
def test_tensors_that_cannot_be(name):
    assert prong.load(file_of(tensor_program(), [DATA])).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(pickle.UnpicklingError):
        prong.load(file_of(tensor_program(**WRONG_TENSORS[name]), [DATA]))


def test_damaged_files():
    file = io.BytesIO()
    prong.save({"w": prong.arange(1000.0)}, file)
    whole = file.getvalue()
    for cut in (1, 3, 100, len(whole) // 2, len(whole) - 1):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            prong.load(io.BytesIO(whole[:cut]))
    with pytest.raises(EOFError):
        prong.load(io.BytesIO(b""))
    for place in (whole.index(b"data.pkl") + 60, whole.index(struct.pack("<f", 500.0))):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            prong.load(io.BytesIO(bytes(broken)))
    with pytest.raises(RuntimeError, match="file not found: 'data/0'"):
        prong.load(file_of(tensor_program()))
    with pytest.raises(pickle.UnpicklingError):
        prong.load(io.BytesIO(b"hello"))


def test_every_byte_changed_is_an_error_or_a_value():
    program = pickle.dumps(mixed(prong) | {"size": 1, "dtype": 1, "device": 1}, 2)
    for place in range(len(program)):
        for value in (0, 0x29, 0x52, 0x81, 0x93, 0xFF):
            broken = bytearray(program)
            broken[place] = value
            try:
                prong.load(file_of(bytes(broken)))
            except (pickle.UnpicklingError, RuntimeError, NotImplementedError):
                pass


def test_compressed_records_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02N.")
    file.seek(0)
    with pytest.raises(RuntimeError, match="compressed"):
        prong.load(file)


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(RuntimeError, match="Parent directory"):
        prong.save(1, tmp_path / "none" / "x.pt")
    with pytest.raises(Exception, match="lambda|pickle"):
        prong.save(lambda: 1, io.BytesIO())
    with pytest.raises(AttributeError):
        prong.save(1, 3)


SAFETENSORS = """
import sys, torch, safetensors
from safetensors import torch as files
path = sys.argv[1]
state = {"a": torch.arange(6).reshape(2, 3), "b": torch.ones(3).to(torch.bfloat16), "c": torch.zeros(())}
files.save_file(state, path, metadata={"k": "v"})
back = files.load_file(path)
assert all(torch.equal(back[k], v) and back[k].dtype is v.dtype for k, v in state.items())
with safetensors.safe_open(path, framework="pt") as file:
    assert file.metadata() == {"k": "v"} and file.get_slice("a")[1:].tolist() == [[3, 4, 5]]
source, target = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
files.save_model(source, path)
files.load_model(target, path)
assert torch.equal(source.weight, target.weight)
data = open(path, "rb").read()
for broken in (data[:-1], b"\\xff" * 8 + data[8:], data[:20], b""):
    try:
        files.load(broken)
    except safetensors.SafetensorError as error:
        assert str(error)
    else:
        raise AssertionError("a damaged file was read")
print(torch.__name__)
"""


def test_safetensors_with_its_own_torch_functions(tmp_path):
    pytest.importorskip("safetensors")
    path = tmp_path / "w.safetensors"
    run = subprocess.run(
        [sys.executable, "-m", "prong", "-c", SAFETENSORS, str(path)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout == "prong\n"


def test_storages_of_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(10)))
    private = prong.UntypedStorage.from_file(str(path), False, 8)
    assert private.nbytes() == 8 and private[3] == 3 and private[2:4].tolist() == [2, 3]
    private[0] = 7
    shared = prong.UntypedStorage.from_file(str(path), True, 12)
    shared[1] = 9
    assert path.read_bytes()[:3] == bytes([0, 9, 2]) and len(path.read_bytes()) == 12
    assert prong.asarray(private[4:8], dtype=prong.int32).tolist() == [0x07060504]
