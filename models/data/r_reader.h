// The recursive reader behind r_serialization.h. Use that.
//
// Format: R Internals, section "Serialization Formats". Each item starts with a 32-bit word: type
// in the low 8 bits, flags for "is an object", "has attributes", "has a tag" in bits 8 to 10, a
// type's own bits from 12.
#ifndef PIPELAB_MODELS_DATA_R_READER_H_
#define PIPELAB_MODELS_DATA_R_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/data/r_serialization.h"
#include "models/data/r_value.h"

namespace pipelab {

// Type codes of the format.
enum RCode : int {
  kSymbolCode = 1,
  kPairListCode = 2,
  kClosureCode = 3,
  kEnvironmentCode = 4,
  kPromiseCode = 5,
  kLanguageCode = 6,
  kSpecialCode = 7,
  kBuiltinCode = 8,
  kCharactersCode = 9,
  kLogicalCode = 10,
  kIntegerCode = 13,
  kDoubleCode = 14,
  kComplexCode = 15,
  kStringCode = 16,
  kDotsCode = 17,
  kListCode = 19,
  kExpressionCode = 20,
  kByteCodeCode = 21,
  kExternalPointerCode = 22,
  kWeakReferenceCode = 23,
  kRawCode = 24,
  kObjectCode = 25,
  kAlternativeCode = 238,
  kBaseEnvironmentCode = 241,
  kEmptyEnvironmentCode = 242,
  kPersistentCode = 247,
  kPackageCode = 248,
  kNamespaceCode = 249,
  kBaseNamespaceCode = 250,
  kMissingArgumentCode = 251,
  kUnboundCode = 252,
  kGlobalEnvironmentCode = 253,
  kNullCode = 254,
  kReferenceCode = 255,
};

class RReader {
 public:
  RReader(absl::string_view bytes, absl::string_view what, const RLimits& limits)
      : bytes_(bytes), what_(what), limits_(limits) {}

  absl::Status ReadHeader();
  absl::Status ReadItem(RValue& value);  // `value` is fresh
  absl::Status ExpectEnd() const;

 private:
  struct Flags {
    int type;
    bool has_attributes, has_tag;
    uint32_t word;
  };

  absl::Status Error(absl::string_view fault) const;
  absl::Status Need(int64_t count, int64_t size, absl::string_view what_for) const;
  absl::Status ReadWord(uint32_t& word);
  absl::Status ReadFlags(Flags& flags);
  absl::Status ReadLength(int64_t& length);
  absl::Status CountValues(int64_t n);

  absl::Status ReadTyped(const Flags& flags, RValue& value);
  absl::Status ReadVector(int type, RValue& value);
  absl::Status ReadIntegers(RType type, RValue& value);
  absl::Status ReadDoubles(RType type, RValue& value);
  absl::Status ReadStrings(RValue& value);
  absl::Status ReadRaw(RValue& value);
  absl::Status ReadList(RValue& value);
  absl::Status ReadPairs(Flags flags, RType type, RValue& value);
  absl::Status ReadSymbol(RValue& value);
  absl::Status ReadReference(const Flags& flags, RValue& value);
  absl::Status ReadNameMark(RValue& value);
  absl::Status ReadEnvironment(RValue& value);
  absl::Status ReadPointer(int items, RValue& value);
  absl::Status ReadBuiltin(RValue& value);
  absl::Status ReadCharacters(std::string& text, bool& missing);
  absl::Status ReadAttributes(RValue& value);
  absl::Status ReadAlternative(RValue& value);
  absl::Status ExpandAlternative(absl::string_view class_name, RValue& state, RValue& value);
  absl::Status ExpandSequence(bool integers, const RValue& state, RValue& value);

  absl::string_view bytes_;
  absl::string_view what_;
  const RLimits limits_;
  size_t position_ = 0;
  int depth_ = 0;
  int64_t values_ = 0;
  int64_t sequence_ = 0;
  int64_t copied_ = 0;              // bytes of names repeated by references
  std::vector<RValue> references_;  // symbols and marks: what later items may point back to
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_R_READER_H_
