"""Windows, and the short-time Fourier transform with its inverse."""

import math

import prong
from prong import Tensor

from .registering import composition


def _window(name: str, body):
    def window(
        window_length: int,
        *given,
        dtype=None,
        layout=None,
        device=None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **options,
    ) -> Tensor:
        periodic = options.pop("periodic", True)
        if given and isinstance(given[0], bool):
            periodic, given = given[0], given[1:]
        if window_length < 0:
            raise RuntimeError(
                f"{name} requires non-negative window_length, got window_length={window_length}"
            )
        dtype = dtype or prong.get_default_dtype()
        if not dtype.is_floating_point:
            raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
        if window_length == 0:
            return prong.empty(0, dtype=dtype)
        if window_length == 1:
            return prong.ones(1, dtype=dtype)
        size = window_length + 1 if periodic else window_length
        wide = prong.float64 if dtype is prong.float64 else prong.float32
        steps = prong.arange(size, dtype=wide)
        result = body(steps, size, *given, **options)[:window_length].to(dtype)
        return result.requires_grad_() if requires_grad else result

    window.__name__ = window.__qualname__ = name
    window.__doc__ = "Weights of a window; periodic ones are for transforms."
    return composition(takes_out=False)(window)


def _hamming(steps, size, alpha: float = 0.54, beta: float = 0.46):
    return alpha - beta * (steps * (2 * math.pi / (size - 1))).cos()


def _blackman(steps, size):
    angle = steps * (math.pi / (size - 1))
    return 0.42 - 0.5 * (angle * 2).cos() + 0.08 * (angle * 4).cos()


def _bartlett(steps, size):
    rising = steps * (2 / (size - 1))
    return prong.where(rising <= 1, rising, 2 - rising)


def _kaiser(steps, size, beta: float = 12.0):
    place = steps * (2 / (size - 1)) - 1
    root = (1 - place * place).clamp(min=0).sqrt()
    return prong.i0(root * beta) / prong.i0(prong.tensor(float(beta), dtype=steps.dtype))


hann_window = _window("hann_window", lambda steps, size: _hamming(steps, size, 0.5, 0.5))
hamming_window = _window("hamming_window", _hamming)
blackman_window = _window("blackman_window", _blackman)
bartlett_window = _window("bartlett_window", _bartlett)
kaiser_window = _window("kaiser_window", _kaiser)


@composition(method=True, takes_out=False)
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of overlapping frames: [batch, frequencies, frames]."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    what = f"stft({list(input.shape)}, n_fft={n_fft}, hop_length={hop_length})"
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"{what}: expected a tensor of floating point or complex values")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"{what}: expected a 1D or 2D tensor")
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if hop_length <= 0:
        raise RuntimeError(f"{what}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(
            f"{what}: expected 0 < win_length <= n_fft, but got win_length={win_length}"
        )
    window = _fitted_window(window, win_length, n_fft, input, what)
    onesided = (not is_complex) if onesided is None else onesided
    is_single = input.dim() == 1
    x = input.unsqueeze(0) if is_single else input
    if center:
        # pad works on the last dim of [N, C, L].
        x = prong.nn.functional.pad(
            x.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode
        ).squeeze(1)
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"{what}: expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    frames = x.unfold(-1, n_fft, hop_length)
    if window is not None:
        frames = frames * window
    norm = "ortho" if normalized else None
    if is_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        result = prong.fft.fft(frames, dim=-1, norm=norm)
    elif onesided:
        result = prong.fft.rfft(frames, dim=-1, norm=norm)
    else:
        result = prong.fft.fft(frames, dim=-1, norm=norm)
    result = result.transpose(1, 2)
    result = result.squeeze(0) if is_single else result
    return result if return_complex else prong.view_as_real(result.contiguous())


def _fitted_window(window, win_length: int, n_fft: int, like: Tensor, what: str) -> Tensor | None:
    """The window in the middle of n_fft numbers."""
    if window is not None and (window.dim() != 1 or window.shape[0] != win_length):
        raise RuntimeError(
            f"{what}: expected a 1D window tensor of size equal to win_length={win_length}, but "
            f"got window with size {list(window.shape)}"
        )
    if win_length == n_fft:
        return window
    if window is None:
        real = like.real.dtype if like.is_complex() else like.dtype
        window = prong.ones(win_length, dtype=real)
    left = (n_fft - win_length) // 2
    return prong.nn.functional.pad(window, (left, n_fft - win_length - left))


@composition(method=True, takes_out=False)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose stft this is, by overlapping and adding."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    what = f"istft({list(input.shape)}, n_fft={n_fft}, hop_length={hop_length})"
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if input.dim() not in (2, 3):
        raise RuntimeError(f"{what}: expected a tensor with 2 or 3 dimensions")
    if not 0 < hop_length <= win_length:
        raise RuntimeError(f"{what}: expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{what}: expected 0 < win_length <= n_fft")
    is_single = input.dim() == 2
    x = (input.unsqueeze(0) if is_single else input).transpose(1, 2)  # [batch, frames, frequencies]
    onesided = (input.shape[-2] != n_fft) if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if x.shape[2] != expected:
        raise RuntimeError(
            f"{what}: expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match n_fft / 2 + 1 when onesided=True, but got {x.shape[2]}"
        )
    window = _fitted_window(window, win_length, n_fft, input, what)
    if window is None:
        window = prong.ones(n_fft, dtype=input.real.dtype)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = prong.fft.ifft(x, dim=-1, norm=norm)
    else:  # the other half is its mirror image
        frames = prong.fft.irfft(x[..., : n_fft // 2 + 1], n=n_fft, dim=-1, norm=norm)
    count = frames.shape[1]
    total = n_fft + hop_length * (count - 1)
    places = prong.arange(n_fft) + prong.arange(count)[:, None] * hop_length
    signal = _overlapped(frames * window, places, total)
    weight = _overlapped((window * window).expand(1, count, n_fft), places, total)
    start = n_fft // 2 if center else 0
    if length is not None:
        end = start + length
    else:
        end = total - n_fft // 2 if center else total
    signal, weight = signal[:, start:end], weight[:, start:end]
    if not weight.is_complex() and weight.numel() and bool((weight.abs() < 1e-11).any()):
        raise RuntimeError(f"{what}: window overlap add min: 1")
    signal = signal / weight
    if length is not None and signal.shape[1] < length:
        signal = prong.nn.functional.pad(signal, (0, length - signal.shape[1]))
    return signal.squeeze(0) if is_single else signal


def _overlapped(frames: Tensor, places: Tensor, total: int) -> Tensor:
    zeros = frames.new_zeros(frames.shape[0], total)
    return zeros.index_add(1, places.flatten(), frames.reshape(frames.shape[0], -1))
