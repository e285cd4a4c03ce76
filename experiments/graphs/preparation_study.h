// Real trainings of graph networks with prepared batches: how well preparing hides behind training,
// and what the networks learn.
//
//   PIPELAB_ASSIGN_OR_RETURN(const OverlapRun run, MeasureOverlap(data, size));
//   PIPELAB_ASSIGN_OR_RETURN(const LearnedGraph learned, Learn(text, size));
#ifndef PIPELAB_EXPERIMENTS_GRAPHS_PREPARATION_STUDY_H_
#define PIPELAB_EXPERIMENTS_GRAPHS_PREPARATION_STUDY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "experiments/report/claim.h"
#include "experiments/report/table.h"
#include "models/data/text_graph.h"
#include "pipelines/graphs/graph_training.h"

namespace pipelab {

struct PreparationStudySize {
  int64_t batch = 1024;
  int64_t hidden = 256;
  int width = 128;      // of a vertex's row
  double rate = 0.003;  // Adam's
  double dropout = 0.2;
  int epochs = 12;  // of a network
  int steps = 0;    // of an epoch that is timed; 0: all
  int repeats = 3;  // of each timed epoch, of which the median counts
};

GraphTrainingOptions TrainingOf(const PreparationStudySize& size);

// One epoch, in line and with workers beside the trainer; seconds. All rows take turns, in rounds.
// What a row is compared with is of the same round, so that what slows the machine down for a while
// slows both; figures are medians over the rounds.
struct OverlapRun {
  struct Row {
    int workers = 0, depth = 1, threads = 1;  // threads: of the trainer
    bool first_come = false;
    double measured = 0, waiting = 0, queue = 0;
    double longer = 0;     // of preparing and training, in line with as many threads
    double simulated = 0;  // from the times of stages in line
    double replayed = 0;   // from its own times of stages; 0: not of one thread, or first come
    double over_longer = 0, replayed_over_simulated = 0;  // ratios of a round
  };
  std::string data;
  double prepare = 0, train = 0;  // processor time in line, of an epoch
  std::vector<Row> rows;          // the first is in line
  bool equal_losses = true;       // of all rows but those that take what comes first, to the bit
  // Simulated epochs of two workers, where preparing takes 2.4 times as long as training, as on the
  // paper's GPUs: in order and first come.
  double in_order = 0, first_come = 0;
};
absl::StatusOr<OverlapRun> MeasureOverlap(const GraphData& data, const PreparationStudySize& size);

struct LearnedGraph {
  std::string data;
  double largest_class = 0, neighbours = 0, naive_bayes = 0;  // shares of the held-out vertices
  double sampled = 0, whole = 0;
  std::vector<double> losses;  // by batch
  double seconds = 0;          // of training
};
absl::StatusOr<LearnedGraph> Learn(const TextGraph& text, const PreparationStudySize& size);

Table OverlapTable(const OverlapRun& run);
Table LearnedTable(const std::vector<LearnedGraph>& learned);
std::vector<Claim> OverlapClaims(const OverlapRun& run);
std::vector<Claim> LearnedClaims(const std::vector<LearnedGraph>& learned);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_GRAPHS_PREPARATION_STUDY_H_
