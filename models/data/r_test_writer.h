// Writes R's serialisation format for tests, so that none needs R or a package.
//
//   RWriter w;
//   w.Begin(3).Strings({"a", "b"});
//   ReadRSerialized(w.bytes(), "test");
#ifndef PIPELAB_MODELS_DATA_R_TEST_WRITER_H_
#define PIPELAB_MODELS_DATA_R_TEST_WRITER_H_

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "models/data/r_reader.h"

namespace pipelab {

class RWriter {
 public:
  static constexpr uint32_t kHasAttributes = 1u << 9, kHasTag = 1u << 10;
  static constexpr uint32_t kLatin1 = 1u << 14, kUtf8 = 1u << 15, kAscii = 1u << 18;

  RWriter& Begin(int version) {
    bytes_ += "X\n";
    Word(version).Word(0x00040201).Word(version == 2 ? 0x00020300 : 0x00030500);
    if (version == 3) Word(5).Bytes("UTF-8");
    return *this;
  }
  RWriter& Word(uint32_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes_.push_back(static_cast<char>(word >> shift));
    return *this;
  }
  RWriter& Bytes(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  RWriter& Item(RCode code, uint32_t bits = 0) { return Word(code | bits); }
  RWriter& Null() { return Item(kNullCode); }
  RWriter& Characters(const std::string& text, uint32_t bits = kAscii) {
    return Item(kCharactersCode, bits).Word(static_cast<uint32_t>(text.size())).Bytes(text);
  }
  RWriter& Missing() { return Item(kCharactersCode).Word(0xFFFFFFFF); }
  RWriter& Symbol(const std::string& name) { return Item(kSymbolCode).Characters(name); }
  RWriter& Reference(uint32_t number) { return Word(number << 8 | kReferenceCode); }
  RWriter& Strings(const std::vector<std::string>& values, uint32_t bits = 0) {
    Item(kStringCode, bits).Word(static_cast<uint32_t>(values.size()));
    for (const std::string& v : values) Characters(v);
    return *this;
  }
  RWriter& Integers(const std::vector<int32_t>& values, uint32_t bits = 0) {
    Item(kIntegerCode, bits).Word(static_cast<uint32_t>(values.size()));
    for (const int32_t v : values) Word(static_cast<uint32_t>(v));
    return *this;
  }
  RWriter& Double(double value) {
    uint64_t word;
    std::memcpy(&word, &value, sizeof(word));
    return Word(static_cast<uint32_t>(word >> 32)).Word(static_cast<uint32_t>(word));
  }
  RWriter& Doubles(const std::vector<double>& values, uint32_t bits = 0) {
    Item(kDoubleCode, bits).Word(static_cast<uint32_t>(values.size()));
    for (const double v : values) Double(v);
    return *this;
  }
  // The head of a list; its elements follow.
  RWriter& List(uint32_t length, uint32_t bits = 0) { return Item(kListCode, bits).Word(length); }
  // The head of a cell with a tag; its value follows, then the next cell or Null().
  RWriter& Cell(const std::string& tag) { return Item(kPairListCode, kHasTag).Symbol(tag); }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A zlib stream of `bytes`.
inline std::string ZlibOf(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  compress2(reinterpret_cast<Bytef*>(&out[0]), &size, reinterpret_cast<const Bytef*>(bytes.data()),
            bytes.size(), 6);
  out.resize(size);
  return out;
}

// A small data frame: every kind of vector, factors, missing values, references, a compact
// sequence.
inline std::string SampleFrame() {
  RWriter w;
  w.Begin(3).List(4, RWriter::kHasAttributes);
  w.Integers({1, 2, 1, kRMissingInteger}, RWriter::kHasAttributes);
  w.Cell("levels").Strings({"drama", "noir"}).Cell("class").Strings({"factor"}).Null();
  w.Doubles({0.5, -1.0, 1e300, 3.0});
  w.Item(kStringCode).Word(4).Characters("a").Missing().Characters("\xE9", RWriter::kLatin1);
  w.Characters("\xC3\xA9", RWriter::kUtf8);
  w.Item(kAlternativeCode).Item(kPairListCode).Symbol("compact_intseq");
  w.Item(kPairListCode).Symbol("base").Item(kPairListCode).Integers({13}).Null();
  w.Doubles({4, 1, 1}).Null();
  w.Cell("names").Strings({"genre", "rating", "title", "id"});
  // References 1 to 4 are levels, class, compact_intseq, base; "names" is 5.
  w.Item(kPairListCode, RWriter::kHasTag).Reference(2).Strings({"data.frame"}).Null();
  return w.bytes();
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_R_TEST_WRITER_H_
