// Products with 4-bit weights by tensor cores, factors in bfloat16: Int4Math::kBFloat16.
//
// A thread reads 16 bytes of codes, 8 rows of 4 columns, makes bfloat16 numbers of them in
// registers and multiplies those where they are (lane_product.h). Its place in k is not that of the
// matrix: tile h of the two that a step of 32 rows has takes, for thread j of four, rows 8 j + 4 h
// to 8 j + 4 h + 3, of activations too; a sum has no order among its rows. Its columns are 4 g + t
// in tile t. Scales, which are not of bfloat16 steps, apply to sums, in float32.
//
// A block has up to 64 rows of activations, which it keeps in shared memory piece by piece, and 1,
// 2, 4 or 8 panels; warps that share a panel take its blocks of 128 rows in turn. Where that makes
// few blocks, several have a slice of k each, and their sums are added in the order of slices.
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
constexpr int64_t kMostRows = 64;          // of activations, in a block
constexpr int64_t kStaged = 16 * 1024;     // words of activations in shared memory
constexpr int kPiece = 8;                  // in k, of two rows: as many words
constexpr int64_t kPad = 4;                // words behind the last piece: to other banks
constexpr int64_t kMultiprocessors = 132;  // of the GPUs at hand; two blocks each, of up to 16 rows

// Which block has what.
struct Split {
  int64_t m, rows, row_blocks;      // rows of activations; of a block; blocks of them
  int64_t panels, column_blocks;    // of a block
  int64_t k_blocks, slice, slices;  // blocks of 128 rows; of a slice
  int64_t staged;                   // rows of k in shared memory at once
  int64_t pairs, pitch;             // rows there, of two of x each; words from one to the next
  int64_t blocks() const { return row_blocks * column_blocks * slices; }
};

Split SplitOf(const Int4Shape& s, int64_t m) {
  Split split{};
  split.m = m;
  split.panels = std::min<int64_t>(kWarps, s.panels());
  while (kWarps % split.panels != 0) --split.panels;
  const int64_t most_rows =
      split.panels == 1 ? kMostRows / 2 : kMostRows;  // what shared memory has
  split.row_blocks = (m + most_rows - 1) / most_rows;
  split.rows = (m + split.row_blocks - 1) / split.row_blocks;
  split.column_blocks = (s.panels() + split.panels - 1) / split.panels;
  split.k_blocks = (s.k + kBlockRows - 1) / kBlockRows;
  // In one turn of the multiprocessors or, where that leaves many without a block, in two.
  const int64_t turns = kMultiprocessors * (split.rows <= 16 ? 2 : 1);
  const int64_t of_slice = split.column_blocks * split.row_blocks;
  const int64_t slices =
      std::max<int64_t>(1, turns / of_slice >= 2 ? turns / of_slice : 2 * turns / of_slice);
  // Warps that share a panel have equally many blocks of rows between them, but in the last slice.
  const int64_t turn = kWarps / split.panels;
  split.slice = ((split.k_blocks + slices - 1) / slices + turn - 1) / turn * turn;
  split.slices = (split.k_blocks + split.slice - 1) / split.slice;
  split.pairs = split.rows / 16 * 8 + std::min<int64_t>(split.rows % 16, 8);
  const int64_t most = kStaged / split.pairs / (kBlockRows * turn) * turn;
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

// Reads from memory that is read once, and from shared memory, at multiples of 16 bytes.
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
PIPELAB_DEVICE inline void SetWords(const Words& w, void* to) {
#ifdef __CUDA_ARCH__
  *static_cast<uint4*>(to) = make_uint4(w.words[0], w.words[1], w.words[2], w.words[3]);
#else
  std::memcpy(to, &w, sizeof(w));
#endif
}

// Two numbers of bfloat16 by their codes, at bits 0 to 3 and 16 to 19 of a word.
struct SignedCodes {
  static constexpr int64_t kFloats = 0;
  PIPELAB_DEVICE SignedCodes(const Block&, const Int4Call&, float*) {}
  // 128 + code by setting its bits, less 136.
  PIPELAB_DEVICE uint32_t Pair(uint32_t codes) const {
#ifdef __CUDA_ARCH__
    const uint32_t mask = 0x000f000fu, exponents = 0x43004300u, one = 0x3f803f80u;
    uint32_t raised, pair;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(raised) : "r"(codes), "r"(mask), "r"(exponents));
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(raised), "r"(one), "r"(0xc308c308u));
    return pair;
#else
    return PairOf(static_cast<float>(codes & 15) - 8, static_cast<float>(codes >> 16 & 15) - 8);
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
  PIPELAB_DEVICE uint32_t Pair(uint32_t codes) const {
    return pairs[(codes & 15) | (codes >> 12 & 240)];
  }
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

// A panel as threads read it. Behind the end of k codes are 0.
struct Panel {
  const int32_t* codes;
  const BFloat16* scales;
  int units, groups, shift;  // 2^shift steps have one scale

  PIPELAB_DEVICE Panel(const Int4Call& call, int64_t panel)
      : codes(call.codes + panel * call.shape.units() * kInt4Columns),
        scales(call.scales + panel * call.shape.groups() * kInt4Columns),
        units(static_cast<int>(call.shape.units())),
        groups(static_cast<int>(call.shape.groups())),
        shift(groups == 1              ? 30
              : call.shape.group == 32 ? 0
              : call.shape.group == 64 ? 1
                                       : 2) {}

  PIPELAB_DEVICE Words Codes(int block, int step, int lane) const {
    const int unit = block * (kBlockRows / kInt4Rows) + lane % 4 + step * (kStep / kInt4Rows);
    if (unit >= units) return {};
    return WordsAt(codes + unit * kInt4Columns + lane / 4 * 4);
  }
  PIPELAB_DEVICE Words Scales(int block, int step, int lane) const {
    const int group = (block * kSteps + step) >> shift;
    return WordsAt(scales + (group < groups ? group : groups - 1) * kInt4Columns + lane % 4 * 8);
  }
};

// sums += group scale; of a thread's sums, float i is in column 8 j + 4 (i % 2) + t.
template <int kTiles>
PIPELAB_DEVICE inline void AddScaled(const Words& scales, const Sums<kTiles>& group,
                                     Sums<kTiles>* sums) {
  PIPELAB_UNROLL
  for (int c = 0; c < 8; ++c) {
    const float scale = UpperOf(c % 2 == 0 ? scales.words[c / 2] << 16 : scales.words[c / 2]);
    PIPELAB_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      PIPELAB_UNROLL
      for (int i = c / 4; i < 4; i += 2) {
        sums->of[tile][c % 4][i] += scale * group.of[tile][c % 4][i];
      }
    }
  }
}

// Adds a block of 128 rows, of which `ahead` has the codes and then those of block `next`. `staged`
// are the activations of its rows (Stage); sums of rows that do not exist are of others, and
// nobody's. kOneScale: a block has one scale for each column.
template <int kTiles, bool kOneScale, class Codes>
PIPELAB_DEVICE inline void AddBlock(const Codes& codes, const Panel& panel, int block, int next,
                                    const uint32_t* staged, int pitch, int pairs,
                                    OfLanes<Ahead>* ahead, OfLanes<Sums<kTiles>>* sums) {
  OfLanes<Sums<kTiles>> group;
  OfLanes<Words> now, scales;
  OfLanes<Words> x[kTiles][2];
  ForEachLane([&](int lane) {
    if (kOneScale) scales[lane] = (*ahead)[lane].scales;
    if (kOneScale) (*ahead)[lane].scales = panel.Scales(next, 0, lane);
  });
  PIPELAB_UNROLL
  for (int step = 0; step < kSteps; ++step) {
    ForEachLane([&](int lane) {
      if (!kOneScale || step == 0) group[lane] = {};
      now[lane] = (*ahead)[lane].codes[step];
      (*ahead)[lane].codes[step] = panel.Codes(next, step, lane);
      const uint32_t* const at = staged + step * kStep + lane % 4 * kPiece;
      PIPELAB_UNROLL
      for (int i = 0; i < 2 * kTiles; ++i) {
        const int pair = i / 2 * 8 + lane / 4;
        x[i / 2][i % 2][lane] = WordsAt(at + (pair < pairs ? pair : pairs - 1) * pitch + i % 2 * 4);
      }
    });
    PIPELAB_UNROLL
    for (int h = 0; h < 2; ++h) {
      PIPELAB_UNROLL
      for (int t = 0; t < kColumnTiles; ++t) {
        OfLanes<Words> w;  // two words of it
        ForEachLane([&](int lane) {
          const uint32_t unit = now[lane].words[t];
          w[lane].words[0] = codes.Pair(unit >> 8 * h);
          w[lane].words[1] = codes.Pair(unit >> (8 * h + 4));
        });
        PIPELAB_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
          AddLaneProduct([&](int lane) { return group[lane].of[tile][t]; },
                         [&](int lane) { return x[tile][h][lane].words; },
                         [&](int lane) { return w[lane].words; });
        }
      }
    }
    if (kOneScale && step + 1 < kSteps) continue;
    ForEachLane([&](int lane) {
      const Words own = kOneScale ? scales[lane] : panel.Scales(block, step, lane);
      AddScaled<kTiles>(own, group[lane], &(*sums)[lane]);
    });
  }
}

// Activations, and what their products are written to: of bfloat16 or of float32 numbers.
struct Ends {
  const void* x;
  void* y;
  bool half_x, half_y;
  bool wide;  // x's rows begin at multiples of 16 bytes
};

// Eight activations, zeros behind k.
PIPELAB_DEVICE inline Words EightOf(const Ends& ends, int64_t k, int64_t row, int64_t begin) {
  const BFloat16* const half = static_cast<const BFloat16*>(ends.x) + row * k;
  const float* const whole = static_cast<const float*>(ends.x) + row * k;
  if (ends.wide && ends.half_x && begin + 8 <= k) return WordsAt(half + begin);
  Words words{};
  PIPELAB_UNROLL
  for (int i = 0; i < 8; ++i) {
    if (begin + i >= k) break;
    const float v = ends.half_x ? static_cast<float>(half[begin + i])
                                : static_cast<float>(BFloat16(whole[begin + i]));
    const uint32_t word = PairOf(v, v);
    words.words[i / 2] |= i % 2 == 0 ? word & 0xffffu : word & 0xffff0000u;
  }
  return words;
}

// Activations [first, first + rows) of k from `begin` to `end` on, as bfloat16: for eight rows of k
// after the other, those of rows g and g + 8 as the words of a factor for one product and then for
// another, {g, g + 8, g, g + 8}. A thread has four reads on their way.
PIPELAB_DEVICE inline void Stage(const Block& block, const Ends& ends, int64_t k, int64_t first,
                                 int rows, int pairs, int64_t begin, int64_t end, int pitch,
                                 uint32_t* staged) {
  constexpr int kTogether = 2;
  const int pieces = static_cast<int>(end - begin) / kPiece, all = pairs * pieces;
  const uint64_t inverse = (uint64_t{1} << 32) / static_cast<uint64_t>(pieces) + 1;
  const auto pair_of = [&](int i) {  // i / pieces
    return static_cast<int>(static_cast<uint64_t>(i) * inverse >> 32);
  };
  const int rounds = (all + kTogether * kThreads - 1) / (kTogether * kThreads);
  block.ForEach(rounds * kThreads, [&](int64_t at) {
    const int own =
        static_cast<int>(at) % kThreads + static_cast<int>(at) / kThreads * kTogether * kThreads;
    Words low[kTogether], high[kTogether];
    PIPELAB_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int item = own + i * kThreads, pair = pair_of(item);
      if (item >= all) continue;
      const int64_t from = begin + (item - pair * pieces) * kPiece;
      const int row = pair / 8 * 16 + pair % 8;
      low[i] = EightOf(ends, k, first + row, from);
      high[i] = row + 8 < rows ? EightOf(ends, k, first + row + 8, from) : low[i];
    }
    PIPELAB_UNROLL
    for (int i = 0; i < kTogether; ++i) {
      const int item = own + i * kThreads, pair = pair_of(item);
      if (item >= all) continue;
      uint32_t* const to = staged + pair * pitch + (item - pair * pieces) * kPiece;
      const uint32_t *const a = low[i].words, *const b = high[i].words;
      SetWords({{a[0], b[0], a[1], b[1]}}, to);
      SetWords({{a[2], b[2], a[3], b[3]}}, to + 4);
    }
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

template <int kTiles, bool kOneScale, class Codes>
void Multiply(Queue& queue, const Int4Call& call, const Split& split, const Ends& ends) {
  const int64_t floats =
      std::max<int64_t>(split.pairs * split.pitch, kWarps * kTiles * 16 * kInt4Columns);
  ForEachBlock(
      queue, "Int4Tiles", split.blocks(), Codes::kFloats + floats,
      [=] PIPELAB_DEVICE(Block & block, int64_t b) {
        const Codes codes(block, call, block.shared());
        float* const shared = block.shared() + Codes::kFloats;
        auto* const staged = reinterpret_cast<uint32_t*>(shared);
        const int panels = static_cast<int>(split.panels), turn = kWarps / panels;
        const int pitch = static_cast<int>(split.pitch);
        const int64_t first_row = b % split.row_blocks * split.rows;
        const int64_t first_panel = b / split.row_blocks % split.column_blocks * panels;
        const int64_t slice = b / split.row_blocks / split.column_blocks;
        const int64_t left = split.m - first_row, last = (slice + 1) * split.slice;
        const int rows = static_cast<int>(left < split.rows ? left : split.rows);
        const int pairs = static_cast<int>(split.pairs);
        const int begin = static_cast<int>(slice * split.slice);
        const int end = static_cast<int>(last < split.k_blocks ? last : split.k_blocks);
        const auto within = [&](int at) {  // else behind k, where nothing is read
          return at < end ? at : static_cast<int>(split.k_blocks);
        };
        const auto panel_of = [&](int warp) {  // of the last block's, some do not exist
          const int64_t panel = first_panel + warp % panels, all = call.shape.panels();
          return Panel(call, panel < all ? panel : all - 1);
        };
        OfWarps<OfLanes<Ahead>> ahead;
        OfWarps<OfLanes<Sums<kTiles>>> sums;
        block.ForEachWarp([&](int warp) {
          const Panel panel = panel_of(warp);
          const int first = within(begin + warp / panels);
          ForEachLane([&](int lane) {
            Ahead& own = ahead[warp][lane];
            PIPELAB_UNROLL
            for (int step = 0; step < kSteps; ++step) {
              own.codes[step] = panel.Codes(first, step, lane);
            }
            if (kOneScale) own.scales = panel.Scales(first, 0, lane);
            sums[warp][lane] = {};
          });
        });
        const int step = static_cast<int>(split.staged / kBlockRows);
        for (int from = begin; from < end; from += step) {
          const int to = from + step < end ? from + step : end;
          Stage(block, ends, call.shape.k, first_row, rows, pairs, from * kBlockRows,
                to * kBlockRows, pitch, staged);
          block.ForEachWarp([&](int warp) {
            const Panel panel = panel_of(warp);
            for (int at = from + warp / panels; at < to; at += turn) {
              AddBlock<kTiles, kOneScale>(codes, panel, at, within(at + turn),
                                          staged + (at - from) * kBlockRows, pitch, pairs,
                                          &ahead[warp], &sums[warp]);
            }
          });
        }
        block.ForEachWarp([&](int warp) { Spread<kTiles>(warp, &sums[warp], shared); });
        const int columns = panels * kInt4Columns;
        block.ForEach(rows * columns, [&](int64_t at) {
          const int row = static_cast<int>(at) / columns, column = static_cast<int>(at) % columns;
          const int64_t n = first_panel * kInt4Columns + column;
          if (n >= call.shape.n) return;
          float sum = 0.0f;
          for (int warp = column / kInt4Columns; warp < kWarps; warp += panels) {
            sum += shared[(warp * kTiles * 16 + row) * kInt4Columns + column % kInt4Columns];
          }
          const int64_t place = (slice * split.m + first_row + row) * call.shape.n + n;
          if (ends.half_y) {
            static_cast<BFloat16*>(ends.y)[place] = sum;
          } else {
            static_cast<float*>(ends.y)[place] = sum;
          }
        });
      });
}

template <bool kOneScale, class Codes>
void ByRowTiles(Queue& queue, const Int4Call& call, const Split& split, const Ends& ends) {
  if (split.rows <= 16) return Multiply<1, kOneScale, Codes>(queue, call, split, ends);
  if (split.rows <= 32) return Multiply<2, kOneScale, Codes>(queue, call, split, ends);
  Multiply<4, kOneScale, Codes>(queue, call, split, ends);
}

template <class Codes>
void ByScales(Queue& queue, const Int4Call& call, const Split& split, const Ends& ends) {
  if (call.shape.group >= kBlockRows || call.shape.groups() == 1) {
    return ByRowTiles<true, Codes>(queue, call, split, ends);
  }
  ByRowTiles<false, Codes>(queue, call, split, ends);
}

void ByCodes(Queue& queue, const Int4Call& call, const Split& split, const Ends& ends) {
  bool is_signed = true;
  for (int c = 0; c < 16; ++c) is_signed &= call.book[c] == static_cast<float>(c - 8);
  if (is_signed) return ByScales<SignedCodes>(queue, call, split, ends);
  ByScales<BookCodes>(queue, call, split, ends);
}

int64_t Sixteens(int64_t bytes) { return (bytes + 15) / 16 * 16; }

// Weights as threads read them: at multiples of 16 bytes.
void CopyWeights(Queue& queue, void* to, Int4Call* call) {
  const Int4Shape& s = call->shape;
  const int64_t codes = s.panels() * s.units() * kInt4Columns;
  const int64_t scales = s.panels() * s.groups() * kInt4Columns;
  auto* const to_codes = static_cast<int32_t*>(to);
  auto* const to_scales = reinterpret_cast<BFloat16*>(to_codes + codes);
  CopyColumns(queue, call->scales, scales, 1, scales, to_scales, scales);
  const int32_t* const from = call->codes;
  ForEach(queue, "Int4Codes", codes, [=] PIPELAB_DEVICE(int64_t i) { to_codes[i] = from[i]; });
  call->codes = to_codes;
  call->scales = to_scales;
}

}  // namespace

template <class T>
void Int4ProductByTiles(Queue& queue, const Int4Call& given, const T* x, T* y) {
  constexpr bool kHalf = sizeof(T) == 2;
  Int4Call call = given;
  const Int4Shape& s = call.shape;
  const Split split = SplitOf(s, call.m);
  const int64_t count = call.m * s.n, slices = split.slices;
  const bool copies = !IsWide(call.codes) || !IsWide(call.scales);
  const int64_t of_parts = slices == 1 ? 0 : Sixteens(slices * count * 4);
  const int64_t of_copies =
      copies ? s.panels() * kInt4Columns * (s.units() * 4 + s.groups() * 2) : 0;
  char* scratch = nullptr;
  if (of_parts + of_copies > 0) {
    scratch = static_cast<char*>(queue.Scratch(of_parts + of_copies));
    if (scratch == nullptr) return;
  }
  if (copies) CopyWeights(queue, scratch + of_parts, &call);
  Ends ends{x, y, kHalf, kHalf, IsWide(x) && s.k % 8 == 0};
  if (slices == 1) return ByCodes(queue, call, split, ends);
  auto* const parts = reinterpret_cast<float*>(scratch);
  ends.y = parts;
  ends.half_y = false;
  ByCodes(queue, call, split, ends);
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
