// SALIENT's epochs at the paper's scale, simulated from the phases of its baseline's row, in which
// they follow one another: PyTorch Geometric's training, sampling and slicing, and transfer. Twenty
// workers prepare, one copy engine moves, one GPU trains. Nothing is taken from SALIENT's own row.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<PaperEpoch> epochs, PaperEpochs());
#ifndef PIPELAB_EXPERIMENTS_GRAPHS_PAPER_EPOCHS_H_
#define PIPELAB_EXPERIMENTS_GRAPHS_PAPER_EPOCHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "pipelines/graphs/graph_figures.h"
#include "pipelines/graphs/graph_training.h"

namespace pipelab {

struct PaperEpoch {
  std::string data;
  int gpus = 1;
  int workers = 20;            // of a GPU
  double baseline = 0;         // seconds, published
  double published = 0;        // SALIENT's seconds
  PreparationFigures figures;  // simulated
  double in_line = 0;          // simulated without overlap: the baseline's sum again
  double worker_slack = 0;     // how often a worker's time may be as long, and the GPU stays busy
};

// One V100 on three graphs; papers100M on 16 A10G in 8 machines too, whose gradients are summed by
// rings over 50 Gb/s links.
absl::StatusOr<std::vector<PaperEpoch>> PaperEpochs();

Table PaperTable(const std::vector<PaperEpoch>& epochs);
std::vector<Claim> PaperClaims(const std::vector<PaperEpoch>& epochs);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPHS_PAPER_EPOCHS_H_
