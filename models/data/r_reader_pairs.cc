// RReader: what is not a plain vector: pair lists, symbols, references, environments, compact
// forms.
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/data/r_reader.h"
#include "tools/base/status_macros.h"

namespace pipelab {

// A chain of cells: attributes, tag, value, then the rest of the chain. A loop, not a recursion:
// chains are long. Code (closures, calls, promises) has the same form and is read over.
absl::Status RReader::ReadPairs(Flags flags, RType type, RValue& value) {
  value.type = type;
  while (true) {
    if (flags.has_attributes) {
      RValue ignored;
      PIPELAB_RETURN_IF_ERROR(ReadAttributes(type == RType::kPairList ? value : ignored));
    }
    RValue tag, element;
    if (flags.has_tag) PIPELAB_RETURN_IF_ERROR(ReadItem(tag));
    PIPELAB_RETURN_IF_ERROR(ReadItem(element));
    if (type == RType::kPairList) {
      value.tags.push_back(tag.type == RType::kSymbol ? tag.strings[0] : "");
      value.elements.push_back(std::move(element));
    }
    PIPELAB_RETURN_IF_ERROR(ReadFlags(flags));
    if (flags.type == kNullCode) return absl::OkStatus();
    const bool goes_on =
        flags.type == kPairListCode || (type == RType::kOther && flags.type == kLanguageCode);
    if (!goes_on) break;
  }
  // A chain may end in any value: a function in its body, a pair in its second half.
  position_ -= 4;
  RValue last;
  PIPELAB_RETURN_IF_ERROR(ReadItem(last));
  if (type == RType::kPairList) {
    value.tags.emplace_back();
    value.elements.push_back(std::move(last));
  }
  return absl::OkStatus();
}

absl::Status RReader::ReadAttributes(RValue& value) {
  RValue pairs;
  PIPELAB_RETURN_IF_ERROR(ReadItem(pairs));
  if (pairs.type == RType::kNull) return absl::OkStatus();
  if (pairs.type != RType::kPairList) {
    return Error(
        absl::StrCat("attributes are ", RTypeName(pairs.type), "; they must be a pairlist"));
  }
  for (size_t i = 0; i < pairs.elements.size(); ++i) {
    value.attributes.emplace_back(std::move(pairs.tags[i]), std::move(pairs.elements[i]));
  }
  return absl::OkStatus();
}

absl::Status RReader::ReadSymbol(RValue& value) {
  bool missing = false;
  value.type = RType::kSymbol;
  PIPELAB_RETURN_IF_ERROR(ReadCharacters(value.strings.emplace_back(), missing));
  if (value.strings[0].size() > 10000) return Error("symbol longer than R's 10000 bytes");
  references_.push_back(value);
  return absl::OkStatus();
}

// The number is in the flags' upper bits, or in the next word when it does not fit there.
absl::Status RReader::ReadReference(const Flags& flags, RValue& value) {
  uint32_t number = flags.word >> 8;
  if (number == 0) PIPELAB_RETURN_IF_ERROR(ReadWord(number));
  if (number == 0 || number > references_.size()) {
    return Error(absl::StrFormat("reference to item %d; %d were seen", number, references_.size()));
  }
  value = references_[number - 1];
  // Four bytes in the file stand for a whole name here: that too is bounded.
  if (!value.strings.empty()) copied_ += static_cast<int64_t>(value.strings[0].size());
  if (copied_ > limits_.bytes) return Error("names repeated beyond the limit on the data's size");
  return absl::OkStatus();
}

// Name spaces, packages and what a data base keeps elsewhere: a character vector without a type
// word.
absl::Status RReader::ReadNameMark(RValue& value) {
  uint32_t zero = 0;
  PIPELAB_RETURN_IF_ERROR(ReadWord(zero));
  if (zero != 0) return Error("names of a name space: R writes none with names of their own");
  PIPELAB_RETURN_IF_ERROR(ReadStrings(value));
  value.type = RType::kEnvironment;
  RValue mark;
  mark.type = RType::kEnvironment;
  references_.push_back(std::move(mark));
  return absl::OkStatus();
}

// Contents are read over: they may point back to the environment, and data sets do not need them.
absl::Status RReader::ReadEnvironment(RValue& value) {
  value.type = RType::kEnvironment;
  references_.push_back(value);  // before the contents, which may refer to it
  uint32_t locked = 0;
  PIPELAB_RETURN_IF_ERROR(ReadWord(locked));
  for (int part = 0; part < 4; ++part) {  // enclosure, frame, hash table, attributes
    RValue ignored;
    PIPELAB_RETURN_IF_ERROR(ReadItem(ignored));
  }
  return absl::OkStatus();
}

absl::Status RReader::ReadPointer(int items, RValue& value) {
  value.type = RType::kOther;
  references_.push_back(value);
  for (int i = 0; i < items; ++i) {
    RValue ignored;
    PIPELAB_RETURN_IF_ERROR(ReadItem(ignored));
  }
  return absl::OkStatus();
}

absl::Status RReader::ReadBuiltin(RValue& value) {
  uint32_t length = 0;
  PIPELAB_RETURN_IF_ERROR(ReadWord(length));
  PIPELAB_RETURN_IF_ERROR(Need(length, 1, "name of a built-in"));
  position_ += length;
  value.type = RType::kOther;
  return absl::OkStatus();
}

// Compact forms: a pair list (class, package, base type), the state, attributes.
absl::Status RReader::ReadAlternative(RValue& value) {
  RValue info, state;
  PIPELAB_RETURN_IF_ERROR(ReadItem(info));
  PIPELAB_RETURN_IF_ERROR(ReadItem(state));
  if (info.type != RType::kPairList || info.elements[0].type != RType::kSymbol) {
    return Error("compact vector without the name of its class");
  }
  const std::string class_name = info.elements[0].strings[0];
  PIPELAB_RETURN_IF_ERROR(ExpandAlternative(class_name, state, value));
  return ReadAttributes(value);
}

absl::Status RReader::ExpandAlternative(absl::string_view class_name, RValue& state,
                                        RValue& value) {
  if (class_name == "compact_intseq") return ExpandSequence(true, state, value);
  if (class_name == "compact_realseq") return ExpandSequence(false, state, value);
  // Wrappers: the vector, then notes on its order. A list, or in older writers a pair.
  if (absl::StartsWith(class_name, "wrap_") && !state.elements.empty()) {
    value = std::move(state.elements[0]);
    return absl::OkStatus();
  }
  // Numbers to be printed when first looked at.
  if (class_name == "deferred_string" && !state.elements.empty()) {
    const RValue& numbers = state.elements[0];
    value.type = RType::kString;
    for (const int32_t v : numbers.integers) {
      if (v == kRMissingInteger) {
        value.missing_strings.push_back(static_cast<int64_t>(value.strings.size()));
      }
      value.strings.push_back(v == kRMissingInteger ? "" : absl::StrCat(v));
    }
    for (const double v : numbers.doubles) value.strings.push_back(absl::StrFormat("%.15g", v));
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrFormat(
      "%s: byte %d of the unpacked data: compact vector of class '%s' cannot be read", what_,
      position_, class_name));
}

// State: count, first, step, as doubles.
absl::Status RReader::ExpandSequence(bool integers, const RValue& state, RValue& value) {
  if (state.doubles.size() != 3) return Error("sequence without count, start and step");
  const double count = state.doubles[0], first = state.doubles[1], step = state.doubles[2];
  const bool sane = count >= 0 && count <= static_cast<double>(limits_.sequence - sequence_);
  if (!sane) {
    return Error(absl::StrFormat("sequence of %g numbers; %d may be left", count,
                                 limits_.sequence - sequence_));
  }
  const int64_t n = static_cast<int64_t>(count);
  const double last = first + step * static_cast<double>(n);
  if (integers && !(std::abs(first) < 2147483648.0 && std::abs(last) <= 2147483648.0)) {
    return Error(absl::StrFormat("integer sequence from %g by %g", first, step));
  }
  sequence_ += n;
  value.type = integers ? RType::kInteger : RType::kDouble;
  for (int64_t i = 0; i < n; ++i) {
    const double v = first + step * static_cast<double>(i);
    if (integers) {
      value.integers.push_back(static_cast<int32_t>(v));
    } else {
      value.doubles.push_back(v);
    }
  }
  return absl::OkStatus();
}

}  // namespace pipelab
