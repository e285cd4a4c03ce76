#include "pipelines/step/vocabulary_parts.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"

namespace pipelab {
namespace {

template <typename... Words>
absl::Status InvalidParts(const StepConfig& c, const Words&... words) {
  return absl::InvalidArgumentError(
      absl::StrCat("vocabulary_barriers=", c.vocabulary_barriers, ": ", words...));
}

// Null: it takes no parts.
const Scheme* SchemeWithParts(const StepConfig& c) {
  for (const Scheme& scheme : Catalog()) {
    if (scheme.name == c.scheme && TakesVocabularyParts(scheme)) return &scheme;
  }
  return nullptr;
}

int64_t ChainStages(const StepConfig& c, const Scheme& scheme) {
  return int64_t{c.pipeline} *
         (c.virtual_stages == 0 ? scheme.default_virtual_stages : c.virtual_stages);
}

}  // namespace

absl::Status CheckVocabularyParts(const StepConfig& c) {
  if (!c.divides_vocabulary()) {
    if (c.vocabulary_exchange == VocabularyExchange::kMessages) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("vocabulary_exchange=", VocabularyExchangeName(c.vocabulary_exchange),
                     ": requires vocabulary_barriers=1 or 2"));
  }
  const Scheme* const scheme = SchemeWithParts(c);
  if (scheme == nullptr) {
    std::vector<absl::string_view> others;
    for (const Scheme& s : Catalog()) {
      if (TakesVocabularyParts(s)) others.push_back(s.name);
    }
    return InvalidParts(c, c.scheme, " has no passes for parts of the vocabulary; ",
                        absl::StrJoin(others, ", "), " have");
  }
  for (const auto& [key, degree] :
       {std::make_pair("T", c.tensor), std::make_pair("C", c.context)}) {
    if (degree > 1) {
      return InvalidParts(
          c, key, "=", degree,
          ": parts of the vocabulary are not divided again; leave out one of the two");
    }
  }
  constexpr int64_t kMost = std::numeric_limits<int16_t>::max();
  if (c.pipeline < 1 || ChainStages(c, *scheme) + 2 * int64_t{c.pipeline} + 1 > kMost) {
    return InvalidParts(c, "P=", c.pipeline, ": must be at least 1, with at most ", kMost,
                        " stages in all, of which parts are 2 P + 1");
  }
  return absl::OkStatus();
}

StageGraph StagesWithVocabulary(const StepConfig& c) {
  if (!c.divides_vocabulary() || !CheckVocabularyParts(c).ok()) return {};
  const auto chain = static_cast<int>(ChainStages(c, *SchemeWithParts(c)));
  return VocabularyStages(c.pipeline, chain, c.vocabulary_barriers);
}

}  // namespace pipelab
