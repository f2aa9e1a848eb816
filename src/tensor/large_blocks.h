// Large blocks of memory, cut from segments and joined again, so that what one size has freed
// serves another. Called by the caching allocator (storage.cpp), which holds its lock meanwhile.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace prong {

class LargeBlocks {
 public:
  // A free piece of at least so many bytes, the smallest that is there; null if there is none.
  void* take(size_t bytes);
  // A segment that was just allocated: it is in use as a whole.
  void add(void* segment, size_t bytes);
  void give(void* block);
  // Frees the segments of which no piece is in use, the largest first, until no more than so many
  // bytes are free.
  void trim(size_t keep);
  size_t free_bytes() const { return free_bytes_; }

 private:
  using Free = std::set<std::pair<size_t, char*>>;
  struct Piece {
    size_t bytes;
    bool starts_segment;
    // Its place in free_, while it is in use: so giving it back needs no memory.
    Free::node_type place;
    bool is_free() const { return place.empty(); }
  };
  using Pieces = std::map<char*, Piece>;

  bool continues(Pieces::iterator piece) const;  // the piece before it is of the same segment
  Pieces::iterator add_piece(char* begin, size_t bytes, bool starts_segment);
  void set_used(Pieces::iterator piece);
  void set_free(Pieces::iterator piece);

  Pieces pieces_;  // by address, of every segment
  Free free_;      // by size
  size_t free_bytes_ = 0;
};

}  // namespace prong
