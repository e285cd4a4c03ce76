#include "models/data/r_value.h"

#include "absl/strings/str_format.h"

namespace pipelab {

const char* RTypeName(RType type) {
  switch (type) {
    case RType::kNull:
      return "NULL";
    case RType::kLogical:
      return "logical";
    case RType::kInteger:
      return "integer";
    case RType::kDouble:
      return "double";
    case RType::kComplex:
      return "complex";
    case RType::kString:
      return "character";
    case RType::kRaw:
      return "raw";
    case RType::kList:
      return "list";
    case RType::kPairList:
      return "pairlist";
    case RType::kSymbol:
      return "symbol";
    case RType::kEnvironment:
      return "environment";
    case RType::kOther:
      return "code";
  }
  return "?";
}

const RValue* RValue::Attribute(absl::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::vector<std::string> ElementNames(const RValue& value) {
  std::vector<std::string> names = value.tags;
  if (const RValue* attribute = value.Attribute("names"); attribute != nullptr) {
    names = attribute->strings;
  }
  names.resize(value.elements.size());
  return names;
}

const RValue* RValue::Element(absl::string_view name) const {
  const RValue* attribute = Attribute("names");
  const std::vector<std::string>& names = attribute == nullptr ? tags : attribute->strings;
  for (size_t i = 0; i < names.size() && i < elements.size(); ++i) {
    if (names[i] == name) return &elements[i];
  }
  return nullptr;
}

absl::StatusOr<std::vector<std::string>> FactorStrings(const RValue& value) {
  if (value.type == RType::kString) return value.strings;
  const RValue* levels = value.Attribute("levels");
  if (value.type != RType::kInteger || levels == nullptr || levels->type != RType::kString) {
    return absl::InvalidArgumentError(
        absl::StrFormat("R value is %s; it must be a factor or character", RTypeName(value.type)));
  }
  std::vector<std::string> labels;
  labels.reserve(value.integers.size());
  const int64_t count = static_cast<int64_t>(levels->strings.size());
  for (const int32_t code : value.integers) {
    if (code == kRMissingInteger) {
      labels.emplace_back();
    } else if (code < 1 || code > count) {
      return absl::DataLossError(absl::StrFormat("R factor: code %d at value %d; it has %d levels",
                                                 code, labels.size(), count));
    } else {
      labels.push_back(levels->strings[code - 1]);
    }
  }
  return labels;
}

}  // namespace pipelab
