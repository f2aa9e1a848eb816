// Walking strided views of one shape together: dimensions put in memory order and merged where they
// can be. Called by copies here and by the gather kernels of ops/.
#pragma once

#include <algorithm>
#include <array>

#include "runtime/parallel.h"
#include "tensor/tensor.h"

namespace prong {

template <size_t N>
struct StridedLoop {
  Dims sizes;                   // outermost first, at least one; sizes of 1 are gone
  std::array<Dims, N> strides;  // in elements

  // Operand 0 decides the order: its smallest stride comes last.
  StridedLoop(DimsView shape, const std::array<const Dims*, N>& given) {
    SmallVector<int, 8> order;
    for (int i = 0; i < static_cast<int>(shape.size()); ++i)
      if (shape[static_cast<size_t>(i)] != 1) order.push_back(i);
    const Dims& first = *given[0];
    for (size_t i = 1; i < order.size(); ++i)  // insertion sort: nearly always sorted already
      for (size_t j = i;
           j > 0 && first[static_cast<size_t>(order[j])] > first[static_cast<size_t>(order[j - 1])];
           --j)
        std::swap(order[j], order[j - 1]);
    for (int dim : order) {
      const size_t d = static_cast<size_t>(dim);
      if (!sizes.empty() && merges(given, d, shape[d])) {
        sizes.back() *= shape[d];
        for (size_t k = 0; k < N; ++k) strides[k].back() = (*given[k])[d];
      } else {
        sizes.push_back(shape[d]);
        for (size_t k = 0; k < N; ++k) strides[k].push_back((*given[k])[d]);
      }
    }
    if (sizes.empty()) {
      sizes.push_back(1);
      for (size_t k = 0; k < N; ++k) strides[k].push_back(1);
    }
  }

  int64_t row_length() const { return sizes.back(); }
  int64_t rows() const {
    int64_t n = 1;
    for (size_t i = 0; i + 1 < sizes.size(); ++i) n *= sizes[i];
    return n;
  }

  // Calls f(offsets) with the element offsets of the first element of rows [begin, end).
  template <class F>
  void for_rows(int64_t begin, int64_t end, F&& f) const {
    const size_t outer = sizes.size() - 1;
    Dims index(outer);
    std::array<int64_t, N> offsets{};
    for (size_t i = outer, rest = static_cast<size_t>(begin); i-- > 0;) {
      index[i] = static_cast<int64_t>(rest) % sizes[i];
      rest = static_cast<size_t>(static_cast<int64_t>(rest) / sizes[i]);
      for (size_t k = 0; k < N; ++k) offsets[k] += index[i] * strides[k][i];
    }
    for (int64_t row = begin; row < end; ++row) {
      f(offsets);
      for (size_t i = outer; i-- > 0;) {
        for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][i];
        if (++index[i] < sizes[i]) break;
        for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][i] * sizes[i];
        index[i] = 0;
      }
    }
  }

  // Calls f(offsets, n) for pieces of rows that together cover all elements once, in parallel from
  // `grain` elements on.
  template <class F>
  void for_pieces(int64_t grain, F&& f) const {
    const int64_t n = row_length(), all = rows();
    const int64_t piece = std::min(n, grain), pieces = (n + piece - 1) / piece;
    parallel_for(0, all * pieces, std::max<int64_t>(1, grain / piece),
                 [&](int64_t begin, int64_t end) {
                   while (begin < end) {
                     if (begin % pieces == 0 && end - begin >= pieces) {  // whole rows
                       const int64_t last = end - end % pieces;
                       for_rows(begin / pieces, last / pieces,
                                [&](const std::array<int64_t, N>& o) { f(o, n); });
                       begin = last;
                       continue;
                     }
                     const int64_t row = begin / pieces, stop = std::min(end, (row + 1) * pieces);
                     const int64_t from = (begin - row * pieces) * piece,
                                   to = std::min(n, (stop - row * pieces) * piece);
                     for_rows(row, row + 1, [&](std::array<int64_t, N> o) {
                       for (size_t k = 0; k < N; ++k) o[k] += from * strides[k].back();
                       f(o, to - from);
                     });
                     begin = stop;
                   }
                 });
  }

 private:
  bool merges(const std::array<const Dims*, N>& given, size_t d, int64_t size) const {
    for (size_t k = 0; k < N; ++k)
      if (strides[k].back() != (*given[k])[d] * size) return false;
    return true;
  }
};

}  // namespace prong
