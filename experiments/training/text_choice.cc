#include "experiments/training/text_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/data/austen.h"
#include "models/data/package_cache.h"
#include "models/data/text_corpus.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr int64_t kSyntheticBytes = int64_t{1} << 20;

}  // namespace

absl::StatusOr<ChosenText> ChooseText(bool synthetic, int64_t context, uint64_t seed) {
  std::vector<std::string> notes;
  TextCorpus corpus;
  if (!synthetic) {
    absl::StatusOr<TextCorpus> novels = FetchAusten(DefaultDataCache());
    if (!novels.ok() && !absl::IsUnavailable(novels.status())) return novels.status();
    if (novels.ok()) {
      corpus = *std::move(novels);
    } else {
      synthetic = true;
      notes.push_back(
          absl::StrCat("The novels could not be fetched, so generated (synthetic) text is used: ",
                       novels.status().message()));
    }
  }
  if (synthetic) corpus = SyntheticCorpus(kSyntheticBytes, seed);
  absl::StatusOr<TextData> data = MakeTextData(corpus, context, seed);
  if (absl::IsInvalidArgument(data.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tokens=", context, ": ", data.status().message()));
  }
  PIPELAB_RETURN_IF_ERROR(data.status());
  const std::string size = absl::StrCat(ToString(Bytes(corpus.bytes())), " of text, ",
                                        data->vocabulary.size(), " different bytes");
  std::string description = synthetic ? absl::StrCat("synthetic text (", size, ")")
                                      : absl::StrCat("Jane Austen's six novels (", size, ")");
  return ChosenText{*std::move(data), std::move(description), std::move(notes)};
}

}  // namespace pipelab
