// Products with 4-bit weights by tensor cores, factors in bfloat16: Int4Math::kBFloat16.
//
// A thread reads 16 bytes of codes, 8 rows of 4 columns, makes bfloat16 numbers of them in registers
// and multiplies those where they are (lane_product.h). Its place in k is not that of the matrix:
// tile h of the two that a step of 32 rows has takes, for thread j of four, rows 8 j + 4 h to
// 8 j + 4 h + 3, of activations too; a sum has no order among its rows. Its columns are 4 g + t in
// tile t. Scales, which are not of bfloat16 steps, apply to sums, in float32.
//
// A block has up to 64 rows of activations, which it keeps in shared memory piece by piece, and 1, 2,
// 4 or 8 panels; warps that share a panel take its blocks of 128 rows in turn. Where that makes few
// blocks, several have a slice of k each, and their sums are added in the order of slices.
#include <algorithm>

#include "kernels/cuda/functions.h"
#include "kernels/cuda/lane_product.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/quantized_parts.h"
#include "kernels/cuda/tile_product.h"

namespace pipelab {
namespace gpu {
namespace {

constexpr int kStep = 32;  // rows of a step: four units
constexpr int kSteps = 4;  // of a block of rows
constexpr int64_t kBlockRows = kStep * kSteps;
constexpr int kColumnTiles = kInt4Columns / 8;
constexpr int64_t kMostRows = 64;       // of activations, in a block
constexpr int64_t kStaged = 32 * 1024;  // numbers of activations in shared memory
constexpr int64_t kPad = 32;            // behind a row of them, off the banks of the row before
constexpr int64_t kEnoughBlocks =
    320;  // for the GPUs at hand, which have up to 132 multiprocessors

// Which block has what.
struct Split {
  int64_t m, rows, row_blocks;      // rows of activations; of a block; blocks of them
  int64_t panels, column_blocks;    // of a block
  int64_t k_blocks, slice, slices;  // blocks of 128 rows; of a slice
  int64_t staged,
      pitch;  // rows of k in shared memory at once, and from a row of x there to the next
  int64_t blocks() const { return row_blocks * column_blocks * slices; }
};

Split SplitOf(const Int4Shape& s, int64_t m) {
  Split split{};
  split.m = m;
  split.row_blocks = (m + kMostRows - 1) / kMostRows;
  split.rows = (m + split.row_blocks - 1) / split.row_blocks;
  split.panels = 1;
  while (split.panels < kWarps && split.panels * 4 < split.rows) split.panels *= 2;
  split.column_blocks = (s.panels() + split.panels - 1) / split.panels;
  split.k_blocks = (s.k + kBlockRows - 1) / kBlockRows;
  const int64_t slices =
      std::max<int64_t>(1, kEnoughBlocks / (split.column_blocks * split.row_blocks));
  // Warps that share a panel have equally many blocks of rows between them, but in the last slice.
  const int64_t turn = kWarps / split.panels;
  split.slice = ((split.k_blocks + slices - 1) / slices + turn - 1) / turn * turn;
  split.slices = (split.k_blocks + split.slice - 1) / split.slice;
  const int64_t most = kStaged / split.rows / (kBlockRows * turn) * turn;
  split.staged = std::min(split.slice, std::max(most, turn)) * kBlockRows;
  split.pitch = split.staged + kPad;
  return split;
}

struct alignas(16) Words {
  uint32_t words[4];
};

union FloatBits {
  float value;
  uint32_t bits;
};
// The number of bfloat16 in the upper half of a word, and two that are such numbers in one.
PIPELAB_DEVICE inline float UpperOf(uint32_t word) {
  FloatBits wide;
  wide.bits = word & 0xffff0000u;
  return wide.value;
}
PIPELAB_DEVICE inline uint32_t PairOf(float low, float high) {
  FloatBits a, b;
  a.value = low;
  b.value = high;
  return a.bits >> 16 | (b.bits & 0xffff0000u);
}

// Of memory that is read once, and of shared memory; at multiples of 16 bytes.
PIPELAB_DEVICE inline Words WordsAt(const void* from) {
  Words w;
#ifdef __CUDA_ARCH__
  const uint4 read = *static_cast<const uint4*>(from);
  w.words[0] = read.x, w.words[1] = read.y, w.words[2] = read.z, w.words[3] = read.w;
#else
  std::memcpy(&w, from, sizeof(w));
#endif
  return w;
}

// Two numbers of bfloat16 by their codes, at bits 0 and 16 of a word.
struct SignedCodes {
  static constexpr int64_t kFloats = 0;
  PIPELAB_DEVICE SignedCodes(const Block&, const Int4Call&, float*) {}
  // 128 + code by setting its bits, less 136.
  PIPELAB_DEVICE uint32_t Pair(uint32_t codes) const {
#ifdef __CUDA_ARCH__
    const uint32_t raised = codes | 0x43004300u, one = 0x3f803f80u, less = 0xc308c308u;
    uint32_t pair;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(raised), "r"(one), "r"(less));
    return pair;
#else
    return PairOf(static_cast<float>(codes & 15) - 8, static_cast<float>(codes >> 16) - 8);
#endif
  }
};
struct BookCodes {
  static constexpr int64_t kFloats = 256;  // a word for each two codes
  const uint32_t* pairs;
  PIPELAB_DEVICE BookCodes(const Block& block, const Int4Call& call, float* shared)
      : pairs(reinterpret_cast<uint32_t*>(shared)) {
    auto* const to = reinterpret_cast<uint32_t*>(shared);
    block.ForEach(kFloats,
                  [&](int64_t i) { to[i] = PairOf(call.book[i % 16], call.book[i / 16]); });
  }
  PIPELAB_DEVICE uint32_t Pair(uint32_t codes) const { return pairs[(codes | codes >> 12) & 255]; }
};

template <int kTiles>  // of 16 rows of activations
struct Sums {
  float of[kTiles][kColumnTiles][4];
};

// What a thread has read for its warp's next block of rows.
struct Ahead {
  Words codes[kSteps];
  Words scales;  // eight of bfloat16: of columns 8 j to 8 j + 7
};

// A panel, or a part of it, as a thread sees it.
struct Panel {
  const int32_t* codes;
  const BFloat16* scales;
  Int4Shape shape;
  int steps;  // that have one scale, of a block of rows

  PIPELAB_DEVICE Panel(const Int4Call& call, int64_t panel)
      : codes(call.codes + panel * call.shape.units() * kInt4Columns),
        scales(call.scales + panel * call.shape.groups() * kInt4Columns),
        shape(call.shape),
        steps(call.shape.group == 32   ? 1
              : call.shape.group == 64 ? 2
                                       : kSteps) {}

  PIPELAB_DEVICE Words Codes(int64_t block, int step, int lane) const {
    const int64_t unit = block * (kBlockRows / kInt4Rows) + step * (kStep / kInt4Rows) + lane % 4;
    if (unit >= shape.units()) return {};
    return WordsAt(codes + unit * kInt4Columns + lane / 4 * 4);
  }
  PIPELAB_DEVICE Words Scales(int64_t block, int step, int lane) const {
    int64_t row = block * kBlockRows + step * kStep;
    row = row < shape.k ? row : shape.k - 1;
    return WordsAt(scales + row / shape.group * kInt4Columns + lane % 4 * 8);
  }
  // Blocks from the end of k on have codes of 0.
  PIPELAB_DEVICE void Read(int64_t block, int lane, Ahead* ahead) const {
    PIPELAB_UNROLL
    for (int step = 0; step < kSteps; ++step) ahead->codes[step] = Codes(block, step, lane);
    ahead->scales = Scales(block, 0, lane);
  }
};

// sums += group scale; of a thread's sums, float i is in column 8 j + 4 (i % 2) + t.
template <int kTiles>
PIPELAB_DEVICE inline void AddScaled(const Words& scales, Sums<kTiles>* group, Sums<kTiles>* sums) {
  PIPELAB_UNROLL
  for (int c = 0; c < 8; ++c) {
    const float scale = UpperOf(c % 2 == 0 ? scales.words[c / 2] << 16 : scales.words[c / 2]);
    PIPELAB_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      PIPELAB_UNROLL
      for (int i = c / 4; i < 4; i += 2) {
        sums->of[tile][c % 4][i] += scale * group->of[tile][c % 4][i];
        group->of[tile][c % 4][i] = 0.0f;
      }
    }
  }
}

// Adds a block of 128 rows, of which `ahead` has the codes and then those of block `next`. `staged`
// are the activations of its rows, `rows` of them a pitch apart.
template <int kTiles, class Codes>
PIPELAB_DEVICE inline void AddBlock(const Codes& codes, const Panel& panel, int64_t block,
                                    int64_t next, const BFloat16* staged, int64_t pitch, int rows,
                                    OfLanes<Ahead>* ahead, OfLanes<Sums<kTiles>>* sums) {
  OfLanes<Sums<kTiles>> group;
  OfLanes<Words> now, scales;
  OfLanes<Words> x[kTiles][2];
  ForEachLane([&](int lane) {
    group[lane] = {};
    scales[lane] = (*ahead)[lane].scales;
    (*ahead)[lane].scales = panel.Scales(next, 0, lane);
  });
  PIPELAB_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    ForEachLane([&](int lane) {
      now[lane] = (*ahead)[lane].codes[step];
      (*ahead)[lane].codes[step] = panel.Codes(next, step, lane);
      const BFloat16* const at = staged + step * kStep + lane % 4 * kInt4Rows;
      PIPELAB_UNROLL
      for (int half = 0; half < 2 * kTiles; ++half) {
        const int row = half * 8 + lane / 4;
        x[half / 2][half % 2][lane] = row < rows ? WordsAt(at + row * pitch) : Words{};
      }
    });
    PIPELAB_UNROLL
    for (int h = 0; h < 2; ++h) {
      PIPELAB_UNROLL
      for (int t = 0; t < kColumnTiles; ++t) {
        OfLanes<Words> w;  // two words of it
        ForEachLane([&](int lane) {
          const uint32_t unit = now[lane].words[t];
          w[lane].words[0] = codes.Pair(unit >> 8 * h & 0x000f000fu);
          w[lane].words[1] = codes.Pair(unit >> (8 * h + 4) & 0x000f000fu);
        });
        PIPELAB_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          OfLanes<Words> a;
          ForEachLane([&](int lane) {
            const Words &low = x[tile][0][lane], &high = x[tile][1][lane];
            a[lane] = {
                {low.words[2 * h], high.words[2 * h], low.words[2 * h + 1], high.words[2 * h + 1]}};
          });
          AddLaneProduct([&](int lane) { return group[lane].of[tile][t]; },
                         [&](int lane) { return a[lane].words; },
                         [&](int lane) { return w[lane].words; });
        }
      }
    }
    if ((step + 1) % panel.steps != 0) continue;
    ForEachLane([&](int lane) {
      const Words own = panel.steps == kSteps ? scales[lane] : panel.Scales(block, step, lane);
      AddScaled<kTiles>(own, &group[lane], &(*sums)[lane]);
    });
  }
}

// Activations [first, first + rows) of k from `begin` to `end` on, as bfloat16; zeros behind k.
template <class T>
PIPELAB_DEVICE inline void Stage(const Block& block, const T* x, int64_t k, int64_t rows,
                                 int64_t begin, int64_t end, int64_t pitch, bool aligned,
                                 BFloat16* staged) {
  constexpr int kCount = 8;
  const int pieces = static_cast<int>(end - begin) / kCount;
  block.ForEach(rows * pieces, [&](int64_t at) {
    const int row = static_cast<int>(at) / pieces, piece = static_cast<int>(at) % pieces;
    const int64_t from = begin + piece * kCount, left = k - from;
    const int64_t count = left < 0 ? 0 : left < kCount ? left : kCount;
    const Part part{from, count, aligned && count == kCount};
    const auto in = Load<kCount>(x + row * k, part);
    Numbers<BFloat16, kCount> out;
    PIPELAB_UNROLL
    for (int i = 0; i < kCount; ++i) out.values[i] = static_cast<float>(in.values[i]);
    *reinterpret_cast<Numbers<BFloat16, kCount>*>(staged + row * pitch + piece * kCount) = out;
  });
}

// Sums of each warp to shared memory, [warp, row, column].
template <int kTiles>
PIPELAB_DEVICE inline void Spread(int warp, OfLanes<Sums<kTiles>>* sums, float* to) {
  ForEachLane([&](int lane) {
    const Sums<kTiles>& own = (*sums)[lane];
    PIPELAB_UNROLL
    for (int i = 0; i < kTiles * kColumnTiles * 4; ++i) {
      const int tile = i / 4 / kColumnTiles, t = i / 4 % kColumnTiles;
      const int row = tile * 16 + lane / 4 + i % 4 / 2 * 8;
      const int column = 8 * (lane % 4) + 4 * (i % 2) + t;
      to[(warp * kTiles * 16 + row) * kInt4Columns + column] = own.of[tile][t][i % 4];
    }
  });
}

template <int kTiles, class Codes, class T, class Y>
void Multiply(Queue& queue, const Int4Call& call, const Split& split, const T* x, Y* y) {
  const bool aligned = IsWide(x) && call.shape.k % 8 == 0;
  const int64_t turn = kWarps / split.panels;
  const int64_t floats =
      std::max<int64_t>(split.rows * split.pitch / 2, kWarps * kTiles * 16 * kInt4Columns);
  ForEachBlock(
      queue, "Int4Tiles", split.blocks(), Codes::kFloats + floats,
      [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const Codes codes(block, call, block.shared());
        float* const shared = block.shared() + Codes::kFloats;
        auto* const staged = reinterpret_cast<BFloat16*>(shared);
        const int64_t first_row = b % split.row_blocks * split.rows;
        const int64_t first_panel = b / split.row_blocks % split.column_blocks * split.panels;
        const int64_t slice = b / split.row_blocks / split.column_blocks;
        const int64_t left = split.m - first_row;
        const int rows = static_cast<int>(left < split.rows ? left : split.rows);
        const int64_t begin = slice * split.slice;
        const int64_t end =
            begin + split.slice < split.k_blocks ? begin + split.slice : split.k_blocks;
        const auto within = [&](int64_t at) { return at < end ? at : split.k_blocks; };
        const auto panel_of = [&](int warp) {  // of the last block's, some do not exist
          const int64_t panel = first_panel + warp % split.panels, all = call.shape.panels();
          return Panel(call, panel < all ? panel : all - 1);
        };
        OfWarps<OfLanes<Ahead>> ahead;
        OfWarps<OfLanes<Sums<kTiles>>> sums;
        block.ForEachWarp([&](int warp) {
          const Panel panel = panel_of(warp);
          ForEachLane([&](int lane) {
            sums[warp][lane] = {};
            panel.Read(within(begin + warp / split.panels), lane, &ahead[warp][lane]);
          });
        });
        const int64_t step = split.staged / kBlockRows;
        for (int64_t from = begin; from < end; from += step) {
          const int64_t to = from + step < end ? from + step : end;
          Stage(block, x + first_row * call.shape.k, call.shape.k, rows, from * kBlockRows,
                to * kBlockRows, split.pitch, aligned, staged);
          block.ForEachWarp([&](int warp) {
            const Panel panel = panel_of(warp);
            for (int64_t at = from + warp / split.panels; at < to; at += turn) {
              AddBlock<kTiles>(codes, panel, at, within(at + turn),
                               staged + (at - from) * kBlockRows, split.pitch, rows, &ahead[warp],
                               &sums[warp]);
            }
          });
        }
        block.ForEachWarp([&](int warp) { Spread<kTiles>(warp, &sums[warp], shared); });
        const int columns = static_cast<int>(split.panels) * kInt4Columns;
        block.ForEach(rows * columns, [&](int64_t at) {
          const int row = static_cast<int>(at) / columns, column = static_cast<int>(at) % columns;
          const int64_t n = first_panel * kInt4Columns + column;
          if (n >= call.shape.n) return;
          float sum = 0.0f;
          for (int warp = column / kInt4Columns; warp < kWarps; warp += split.panels) {
            sum += shared[(warp * kTiles * 16 + row) * kInt4Columns + column % kInt4Columns];
          }
          y[(slice * split.m + first_row + row) * call.shape.n + n] = sum;
        });
      });
}

template <class Codes, class T, class Y>
void ByRowTiles(Queue& queue, const Int4Call& call, const Split& split, const T* x, Y* y) {
  if (split.rows <= 16) return Multiply<1, Codes>(queue, call, split, x, y);
  if (split.rows <= 32) return Multiply<2, Codes>(queue, call, split, x, y);
  Multiply<4, Codes>(queue, call, split, x, y);
}

template <class T, class Y>
void ByCodes(Queue& queue, const Int4Call& call, const Split& split, const T* x, Y* y) {
  bool is_signed = true;
  for (int c = 0; c < 16; ++c) is_signed &= call.book[c] == static_cast<float>(c - 8);
  if (is_signed) return ByRowTiles<SignedCodes>(queue, call, split, x, y);
  ByRowTiles<BookCodes>(queue, call, split, x, y);
}

}  // namespace

template <class T>
void Int4ProductByTiles(Queue& queue, const Int4Call& call, const T* x, T* y) {
  const Split split = SplitOf(call.shape, call.m);
  if (split.slices == 1) return ByCodes(queue, call, split, x, y);
  const int64_t count = call.m * call.shape.n, slices = split.slices;
  auto* const parts = static_cast<float*>(queue.Scratch(slices * count * 4));
  if (parts == nullptr) return;
  ByCodes(queue, call, split, x, parts);
  ForEach(queue, "Int4Slices", count, [=] PIPELAB_DEVICE(int64_t i) {
    float sum = 0.0f;
    for (int64_t slice = 0; slice < slices; ++slice) sum += parts[slice * count + i];
    y[i] = sum;
  });
}

template void Int4ProductByTiles(Queue&, const Int4Call&, const float*, float*);
template void Int4ProductByTiles(Queue&, const Int4Call&, const BFloat16*, BFloat16*);

}  // namespace gpu
}  // namespace pipelab
