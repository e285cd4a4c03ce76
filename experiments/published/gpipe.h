// What the GPipe paper printed (gpipe.json), as types.
//
//   PIPELAB_ASSIGN_OR_RETURN(const GpipePaper paper, PublishedGpipe());
//   paper.largest_models[0].activation_memory;      // 6.26, in the family's unit
//
// Every value keeps its tag: "read" in the paper, "derived", ...
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_GPIPE_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_GPIPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// A column of Table 1. Memory in GB for "amoebanet", in GiB for "transformer", as 12 bytes a
// parameter tell.
struct PublishedLargestModel {
  std::string family, column;
  int64_t devices = 0;
  bool recompute = false;
  int64_t layers = 0, width = 0;
  double parameters = 0, parameter_memory = 0, activation_memory = 0;
  // Parameters with more digits: of AmoebaNet as torchgpipe counts them in the same nets; else as
  // printed.
  double counted = 0;
  std::string tag, note;
};

// Table 2 or 3 for one model: throughput normalised to the first cell.
struct PublishedThroughput {
  struct Row {
    int64_t micro_batches = 0;
    std::vector<double> normalised;  // [place in devices]
  };
  std::string family, table, cluster;
  int64_t layers = 0, width = 0;
  std::string tag;
  std::vector<int64_t> devices;
  std::vector<Row> rows;
};

// Shares of a step, in percent.
struct PublishedOverheads {
  double compute = 0, recompute = 0, bubble = 0, imbalance = 0, set_up = 0, update = 0;
  std::string tag;
};

struct GpipePaper {
  std::string paper;
  std::vector<PublishedLargestModel> largest_models;
  std::vector<PublishedThroughput> throughput;
  PublishedOverheads overheads;
};

absl::StatusOr<GpipePaper> ParseGpipePaper(absl::string_view text, absl::string_view what);
absl::StatusOr<GpipePaper> PublishedGpipe();  // of the file that comes with the project

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_GPIPE_H_
