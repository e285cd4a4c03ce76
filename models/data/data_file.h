// A user's own data for a network: a text, a table of numbers, pictures. What the file is, its name
// says; what is made of it, what the network reads.
//
//   PIPELAB_ASSIGN_OR_RETURN(DataFile data, OpenDataFile("--data", "houses.csv", graph, options));
//   data.train;                                    // fits the graph's layers
//
//   path                                           fields
//   *.csv                                          features, targets (table_batches.h)
//   a folder with train-images-idx3-ubyte[.gz]     image, targets
//   and train-labels-idx1-ubyte[.gz]
//   a folder of folders of *.png                   image, targets (image_files.h)
//   any other file                                 tokens, targets: bytes of a text
//
// A network that reads none of these (two languages, bags of ids) trains on generated data
// (random_batches.h).
//
// Errors: "OPTION=PATH: ...", one line; FailedPrecondition for what is wrong in the file,
// InvalidArgument where the network reads other data. What it reads and the data lacks is said by
// field: "the network reads "features" as numbers [8]; the data has [5]".
#ifndef PIPELAB_MODELS_DATA_DATA_FILE_H_
#define PIPELAB_MODELS_DATA_DATA_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"

namespace pipelab {

struct DataFileOptions {
  std::vector<std::string> targets;  // columns of a table; empty: the last
  int64_t batch_samples = 1;         // of a step
  uint64_t seed = 1;
};

struct DataFile {
  std::string name;  // for tables and messages
  std::unique_ptr<BatchSource> train, held_out;
};

// A relative path starts at the user's folder (tools/base/file.h).
absl::StatusOr<DataFile> OpenDataFile(absl::string_view option, absl::string_view path,
                                      const ModelGraph& graph, const DataFileOptions& options);

// Whether a source of these fields has all that the network reads: of its type and shape, ids below
// its limit. InvalidArgument names the first input that does not fit, and both sides.
absl::Status CheckFits(const ModelGraph& graph, const std::vector<DataField>& offered,
                       absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_DATA_FILE_H_
