// Fetches every data set into the cache, ahead of a run without network, and says what came.
//
//   bazel run //models/data:fetch
//   PIPELAB_DATA=/data bazel run //models/data:fetch     # another cache
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "models/data/austen.h"
#include "models/data/ngram.h"
#include "models/data/package_cache.h"
#include "models/data/text_batches.h"
#include "tools/base/status_macros.h"
#include "tools/base/text_columns.h"

namespace pipelab {
namespace {

double Milliseconds(absl::Time since) { return absl::ToDoubleMilliseconds(absl::Now() - since); }

absl::Status Main() {
  const std::string cache = DefaultDataCache();
  absl::Time start = absl::Now();
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir, FetchDebianPackage(AustenPackage(), cache));
  const double fetch_ms = Milliseconds(start);
  start = absl::Now();
  PIPELAB_ASSIGN_OR_RETURN(const TextCorpus corpus, LoadAusten(dir));
  PIPELAB_ASSIGN_OR_RETURN(const TextData data, MakeTextData(corpus, /*context=*/128, /*seed=*/1));
  const double load_ms = Milliseconds(start);

  std::vector<std::vector<std::string>> novels = {{"novel", "lines", "size"}, {"", "", "bytes"}};
  for (size_t i = 0; i < corpus.documents.size(); ++i) {
    TextCorpus one;
    one.documents = {corpus.documents[i]};
    novels.push_back({corpus.titles[i], absl::StrCat(one.lines()), absl::StrCat(one.bytes())});
  }
  novels.push_back({"all", absl::StrCat(corpus.lines()), absl::StrCat(corpus.bytes())});
  std::cout << AlignColumns(novels, 2, {false, true, true}) << "\n";

  std::vector<std::vector<std::string>> losses = {
      {"context", "held-out loss"},
      {"bytes", "nats/byte"},
      {"none, all bytes alike",
       absl::StrFormat("%.3f", std::log(static_cast<double>(data.vocabulary.size())))}};
  for (const int order : {1, 2, 3, 5}) {
    const NGramModel model(data.train->tokens(), data.vocabulary.size(), order);
    losses.push_back(
        {absl::StrCat(order - 1), absl::StrFormat("%.3f", model.Loss(data.held_out->tokens()))});
  }
  std::cout << AlignColumns(losses, 2, {false, true}) << "\n";
  absl::PrintF("%d different bytes; %d for training, %d held out\n", data.vocabulary.size(),
               data.train->tokens().size(), data.held_out->tokens().size());
  absl::PrintF("fetched and checked in %.0f ms, read and encoded in %.0f ms\n%s\n", fetch_ms,
               load_ms, dir);
  return absl::OkStatus();
}

}  // namespace
}  // namespace pipelab

int main() {
  const absl::Status status = pipelab::Main();
  if (status.ok()) return 0;
  std::cerr << "fetch: " << status.message() << "\n";
  return 1;
}
