#include "pipelines/recipes/layer_pattern.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

using Pattern = std::vector<bool>;

constexpr int kMostDepth = 16;

class PatternParser {
 public:
  PatternParser(absl::string_view text, int64_t layers) : rest_(text), layers_(layers) {}

  absl::StatusOr<Pattern> Parse() {
    PIPELAB_ASSIGN_OR_RETURN(Pattern all, Sum(0));
    if (!rest_.empty()) return Error("a list ends before \"", rest_, "\"");
    if (static_cast<int64_t>(all.size()) == layers_) return all;
    return Error("has ", all.size(), " numbers");
  }

 private:
  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat(parts..., "; must be one 0 or 1 for each of ", layers_, " layers"));
  }

  absl::StatusOr<Pattern> Sum(int depth) {
    PIPELAB_ASSIGN_OR_RETURN(Pattern all, Product(depth));
    while (absl::ConsumePrefix(&rest_, "+")) {
      PIPELAB_ASSIGN_OR_RETURN(const Pattern more, Product(depth));
      all.insert(all.end(), more.begin(), more.end());
      if (static_cast<int64_t>(all.size()) > layers_) return Error("is longer");
    }
    return all;
  }

  absl::StatusOr<Pattern> Product(int depth) {
    int64_t times = 1;
    while (absl::optional<int64_t> number = Number()) {
      if (!absl::ConsumePrefix(&rest_, "*")) return Error("a number that multiplies no list");
      times = std::min(times * *number, layers_ + 1);
    }
    PIPELAB_ASSIGN_OR_RETURN(const Pattern part, List(depth));
    while (absl::ConsumePrefix(&rest_, "*")) {
      const absl::optional<int64_t> number = Number();
      if (!number.has_value()) return Error("\"*\" without a number");
      times = std::min(times * *number, layers_ + 1);
    }
    if (static_cast<int64_t>(part.size()) * times > layers_) return Error("is longer");
    Pattern all;
    for (int64_t i = 0; i < times; ++i) all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  absl::StatusOr<Pattern> List(int depth) {
    if (absl::ConsumePrefix(&rest_, "(") && depth < kMostDepth) {
      PIPELAB_ASSIGN_OR_RETURN(Pattern all, Sum(depth + 1));
      if (!absl::ConsumePrefix(&rest_, ")")) return Error("\")\" is missing");
      return all;
    }
    Pattern list;
    if (!absl::ConsumePrefix(&rest_, "[")) return Error("no list");
    do {
      const bool one = absl::ConsumePrefix(&rest_, "1");
      if (!one && !absl::ConsumePrefix(&rest_, "0")) return Error("a list of other than 0 and 1");
      list.push_back(one);
    } while (absl::ConsumePrefix(&rest_, ","));
    if (!absl::ConsumePrefix(&rest_, "]")) return Error("a list of other than 0 and 1");
    return list;
  }

  // At most one more than there are layers.
  absl::optional<int64_t> Number() {
    if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9') return absl::nullopt;
    int64_t number = 0;
    for (; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; rest_.remove_prefix(1)) {
      number = std::min(10 * number + (rest_[0] - '0'), layers_ + 1);
    }
    return number;
  }

  absl::string_view rest_;
  const int64_t layers_;
};

}  // namespace

absl::StatusOr<std::vector<bool>> ParseLayerPattern(absl::string_view text, int64_t layers) {
  return PatternParser(text, layers).Parse();
}

std::string FormatLayerPattern(const std::vector<bool>& layers) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end; begin < layers.size(); begin = end) {
    end = std::find(layers.begin() + begin, layers.end(), !layers[begin]) - layers.begin();
    parts.push_back(absl::StrCat("[", layers[begin] ? 1 : 0, "]*", end - begin));
  }
  return absl::StrCat("(", absl::StrJoin(parts, "+"), ")");
}

}  // namespace pipelab
