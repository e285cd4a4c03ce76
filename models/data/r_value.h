// A value of the R language, as data files hold them: vectors with attributes, lists of values.
//
//   const RValue* titles = table.Element("title");            // a data frame is a list with names
//   if (titles != nullptr && titles->type == RType::kString) Use(titles->strings);
//   PIPELAB_ASSIGN_OR_RETURN(auto genres, FactorStrings(*table.Element("genres")));
//
// R's "missing" is kRMissingInteger among integers and logicals, a NaN among doubles (R tells it
// from other NaNs by its low bits, which are kept), and listed in `missing_strings`.
#ifndef PIPELAB_MODELS_DATA_R_VALUE_H_
#define PIPELAB_MODELS_DATA_R_VALUE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

enum class RType : uint8_t {
  kNull,
  kLogical,      // integers: 0, 1 or missing
  kInteger,      // integers; factors too, with attributes "levels" and "class"
  kDouble,       // doubles
  kComplex,      // doubles: real, imaginary, real, ...
  kString,       // strings, in UTF-8 where the file says how they are coded
  kRaw,          // strings[0]: the bytes
  kList,         // elements; names are an attribute
  kPairList,     // elements and tags ("" where an element has none)
  kSymbol,       // strings[0]: the name
  kEnvironment,  // environments, name spaces, packages: marks without contents
  kOther,        // code and pointers: read over, not kept
};
const char* RTypeName(RType type);

constexpr int32_t kRMissingInteger = std::numeric_limits<int32_t>::min();

struct RValue {
  RType type = RType::kNull;
  std::vector<int32_t> integers;
  std::vector<double> doubles;
  std::vector<std::string> strings;
  std::vector<int64_t> missing_strings;  // positions in `strings`, ascending; they hold ""
  std::vector<RValue> elements;
  std::vector<std::string> tags;
  std::vector<std::pair<std::string, RValue>> attributes;

  const RValue* Attribute(absl::string_view name) const;  // null when there is none
  // The element of that name of a list or pair list; null when there is none.
  const RValue* Element(absl::string_view name) const;
};

// The names of a list's or pair list's elements, "" where one has none.
std::vector<std::string> ElementNames(const RValue& value);

// A factor's labels, one a value ("" where missing); also takes plain strings.
absl::StatusOr<std::vector<std::string>> FactorStrings(const RValue& value);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_R_VALUE_H_
