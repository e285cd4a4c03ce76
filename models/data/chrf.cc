#include "models/data/chrf.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/data/utf8.h"

namespace pipelab {
namespace {

// Unicode's White_Space that names and sentences have.
bool IsSpace(uint32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::u32string Characters(absl::string_view text) {
  std::u32string out;
  const auto decoded = DecodeUtf8(text);
  if (decoded.ok()) {
    for (const uint32_t c : *decoded) {
      if (!IsSpace(c)) out.push_back(c);
    }
  } else {
    for (const char c : text) {
      if (!IsSpace(static_cast<uint8_t>(c))) out.push_back(static_cast<uint8_t>(c));
    }
  }
  return out;
}

std::map<std::u32string, int64_t> Grams(const std::u32string& text, size_t n) {
  std::map<std::u32string, int64_t> grams;
  for (size_t i = 0; i + n <= text.size(); ++i) ++grams[text.substr(i, n)];
  return grams;
}

}  // namespace

void Chrf::Add(absl::string_view hypothesis, absl::string_view reference) {
  const std::u32string h = Characters(hypothesis), r = Characters(reference);
  for (size_t n = 1; n <= kLongest; ++n) {
    Counts& counts = counts_[n - 1];
    counts.hypothesis += h.size() < n ? 0 : static_cast<int64_t>(h.size() - n + 1);
    counts.reference += r.size() < n ? 0 : static_cast<int64_t>(r.size() - n + 1);
    const auto in_reference = Grams(r, n);
    for (const auto& [gram, count] : Grams(h, n)) {
      const auto it = in_reference.find(gram);
      if (it != in_reference.end()) counts.both += std::min(count, it->second);
    }
  }
}

void Chrf::Add(const Chrf& other) {
  for (int i = 0; i < kLongest; ++i) {
    counts_[i].hypothesis += other.counts_[i].hypothesis;
    counts_[i].reference += other.counts_[i].reference;
    counts_[i].both += other.counts_[i].both;
  }
}

double Chrf::Value() const {
  double precision = 0, recall = 0;
  int lengths = 0;
  for (const Counts& c : counts_) {
    if (c.hypothesis == 0 || c.reference == 0) continue;
    ++lengths;
    precision += static_cast<double>(c.both) / static_cast<double>(c.hypothesis);
    recall += static_cast<double>(c.both) / static_cast<double>(c.reference);
  }
  if (precision == 0 || recall == 0) return 0;
  precision /= lengths;
  recall /= lengths;
  constexpr double kSquare = kBeta * kBeta;
  return (1 + kSquare) * precision * recall / (kSquare * precision + recall);
}

}  // namespace pipelab
