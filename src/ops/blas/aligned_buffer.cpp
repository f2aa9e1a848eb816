// Allocation for AlignedBuffer: cache lines for small blocks, huge pages for large ones.
#include "ops/blas/aligned_buffer.h"

#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/error.h"

namespace prong::blas {

namespace {
constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  // A stream through megabytes of weights in 4 KB pages spends its time on page walks.
  size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kLine;
  size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_ = std::aligned_alloc(alignment, rounded);
  PRONG_CHECK(data_, kOutOfMemory, "matrix product: no memory for ", static_cast<int64_t>(bytes),
              " bytes of packed operands");
#ifdef __linux__
  if (alignment == kHugePage) madvise(data_, rounded, MADV_HUGEPAGE);
#endif
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace prong::blas
