// What the SALIENT paper and its artifact printed (salient.json), as types.
//
//   PIPELAB_ASSIGN_OR_RETURN(const SalientPaper paper, PublishedSalient());
//   paper.epochs[0].total_ms;                       // 1683.4: PyTorch Geometric, one GPU
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_SALIENT_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_SALIENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// An epoch on one GPU: the baseline's phases, one after the other, and SALIENT's total.
struct PublishedSalientEpoch {
  std::string data;
  int64_t targets = 0;  // training vertices
  double total_ms = 0, train_ms = 0, prepare_ms = 0, transfer_ms = 0, salient_ms = 0;
  std::string tag;
};

// 16 GPUs: two in each of 8 g5.24xlarge, which have A10G. The epochs on one GPU are a V100's.
struct PublishedSalientCluster {
  std::string data;
  int64_t targets = 0, parameters = 0;
  double seconds = 0;  // SALIENT's
  std::string tag;
};

struct SalientPaper {
  std::string paper;
  std::vector<PublishedSalientEpoch> epochs;
  int64_t batch = 0;
  int workers = 0;
  PublishedSalientCluster gpus16;
};

absl::StatusOr<SalientPaper> ParseSalientPaper(absl::string_view text, absl::string_view what);
absl::StatusOr<SalientPaper> PublishedSalient();  // of the file that comes with the project

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_SALIENT_H_
