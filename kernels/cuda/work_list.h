// What a device was asked to do and has not been told to begin: kernels, products, convolutions,
// copies, as plain bytes.
//
//   WorkList list;
//   list.Add({WorkKind::kKernel, name, entry, arguments, bytes});
//   for (int i = 0; i < list.size(); ++i) device->Do(list[i]);
//
// Two lists that are equal byte by byte do the same to the same memory. Lists of one *skeleton* are
// the same pieces of work with other arguments, in which only kernels, copies and fills may differ:
// a graph made of one (graph_cache.h) can be changed to do the other.
#ifndef PIPELAB_KERNELS_CUDA_WORK_LIST_H_
#define PIPELAB_KERNELS_CUDA_WORK_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/queue.h"

namespace pipelab {
namespace gpu {

enum class WorkKind : uint8_t {
  kKernel,       // as the queue takes them
  kCopy,         // CopyWork
  kFill,         // FillWork
  kProduct,      // MatmulCall
  kConvolution,  // ConvolutionCall
};

struct CopyWork {
  const void* from;
  void* to;
  int64_t bytes;
};

struct FillWork {
  void* to;
  int64_t bytes;
  int64_t value;  // of each byte
};

struct Work {
  WorkKind kind = WorkKind::kKernel;
  const char* name = "";
  KernelWork::Entry entry = nullptr;  // of a kernel
  void* arguments = nullptr;          // aligned to 16 bytes
  int64_t bytes = 0;

  // A graph's node for it can get other arguments.
  bool can_change() const { return kind != WorkKind::kProduct && kind != WorkKind::kConvolution; }
};

class WorkList {
 public:
  // Copies the arguments.
  void Add(const Work& work);
  void Clear();

  int size() const { return static_cast<int>(pieces_.size()); }
  bool empty() const { return pieces_.empty(); }
  Work operator[](int i) const;

  const std::string& skeleton() const { return skeleton_; }
  // For a list with the same skeleton: whether piece i is the same as here.
  bool SamePiece(const WorkList& other, int i) const;
  void TakePiece(const WorkList& other, int i);

 private:
  struct alignas(16) Line {
    unsigned char bytes[16];
  };
  struct Piece {
    WorkKind kind;
    const char* name;
    KernelWork::Entry entry;
    int64_t first_line, bytes;
  };

  std::vector<Piece> pieces_;
  // The arguments; kernels are given them as memory that they may change, and do not.
  mutable std::vector<Line> lines_;
  std::string skeleton_;
};

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_WORK_LIST_H_
