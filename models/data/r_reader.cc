#include "models/data/r_reader.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr uint32_t kLatin1Bit = 1u << (12 + 2);

std::string Latin1ToUtf8(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (byte < 0x80) {
      out.push_back(c);
    } else {
      out.push_back(static_cast<char>(0xC0 | (byte >> 6)));
      out.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return out;
}

uint32_t BigEndian32(const char* p) {
  const auto* b = reinterpret_cast<const uint8_t*>(p);
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | uint32_t{b[3]};
}

}  // namespace

absl::Status RReader::Error(absl::string_view fault) const {
  return absl::DataLossError(
      absl::StrFormat("%s: byte %d of the unpacked data: %s", what_, position_, fault));
}

absl::Status RReader::Need(int64_t count, int64_t size, absl::string_view what_for) const {
  const int64_t left = static_cast<int64_t>(bytes_.size() - position_);
  if (count <= left / size) return absl::OkStatus();
  return Error(absl::StrFormat("%s of %d values needs at least %d bytes each, %d are left in all",
                               what_for, count, size, left));
}

absl::Status RReader::CountValues(int64_t n) {
  values_ += n;
  if (values_ <= limits_.values) return absl::OkStatus();
  return Error(absl::StrFormat("more than %d values", limits_.values));
}

absl::Status RReader::ReadWord(uint32_t& word) {
  if (bytes_.size() - position_ < 4) return Error("it ends too early");
  word = BigEndian32(bytes_.data() + position_);
  position_ += 4;
  return absl::OkStatus();
}

absl::Status RReader::ReadFlags(Flags& flags) {
  PIPELAB_RETURN_IF_ERROR(ReadWord(flags.word));
  flags.type = static_cast<int>(flags.word & 0xFF);
  flags.has_attributes = (flags.word & (1u << 9)) != 0;
  flags.has_tag = (flags.word & (1u << 10)) != 0;
  return absl::OkStatus();
}

// 31 bits; or -1 and two words for longer vectors.
absl::Status RReader::ReadLength(int64_t& length) {
  uint32_t word = 0;
  PIPELAB_RETURN_IF_ERROR(ReadWord(word));
  length = static_cast<int32_t>(word);
  if (word == 0xFFFFFFFFu) {
    uint32_t high = 0, low = 0;
    PIPELAB_RETURN_IF_ERROR(ReadWord(high));
    PIPELAB_RETURN_IF_ERROR(ReadWord(low));
    if (high > 0xFFFF) return Error("vector longer than 2^48 values");
    length = static_cast<int64_t>(uint64_t{high} << 32 | low);
  }
  if (length < 0) return Error(absl::StrFormat("negative length %d", length));
  return absl::OkStatus();
}

absl::Status RReader::ReadHeader() {
  const absl::string_view magic = bytes_.substr(0, 2);
  if (magic == "A\n" || magic == "B\n") {
    return absl::UnimplementedError(absl::StrCat(what_, ": R's ",
                                                 magic == "A\n" ? "text" : "native",
                                                 " format; only XDR ('X') can be read"));
  }
  if (magic != "X\n") return Error("not an R serialisation: it must start with 'X' and a new line");
  position_ = 2;
  uint32_t version = 0, writer = 0, reader = 0;
  PIPELAB_RETURN_IF_ERROR(ReadWord(version));
  PIPELAB_RETURN_IF_ERROR(ReadWord(writer));
  PIPELAB_RETURN_IF_ERROR(ReadWord(reader));
  if (version != 2 && version != 3) {
    return Error(absl::StrFormat("serialisation version %d; 2 and 3 can be read", version));
  }
  if (version == 2) return absl::OkStatus();
  uint32_t size = 0;  // the name of the writer's encoding: for strings that do not say theirs
  PIPELAB_RETURN_IF_ERROR(ReadWord(size));
  PIPELAB_RETURN_IF_ERROR(Need(size, 1, "encoding name"));
  position_ += size;
  return absl::OkStatus();
}

absl::Status RReader::ExpectEnd() const {
  if (position_ == bytes_.size()) return absl::OkStatus();
  return Error(absl::StrFormat("%d bytes more than the value takes", bytes_.size() - position_));
}

absl::Status RReader::ReadItem(RValue& value) {
  if (++depth_ > limits_.depth) {
    return Error(absl::StrFormat("values nested deeper than %d", limits_.depth));
  }
  PIPELAB_RETURN_IF_ERROR(CountValues(1));
  Flags flags;
  PIPELAB_RETURN_IF_ERROR(ReadFlags(flags));
  PIPELAB_RETURN_IF_ERROR(ReadTyped(flags, value));
  --depth_;
  return absl::OkStatus();
}

// Items that are not vectors; those that are carry their attributes behind them.
absl::Status RReader::ReadTyped(const Flags& flags, RValue& value) {
  switch (flags.type) {
    case kNullCode:
      return absl::OkStatus();
    case kSymbolCode:
      return ReadSymbol(value);
    case kReferenceCode:
      return ReadReference(flags, value);
    case kPairListCode:
      return ReadPairs(flags, RType::kPairList, value);
    case kClosureCode:
    case kPromiseCode:
    case kLanguageCode:
    case kDotsCode:
      return ReadPairs(flags, RType::kOther, value);
    case kEnvironmentCode:
      return ReadEnvironment(value);
    case kNamespaceCode:
    case kPackageCode:
    case kPersistentCode:
      return ReadNameMark(value);
    case kGlobalEnvironmentCode:
    case kBaseEnvironmentCode:
    case kEmptyEnvironmentCode:
    case kBaseNamespaceCode:
      value.type = RType::kEnvironment;
      return absl::OkStatus();
    case kMissingArgumentCode:
    case kUnboundCode:
      value.type = RType::kOther;
      return absl::OkStatus();
    case kSpecialCode:
    case kBuiltinCode:
      return ReadBuiltin(value);
    case kAlternativeCode:
      return ReadAlternative(value);
    case kByteCodeCode:
      position_ -= 4;
      return absl::UnimplementedError(absl::StrFormat(
          "%s: byte %d of the unpacked data: compiled R code cannot be read", what_, position_));
    default:
      PIPELAB_RETURN_IF_ERROR(ReadVector(flags.type, value));
      return flags.has_attributes ? ReadAttributes(value) : absl::OkStatus();
  }
}

absl::Status RReader::ReadVector(int type, RValue& value) {
  switch (type) {
    case kLogicalCode:
      return ReadIntegers(RType::kLogical, value);
    case kIntegerCode:
      return ReadIntegers(RType::kInteger, value);
    case kDoubleCode:
      return ReadDoubles(RType::kDouble, value);
    case kComplexCode:
      return ReadDoubles(RType::kComplex, value);
    case kStringCode:
      return ReadStrings(value);
    case kRawCode:
      return ReadRaw(value);
    case kListCode:
    case kExpressionCode:
      return ReadList(value);
    case kExternalPointerCode:
      return ReadPointer(2, value);
    case kWeakReferenceCode:
      return ReadPointer(0, value);
    case kObjectCode:
      value.type = RType::kOther;
      return absl::OkStatus();
    default:
      position_ -= 4;
      return Error(absl::StrFormat("unknown item type %d", type));
  }
}

absl::Status RReader::ReadIntegers(RType type, RValue& value) {
  int64_t length = 0;
  PIPELAB_RETURN_IF_ERROR(ReadLength(length));
  PIPELAB_RETURN_IF_ERROR(Need(length, 4, "integer vector"));
  value.type = type;
  value.integers.resize(length);
  for (int32_t& v : value.integers) {
    v = static_cast<int32_t>(BigEndian32(bytes_.data() + position_));
    position_ += 4;
  }
  return absl::OkStatus();
}

absl::Status RReader::ReadDoubles(RType type, RValue& value) {
  const int64_t parts = type == RType::kComplex ? 2 : 1;
  int64_t length = 0;
  PIPELAB_RETURN_IF_ERROR(ReadLength(length));
  PIPELAB_RETURN_IF_ERROR(Need(length, 8 * parts, "double vector"));
  value.type = type;
  value.doubles.resize(length * parts);
  for (double& v : value.doubles) {
    const char* p = bytes_.data() + position_;
    const uint64_t bits = uint64_t{BigEndian32(p)} << 32 | BigEndian32(p + 4);
    std::memcpy(&v, &bits, sizeof(v));
    position_ += 8;
  }
  return absl::OkStatus();
}

absl::Status RReader::ReadRaw(RValue& value) {
  int64_t length = 0;
  PIPELAB_RETURN_IF_ERROR(ReadLength(length));
  PIPELAB_RETURN_IF_ERROR(Need(length, 1, "raw vector"));
  value.type = RType::kRaw;
  value.strings.emplace_back(bytes_.substr(position_, length));
  position_ += length;
  return absl::OkStatus();
}

// One string item: length (-1 is missing), bytes, coding in the item's own bits.
absl::Status RReader::ReadCharacters(std::string& text, bool& missing) {
  Flags flags;
  PIPELAB_RETURN_IF_ERROR(ReadFlags(flags));
  if (flags.type != kCharactersCode) {
    position_ -= 4;
    return Error(absl::StrFormat("item type %d where a string (%d) must be", flags.type,
                                 static_cast<int>(kCharactersCode)));
  }
  uint32_t length = 0;
  PIPELAB_RETURN_IF_ERROR(ReadWord(length));
  missing = length == 0xFFFFFFFFu;
  if (!missing) {
    PIPELAB_RETURN_IF_ERROR(Need(length, 1, "string"));
    const absl::string_view raw = bytes_.substr(position_, length);
    position_ += length;
    text = (flags.word & kLatin1Bit) != 0 ? Latin1ToUtf8(raw) : std::string(raw);
  }
  if (!flags.has_attributes) return absl::OkStatus();
  RValue ignored;  // old writers leak R's own string cache here
  return ReadItem(ignored);
}

absl::Status RReader::ReadStrings(RValue& value) {
  int64_t length = 0;
  PIPELAB_RETURN_IF_ERROR(ReadLength(length));
  PIPELAB_RETURN_IF_ERROR(Need(length, 8, "character vector"));
  value.type = RType::kString;
  value.strings.resize(length);
  for (int64_t i = 0; i < length; ++i) {
    bool missing = false;
    PIPELAB_RETURN_IF_ERROR(ReadCharacters(value.strings[i], missing));
    if (missing) value.missing_strings.push_back(i);
  }
  return absl::OkStatus();
}

absl::Status RReader::ReadList(RValue& value) {
  int64_t length = 0;
  PIPELAB_RETURN_IF_ERROR(ReadLength(length));
  PIPELAB_RETURN_IF_ERROR(Need(length, 4, "list"));
  value.type = RType::kList;
  // Grows as items arrive: a value here takes far more memory than its shortest form in the file.
  for (int64_t i = 0; i < length; ++i) {
    PIPELAB_RETURN_IF_ERROR(ReadItem(value.elements.emplace_back()));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
