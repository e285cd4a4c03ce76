// The theorems of set.mm, a formal book of mathematics: a vertex is a statement, an edge "its proof
// uses", the label the part of the book that it stands in (of a mathbox, its author). From Debian's
// package metamath-databases (the database is in the public domain, CC0).
//
//   PIPELAB_ASSIGN_OR_RETURN(TextGraph text, FetchTheoremGraph(DefaultDataCache()));
//   text.graph.num_vertices()                               // 40,426, with 1,213,085 edges
//
// Format: Megill and Wheeler, "Metamath: a computer language for mathematical proofs", 2019.
// Errors: see package_cache.h; DataLoss names the file and a byte.
#ifndef PIPELAB_MODELS_DATA_THEOREM_GRAPH_H_
#define PIPELAB_MODELS_DATA_THEOREM_GRAPH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/package_cache.h"
#include "models/data/text_graph.h"

namespace pipelab {

const DebianPackage& MetamathPackage();

// Statements with labels ($a and $p), their symbols as words, the parts of the book (comments
// headed by lines of #*#*) as classes. What stands before the first part has the class "".
absl::StatusOr<TextGraph> ParseMetamath(absl::string_view bytes, absl::string_view file);

absl::StatusOr<TextGraph> LoadTheoremGraph(absl::string_view package_dir);
// From the cache, or through apt into the cache.
absl::StatusOr<TextGraph> FetchTheoremGraph(absl::string_view cache_dir,
                                            const FetchOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_THEOREM_GRAPH_H_
