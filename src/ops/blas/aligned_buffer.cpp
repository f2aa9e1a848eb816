// Memory of AlignedBuffer: from the allocator of tensors, whose freed blocks need no new pages.
#include "ops/blas/aligned_buffer.h"

#include "tensor/storage.h"

namespace prong::blas {

AlignedBuffer::AlignedBuffer(size_t bytes) : data_(allocate(bytes)), bytes_(bytes) {}

AlignedBuffer::~AlignedBuffer() { deallocate(data_, bytes_); }

}  // namespace prong::blas
