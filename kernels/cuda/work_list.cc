#include "kernels/cuda/work_list.h"

#include <cstring>

namespace pipelab {
namespace gpu {
namespace {

template <class T>
void Append(const T& value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

void WorkList::Add(const Work& work) {
  Piece piece = {work.kind, work.name, work.entry, static_cast<int64_t>(lines_.size()), work.bytes};
  lines_.resize(lines_.size() + (work.bytes + sizeof(Line) - 1) / sizeof(Line), Line{});
  if (work.bytes > 0) std::memcpy(&lines_[piece.first_line], work.arguments, work.bytes);
  Append(work.kind, &skeleton_);
  Append(work.entry, &skeleton_);
  Append(work.bytes, &skeleton_);
  if (!work.can_change()) {
    skeleton_.append(static_cast<const char*>(work.arguments), work.bytes);
  }
  pieces_.push_back(piece);
}

void WorkList::Clear() {
  pieces_.clear();
  lines_.clear();
  skeleton_.clear();
}

Work WorkList::operator[](int i) const {
  const Piece& piece = pieces_[i];
  return {piece.kind, piece.name, piece.entry, lines_.data() + piece.first_line, piece.bytes};
}

bool WorkList::SamePiece(const WorkList& other, int i) const {
  return std::memcmp((*this)[i].arguments, other[i].arguments, pieces_[i].bytes) == 0;
}

void WorkList::TakePiece(const WorkList& other, int i) {
  std::memcpy((*this)[i].arguments, other[i].arguments, pieces_[i].bytes);
}

}  // namespace gpu
}  // namespace pipelab
