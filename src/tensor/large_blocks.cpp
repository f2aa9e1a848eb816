// Best fit with cutting and joining. See large_blocks.h.
#include "tensor/large_blocks.h"

#include <cstdlib>
#include <iterator>

namespace prong {

namespace {

// What is left of a piece is a piece of its own from here on.
constexpr size_t kLeastPiece = size_t{1} << 20;
// A small block that stays would keep a large piece from being whole again.
constexpr size_t kMostCut = 8;

}  // namespace

bool LargeBlocks::continues(Pieces::iterator piece) const {
  return piece != pieces_.end() && !piece->second.starts_segment;
}

LargeBlocks::Pieces::iterator LargeBlocks::add_piece(char* begin, size_t bytes,
                                                     bool starts_segment) {
  Free one{{bytes, begin}};
  return pieces_.emplace(begin, Piece{bytes, starts_segment, one.extract(one.begin())}).first;
}

void LargeBlocks::set_used(Pieces::iterator piece) {
  free_bytes_ -= piece->second.bytes;
  piece->second.place = free_.extract({piece->second.bytes, piece->first});
}

void LargeBlocks::set_free(Pieces::iterator piece) {
  free_bytes_ += piece->second.bytes;
  piece->second.place.value() = {piece->second.bytes, piece->first};
  free_.insert(std::move(piece->second.place));
}

void* LargeBlocks::take(size_t bytes) {
  const auto fit = free_.lower_bound({bytes, nullptr});
  if (fit == free_.end() || fit->first / kMostCut > bytes) return nullptr;
  const auto piece = pieces_.find(fit->second);
  set_used(piece);
  const size_t rest = piece->second.bytes - bytes;
  if (rest >= kLeastPiece) {
    const auto cut = add_piece(piece->first + bytes, rest, false);
    piece->second.bytes = bytes;
    set_free(cut);
  }
  return piece->first;
}

void LargeBlocks::add(void* segment, size_t bytes) {
  add_piece(static_cast<char*>(segment), bytes, true);
}

void LargeBlocks::give(void* block) {
  auto piece = pieces_.find(static_cast<char*>(block));
  const auto after = std::next(piece);
  if (continues(after) && after->second.is_free()) {
    set_used(after);
    piece->second.bytes += after->second.bytes;
    pieces_.erase(after);
  }
  if (continues(piece) && std::prev(piece)->second.is_free()) {
    const auto before = std::prev(piece);
    set_used(before);
    before->second.bytes += piece->second.bytes;
    pieces_.erase(piece);
    piece = before;
  }
  set_free(piece);
}

void LargeBlocks::trim(size_t keep) {
  for (auto it = free_.end(); it != free_.begin() && free_bytes_ > keep;) {
    --it;
    const auto piece = pieces_.find(it->second);
    const bool is_whole = piece->second.starts_segment && !continues(std::next(piece));
    if (!is_whole) continue;
    std::free(piece->first);
    free_bytes_ -= piece->second.bytes;
    pieces_.erase(piece);
    it = free_.erase(it);
  }
}

}  // namespace prong
