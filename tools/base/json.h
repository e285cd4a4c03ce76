// JSON (nlohmann) without exceptions: parse errors with line and column, fields by type, steady
// text.
//
//   PIPELAB_ASSIGN_OR_RETURN(nlohmann::json j, ParseJson(text, "--cluster=a.json"));
//   PIPELAB_ASSIGN_OR_RETURN(double bw, JsonField<double>(j, "bandwidth", "--cluster=a.json"));
//   std::string again = DumpJson(j);   // keys sorted, two spaces, a newline last
//
// `what` names the file or option in errors, all InvalidArgument:
// "--cluster=a.json:3:14: not JSON: ...", "--cluster=a.json: field 'bandwidth': missing; ...".
#ifndef PIPELAB_TOOLS_BASE_JSON_H_
#define PIPELAB_TOOLS_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace pipelab {

// What a text may hold; more is refused before anything is built.
struct JsonLimits {
  size_t bytes = size_t{1} << 28;
  int64_t values = int64_t{1} << 24;  // lists and objects too; each takes about 100 bytes
  int depth = 200;                    // printing a value recurses as deep
};

// Takes time in proportion to the text.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view what,
                                         const JsonLimits& limits = {});

// The same bytes for the same value on every machine. Invalid UTF-8 is replaced; NaN and
// infinities, which JSON lacks, become null.
std::string DumpJson(const nlohmann::json& value);

// A field of `object` as bool, int64_t, double (any number), std::string or nlohmann::json
// (anything).
template <typename T>
absl::StatusOr<T> JsonField(const nlohmann::json& object, absl::string_view key,
                            absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_JSON_H_
