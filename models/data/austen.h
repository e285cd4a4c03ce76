// Jane Austen's six novels, from Debian's package r-cran-janeaustenr (MIT; the novels are public
// domain).
//
//   PIPELAB_ASSIGN_OR_RETURN(TextCorpus corpus, FetchAusten(DefaultDataCache()));   // 73,422 lines
//
// Errors: see package_cache.h; IsUnavailable means that generated text may stand in, named as such.
#ifndef PIPELAB_MODELS_DATA_AUSTEN_H_
#define PIPELAB_MODELS_DATA_AUSTEN_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/package_cache.h"
#include "models/data/text_corpus.h"

namespace pipelab {

const DebianPackage& AustenPackage();

// From the unpacked package: documents in the order of publication, lines as they were printed.
absl::StatusOr<TextCorpus> LoadAusten(absl::string_view package_dir);

// From the cache, or through apt into the cache.
absl::StatusOr<TextCorpus> FetchAusten(absl::string_view cache_dir,
                                       const FetchOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_AUSTEN_H_
