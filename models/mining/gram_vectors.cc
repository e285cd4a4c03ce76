#include "models/mining/gram_vectors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

using GramCounts = std::map<uint64_t, int>;  // by the gram's hash

uint64_t HashOf(std::u32string_view gram) {
  return StableHash({reinterpret_cast<const char*>(gram.data()), gram.size() * sizeof(char32_t)});
}

bool IsNumber(std::u32string_view word) {
  return std::all_of(word.begin(), word.end(), [](char32_t c) { return c >= U'0' && c <= U'9'; });
}

GramCounts CountGrams(const Sentence& sentence) {
  const std::u32string padded = U" " + sentence.text + U" ";
  const std::u32string_view text = padded;
  GramCounts counts;
  for (const size_t length : {3, 4}) {
    for (size_t i = 0; i + length <= text.size(); ++i) ++counts[HashOf(text.substr(i, length))];
  }
  for (size_t i = 1, end; i < text.size(); i = end + 1) {
    end = text.find(U' ', i);
    const std::u32string_view word = text.substr(i, end - i);
    if (!word.empty() && IsNumber(word)) ++counts[HashOf(U"#" + std::u32string(word))];
  }
  return counts;
}

// In how many sentences of each list a gram is.
using GramUse = absl::flat_hash_map<uint64_t, std::array<int, 2>>;

// Grams that one list alone has are part of the length, and of no product.
SparseRow SparseRowOf(const GramCounts& counts, const GramUse& use, double sentences) {
  std::map<int32_t, float> columns;
  double squares = 0;
  for (const auto& [gram, count] : counts) {
    const std::array<int, 2>& in = use.at(gram);
    const double weight = (1 + std::log(count)) * std::log(sentences / (in[0] + in[1]));
    squares += weight * weight;
    if (in[0] == 0 || in[1] == 0) continue;
    const float sign = (gram >> 63) == 0 ? 1.0f : -1.0f;
    columns[static_cast<int32_t>(gram % kGramDims)] += sign * static_cast<float>(weight);
  }
  SparseRow row;
  for (const auto& [column, value] : columns) {
    if (value != 0) row.push_back({column, value / static_cast<float>(std::sqrt(squares))});
  }
  return row;
}

}  // namespace

GramVectors MakeGramVectors(const std::vector<Sentence>& x, const std::vector<Sentence>& y) {
  GramUse use;
  std::vector<GramCounts> counts[2];
  for (const int side : {0, 1}) {
    for (const Sentence& s : side == 0 ? x : y) {
      counts[side].push_back(CountGrams(s));
      for (const auto& gram : counts[side].back()) ++use[gram.first][side];
    }
  }
  const auto sentences = static_cast<double>(x.size() + y.size());
  GramVectors vectors;
  for (const int side : {0, 1}) {
    for (const GramCounts& c : counts[side]) {
      (side == 0 ? vectors.x : vectors.y).push_back(SparseRowOf(c, use, sentences));
    }
  }
  return vectors;
}

Tensor DenseRows(const std::vector<SparseRow>& rows, int32_t columns, Arena* arena) {
  const Tensor dense = arena->Zeros(
      DataType::kFloat32, {static_cast<int64_t>(rows.size()), columns}, MemoryKind::kActivation);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (const SparseEntry& e : rows[r]) dense.f32()[r * columns + e.column] = e.value;
  }
  return dense;
}

}  // namespace pipelab
