#include "tests/program_digests.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr std::pair<const char*, std::string CaseTexts::*> kColumns[] = {
    {"lists", &CaseTexts::lists},   {"spans", &CaseTexts::spans},
    {"memory", &CaseTexts::memory}, {"traffic", &CaseTexts::traffic},
    {"losses", &CaseTexts::losses},
};

// The columns are texts of one case, or digests of several.
std::string DigestsText(const CaseTexts& texts) {
  std::string out;
  for (const auto& [name, text] : kColumns) {
    if ((texts.*text).empty()) continue;
    absl::StrAppendFormat(&out, " %s %016x", name, StableHash(texts.*text));
  }
  return out;
}

}  // namespace

std::vector<DigestLine> AllDigestLines() {
  std::vector<DigestLine> all = LoweredLines();
  for (const std::vector<DigestLine>& more : {PricedLines(), TrainedLines()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  std::sort(all.begin(), all.end(),
            [](const DigestLine& a, const DigestLine& b) { return a.name < b.name; });
  return all;
}

std::string LineText(const DigestLine& line) {
  CaseTexts digests;  // of the cases, one after the other
  int cases = 0, refused = 0;
  std::string broken;
  for (const DigestCase& one : line.cases) {
    const absl::StatusOr<CaseTexts> texts = one.texts();
    if (texts.ok()) {
      ++cases;
      for (const auto& [name, text] : kColumns) {
        if ((*texts.*text).empty()) continue;
        absl::StrAppendFormat(&(digests.*text), "%016x\n", StableHash(*texts.*text));
      }
    } else if (absl::IsInvalidArgument(texts.status())) {
      ++refused;
    } else {
      absl::StrAppend(&broken, "BROKEN ", one.name, ": ", texts.status().message(), "\n");
    }
  }
  return absl::StrCat(line.name, ": ", cases, " cases, ", refused, " refused,",
                      DigestsText(digests), "\n", broken);
}

std::string CasesText(const DigestLine& line) {
  std::string out;
  for (const DigestCase& one : line.cases) {
    const absl::StatusOr<CaseTexts> texts = one.texts();
    absl::StrAppend(
        &out, one.name, ":",
        texts.ok() ? DigestsText(*texts) : absl::StrCat(" refused: ", texts.status().message()),
        "\n");
  }
  return out;
}

std::string DumpText(const DigestCase& one) {
  const absl::StatusOr<CaseTexts> texts = one.texts();
  if (!texts.ok()) return absl::StrCat("refused: ", texts.status().message(), "\n");
  std::string out;
  for (const auto& [name, text] : kColumns) {
    if ((*texts.*text).empty()) continue;
    absl::StrAppend(&out, "== ", name, "\n", *texts.*text);
  }
  return out;
}

}  // namespace pipelab
