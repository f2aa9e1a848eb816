// Lines of a convolution's planes from its source. See convolution_planes.h.
#include "ops/kernels/convolution_planes.h"

#include <cstring>

#include "ops/kernels/simd.h"

namespace prong {
namespace {

struct EverySecond {
  static PRONG_INLINE void run(const float* from, int64_t count, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = from[2 * i];
  }
};

}  // namespace

void copy_plane_lines(const ConvSource& source, const float* channel, const Triple& shift,
                      int64_t q0, int64_t q1, int64_t lines, int64_t width, float* out) {
  const int64_t step = source.step[2], d = q0 * source.step[0] + shift[0];
  // Positions whose source lies inside: low .. high - 1.
  const int64_t low =
      std::clamp<int64_t>(shift[2] >= 0 ? 0 : (step - 1 - shift[2]) / step, 0, width);
  const int64_t inside =
      shift[2] >= source.extent[2] ? 0 : (source.extent[2] - 1 - shift[2]) / step + 1;
  const int64_t high = std::clamp(inside, low, width);
  for (int64_t line = 0; line < lines; ++line, out += width) {
    const int64_t h = (q1 + line) * source.step[1] + shift[1];
    if (d < 0 || d >= source.extent[0] || h < 0 || h >= source.extent[1] || high == low) {
      std::fill(out, out + width, 0.0f);
      continue;
    }
    const float* from = channel + (d * source.extent[1] + h) * source.extent[2] + shift[2];
    std::fill(out, out + low, 0.0f);
    if (step == 1)
      std::memcpy(out + low, from + low, static_cast<size_t>(high - low) * sizeof(float));
    else if (step == 2)
      run_simd<EverySecond>(from + low * 2, high - low, out + low);
    else
      for (int64_t i = low; i < high; ++i) out[i] = from[i * step];
    std::fill(out + high, out + width, 0.0f);
  }
}

ConvSpan line_span(const ConvSource& source, const float* channel, const Triple& shift, int64_t q0,
                   int64_t q1, int64_t width) {
  const int64_t d = q0 * source.step[0] + shift[0], h = q1 * source.step[1] + shift[1];
  if (d < 0 || d >= source.extent[0] || h < 0 || h >= source.extent[1]) return {channel, 0, 0};
  const int64_t low = std::clamp<int64_t>(-shift[2], 0, width),
                high = std::clamp(source.extent[2] - shift[2], low, width);
  return {channel + (d * source.extent[1] + h) * source.extent[2] + shift[2], low, high};
}

const float* plane_lines_in_place(const ConvSource& source, const float* channel,
                                  const Triple& shift, int64_t q0, int64_t q1, int64_t lines,
                                  int64_t width) {
  const int64_t d = q0 * source.step[0] + shift[0], h = q1 + shift[1];
  const bool fits = source.step[1] == 1 && source.step[2] == 1 && shift[2] == 0 &&
                    width == source.extent[2] && d >= 0 && d < source.extent[0] && h >= 0 &&
                    h + lines <= source.extent[1];
  return fits ? channel + (d * source.extent[1] + h) * source.extent[2] : nullptr;
}

}  // namespace prong
