// One model, several schemes: trains it under each and compares loss, time, bubble, memory and
// traffic. The study behind //experiments:quickstart.
#ifndef PIPELAB_EXPERIMENTS_TRAINING_COMPARISON_H_
#define PIPELAB_EXPERIMENTS_TRAINING_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/report/report.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/optimizer.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/runtime/training.h"

namespace pipelab {

// Steps at the end of training whose medians are replayed; those before warm up.
constexpr int kReplayedSteps = 20;

struct ComparisonOptions {
  std::vector<std::string> schemes;          // empty: all synchronous ones of the catalogue
  std::string schemes_option = "--schemes";  // where the user named them
  int devices = 4;
  int micro_batches = 8;
  int virtual_stages = 0;  // 0: each scheme's own
  int64_t micro_batch_size = 1;
  int steps = 200;
  uint64_t seed = 1;
  OptimizerOptions optimizer;
  std::string layout;
  // [layer] -> stage, one a device, for schemes that take a stage graph; empty: a chain as for the
  // others.
  std::vector<int> parallel_stages;
  std::string loss_unit = "nats/token";
  std::string curves_title = "Training loss";
  // Where the devices are; null: in this process. Of several processes all compare, and the first
  // one has the serial losses and whole traces.
  Transport* transport = nullptr;
  // Measures this machine's kernels in turns with the trainings, and predicts each step's time from
  // them. Not where devices are in several processes: the links between those are not measured.
  bool calibrate = false;
};

// What one scheme did.
struct SchemeResult {
  StepConfig config;
  std::vector<double> losses;  // [step], nats per token
  std::vector<Trace> traces;   // of the last steps
  Program program;
  ModelPartition partition;
  CostTable costs;  // of the simulated step
  Trace simulated, replayed;
  Nanoseconds predicted;  // step time on ComparisonResult::machine
  bool must_be_bit_equal = false;
  std::vector<int64_t> slices;  // tokens of each token slice; empty: whole samples
  int num_slices = 1;
  // Where the scheme adds in another order than the plain serial loop: the losses of a serial loop
  // that adds as it does, which sums each replica's micro-batches first, computes micro-batches
  // slice by slice, or adds the gradients of an output's consumers stage by stage; and the name of
  // these parts, "replica", "slice" or "stage". Empty elsewhere.
  std::vector<double> serial_by_part;
  std::string part;
  // The losses of a serial loop whose first values are the next larger numbers: how far rounding
  // alone takes a training. Empty where it was not asked.
  std::vector<double> rounded;
  // Where stages learn locally: those of the serial local-learning loop, which it is compared with.
  std::vector<double> local_losses;
  // Where devices compute layers together: AllowForDivision.
  int64_t tensor_terms = 0, rounded_parts = 0;
};

struct ComparisonResult {
  std::vector<double> serial_losses;
  std::vector<Nanoseconds> serial_times;
  std::vector<SchemeResult> schemes;
  absl::optional<ClusterSpec> machine;  // as measured here, with ComparisonOptions::calibrate
  Nanoseconds serial_predicted;         // step time on it
};

// The most that a scheme's loss may differ from the serial one, in nats, when its gradients are
// sums in another order. Reordering a sum of n terms changes it by at most (n - 1) epsilon times
// the sum of their magnitudes; a step's update, and with it the loss, moves by that share of
// itself; N steps add up. So the bound is N (n - 1) epsilon times the loss at the start (n:
// micro-batches, or all of their token slices; with tensor parallelism also SplitTerms). Parts that
// are rounded to bfloat16's 8 bits err by 2^-8 of themselves each, independently and around zero:
// n of them by sqrt(n) 2^-8, which CompareLosses allows a step on top.
double LossTolerance(int steps, int64_t terms, double first_loss);

// Terms of the sums that a tensor-parallel group takes part by part where one device takes them
// whole: a product sums over the dimension by which its weights are divided, forward (by rows) or
// backward (by columns), and products follow one another.
int64_t SplitTerms(const ModelGraph& graph);

// What losses may differ by besides, where devices compute layers together as `split` says: longer
// sums, and with bfloat16 activations more parts that are rounded.
void AllowForDivision(const ModelGraph& graph, const TensorParallel& split, bool bfloat16,
                      SchemeResult* scheme);

// How a scheme's losses compare with the serial ones: "bit-equal"; "within 3.1e-06
// (tolerance 1.9e-04)"; "within 3.1e-06; bit-equal by replica", where serial_by_part has the
// scheme's very bits, so that rounding is all that differs, however much training then amplifies
// it; or "DIFFERS by ...". Where `rounded` is there, a loss may also be up to kAmplified times as
// far from the serial one as those were until then: a training amplifies whatever differs, until
// thousands of steps later it shows in the second digit.
struct Equality {
  bool ok = false;
  double largest_difference = 0;  // nats
  std::string text;
};
constexpr double kAmplified = 16;
Equality CompareLosses(const SchemeResult& scheme, const std::vector<double>& serial);

// Internal, naming a scheme that does not train as serial training does.
absl::Status CheckEquality(const ComparisonResult& result);

// What can be refused before anything is trained: InvalidArgument naming the option for a scheme
// that does not exist or cannot serve the sizes, or a layout that does not fit the model.
absl::Status CheckComparison(const ModelGraph& graph, const ComparisonOptions& options);

// FailedPrecondition when the serial training diverges: there is nothing to compare with.
absl::StatusOr<ComparisonResult> Compare(const ModelGraph& graph, const BatchSource& batches,
                                         const ComparisonOptions& options);

// Which scheme has the shortest step, by how much, and which the least memory; empty where fewer
// than two were compared.
std::string ComparisonTakeaway(const ComparisonResult& result);

// Tables, timelines and loss curves of the result. `data` says in the tables what was trained on.
absl::Status AddToReport(const ComparisonOptions& options, absl::string_view data,
                         const ComparisonResult& result, Report* report);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAINING_COMPARISON_H_
