#include "kernels/messages/order_free_sum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "kernels/comm/byte_codec.h"
#include "kernels/messages/digits.h"

namespace pipelab {
namespace {

constexpr uint8_t kNan = 1, kPlus = 2, kMinus = 4;  // what came to an element

int64_t BlocksOf(int64_t values) { return (values + kDigitBlock - 1) / kDigitBlock; }

uint8_t SpecialOf(float x) {
  if (std::isnan(x)) return kNan;
  if (std::isinf(x)) return x > 0 ? kPlus : kMinus;
  return 0;
}

float SumOfSpecial(uint8_t special) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (special == kPlus) return kInfinity;
  if (special == kMinus) return -kInfinity;
  return __builtin_bit_cast(float, uint32_t{0x7fc00000});
}

}  // namespace

OrderFreeSum::OrderFreeSum(int64_t values) : values_(values) {
  CHECK_GE(values, 0);
  blocks_.resize(BlocksOf(values));
}

void OrderFreeSum::Widen(int first, int end, Block* block) {
  if (block->count > 0) {
    first = std::min(first, block->first);
    end = std::max(end, block->first + block->count);
  }
  if (end - first == block->count) return;
  std::vector<int64_t> digits((end - first) * kDigitBlock);
  std::copy(block->digits.begin(), block->digits.end(),
            digits.begin() + (block->count > 0 ? block->first - first : 0) * kDigitBlock);
  block->digits = std::move(digits);
  block->first = first;
  block->count = end - first;
}

absl::Status OrderFreeSum::CheckRoom(int64_t vectors) const {
  if (vectors <= kMostVectors - vectors_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("an order-free sum of ", vectors_,
                                                   " vectors cannot take ", vectors,
                                                   " more; it takes ", kMostVectors));
}

void OrderFreeSum::AddBlock(const float* x, int64_t n, Block* block) {
  float own[kDigitBlock];
  if (n < kDigitBlock) {
    std::fill(std::copy(x, x + n, own), own + kDigitBlock, 0.0f);
    x = own;
  }
  SplitFloats split;
  ShiftRange range = SplitDigits(x, &split);
  if (!range.all_finite()) {
    block->special.resize(kDigitBlock);
    for (int64_t i = 0; i < kDigitBlock; ++i) {
      const uint8_t special = SpecialOf(x[i]);
      block->special[i] |= special;
      own[i] = special != 0 ? 0.0f : x[i];
    }
    range = SplitDigits(own, &split);
  }
  if (range.all_zero()) return;
  const int first = range.first_digit(), end = range.end_digit();
  Widen(first, end, block);
  AddDigits(split, first, end - first, &block->digits[(first - block->first) * kDigitBlock]);
}

absl::Status OrderFreeSum::Add(absl::Span<const float> x) {
  if (static_cast<int64_t>(x.size()) != values_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a vector of ", x.size(), " values for an order-free sum of ", values_));
  }
  if (absl::Status room = CheckRoom(1); !room.ok()) return room;
  ++vectors_;
  for (int64_t at = 0; at < values_; at += kDigitBlock) {
    AddBlock(x.data() + at, std::min(kDigitBlock, values_ - at), &blocks_[at / kDigitBlock]);
  }
  return absl::OkStatus();
}

absl::Status OrderFreeSum::Merge(const OrderFreeSum& other) {
  if (other.values_ != values_) {
    return absl::InvalidArgumentError(
        absl::StrCat("an order-free sum of ", other.values_, " values for one of ", values_));
  }
  if (absl::Status room = CheckRoom(other.vectors_); !room.ok()) return room;
  vectors_ += other.vectors_;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const Block& from = other.blocks_[b];
    Block& to = blocks_[b];
    if (!from.special.empty()) to.special.resize(kDigitBlock);
    for (size_t i = 0; i < from.special.size(); ++i) to.special[i] |= from.special[i];
    if (from.count == 0) continue;
    Widen(from.first, from.first + from.count, &to);
    AddPlain(from.digits.data(), from.count, &to.digits[(from.first - to.first) * kDigitBlock]);
  }
  return absl::OkStatus();
}

void OrderFreeSum::Round(absl::Span<float> sum) const {
  CHECK_EQ(static_cast<int64_t>(sum.size()), values_);
  for (int64_t at = 0; at < values_; at += kDigitBlock) {
    const Block& block = blocks_[at / kDigitBlock];
    float sums[kDigitBlock];
    RoundDigits(block.first, block.count, block.digits.data(), sums);
    for (size_t i = 0; i < block.special.size(); ++i) {
      if (block.special[i] != 0) sums[i] = SumOfSpecial(block.special[i]);
    }
    std::copy(sums, sums + std::min(kDigitBlock, values_ - at), sum.data() + at);
  }
}

int64_t OrderFreeSum::memory_bytes() const {
  size_t bytes = sizeof(*this);
  for (const Block& block : blocks_) {
    bytes += sizeof(block) + block.special.size() + block.digits.size() * sizeof(int64_t);
  }
  return static_cast<int64_t>(bytes);
}

std::string OrderFreeSum::ToBytes() const {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Int(values_).Int(vectors_);
  for (int64_t at = 0; at < values_; at += kDigitBlock) {
    const Block& block = blocks_[at / kDigitBlock];
    const int64_t n = std::min(kDigitBlock, values_ - at);
    const uint8_t head[3] = {static_cast<uint8_t>(block.first), static_cast<uint8_t>(block.count),
                             static_cast<uint8_t>(block.special.empty() ? 0 : 1)};
    out.Raw(head, sizeof(head));
    for (int d = 0; d < block.count; ++d) {
      out.Raw(&block.digits[d * kDigitBlock], n * sizeof(int64_t));
    }
    if (!block.special.empty()) out.Raw(block.special.data(), n);
  }
  return bytes;
}

absl::StatusOr<OrderFreeSum> OrderFreeSum::FromBytes(absl::string_view bytes, int64_t values) {
  const auto bad = [](const auto&... what) {
    return absl::DataLossError(absl::StrCat("bytes of an order-free sum: ", what...));
  };
  ByteReader in(bytes);
  OrderFreeSum sum(values);
  const int64_t said = in.Int();
  sum.vectors_ = in.Int();
  if (!in.ok()) return bad(bytes.size(), " are less than its head");
  if (said != values) return bad(said, " values where ", values, " were expected");
  if (sum.vectors_ < 0 || sum.vectors_ > kMostVectors) return bad(sum.vectors_, " vectors");
  // So many vectors cannot give more, and what is merged stays within 64 bits.
  const int64_t most = sum.vectors_ << kDigitBits;
  for (int64_t at = 0; at < values; at += kDigitBlock) {
    Block& block = sum.blocks_[at / kDigitBlock];
    const int64_t n = std::min(kDigitBlock, values - at);
    uint8_t head[3] = {0, 0, 0};  // first digit, digits, whether anything is not finite
    in.Raw(head, sizeof(head));
    const bool empty = head[1] == 0 && head[0] == 0;
    if (head[0] + head[1] > kMostDigits || (head[1] == 0 && !empty) || head[2] > 1 ||
        (sum.vectors_ == 0 && (head[1] > 0 || head[2] > 0))) {
      return bad("digits ", head[0], " + ", head[1], ", mark ", head[2], " of block ",
                 at / kDigitBlock);
    }
    if (in.left() < n * (head[1] * sizeof(int64_t) + head[2])) return bad("cut short");
    if (!empty) Widen(head[0], head[0] + head[1], &block);
    for (int d = 0; d < block.count; ++d) {
      int64_t* digits = &block.digits[d * kDigitBlock];
      in.Raw(digits, n * sizeof(int64_t));
      const auto [least, largest] = std::minmax_element(digits, digits + n);
      if (*least < -most || *largest > most) {
        return bad("a digit of block ", at / kDigitBlock, " is out of its range");
      }
    }
    if (head[2] == 0) continue;
    block.special.resize(kDigitBlock);
    in.Raw(block.special.data(), n);
    const uint8_t marks = *std::max_element(block.special.begin(), block.special.end());
    if (marks == 0 || marks > (kNan | kPlus | kMinus)) return bad("mark ", marks);
  }
  if (!in.ok() || in.left() != 0) return bad(in.left(), " bytes too many, or cut short");
  return sum;
}

}  // namespace pipelab
