// A training experiment: one network, or several, trained on real data under a pipeline scheme and
// judged on data that training never saw.
//
//   // experiments/train/dlrm_train.cc
//   absl::StatusOr<StudyWork> Load(const StudyRequest& request) { ... }      // data and networks
//
//   int RunDlrmTrainStudy(int argc, char** argv) {            // study_list.h
//     Study study;
//     study.name = "dlrm_train";
//     study.title = "DLRM on MovieLens";
//     study.defaults = {{"steps", "600"}, {"micro_batch_size", "64"}};
//     study.optimizer.adam.weight_decay = 0.01f;
//     study.load = Load;
//     return RunStudy(argc, argv, study);                     // run_study.h
//   }
//
// Honest numbers: what is held out is for the judge and the curve only. Settings are chosen with
// --validation, which asks the study to hold out a part of its training data in its place.
#ifndef PIPELAB_EXPERIMENTS_TRAIN_STUDY_H_
#define PIPELAB_EXPERIMENTS_TRAIN_STUDY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "models/layers/optimizer.h"
#include "models/layers/serial_trainer.h"

namespace pipelab {

// What the framework asks for.
struct StudyRequest {
  bool synthetic = false;     // generated data, in less than a second; never the real ones
  bool validation = false;    // hold out a part of the training data in place of the held-out part
  int64_t batch_samples = 1;  // of a training step, for ExampleOrder
  uint64_t seed = 1;
};

// One network to train.
struct StudyPart {
  // Lower case, digits and underscores: "fold_1", "image_alone". Empty where there is one part.
  std::string name;
  ModelGraph graph;
  std::shared_ptr<const BatchSource> train;
  // In turn (ExampleOrder(n)); its first `held_out_samples` samples make the held-out curve.
  std::shared_ptr<const BatchSource> held_out;
  int64_t held_out_samples = 0;
  // [layer] -> stage, for schemes that take a stage graph (BranchStages); empty: a chain.
  std::vector<int> parallel_stages;
  // What its checkpoint says beside the training's settings.
  std::map<std::string, std::string> settings;
  // Gives the network its values, in the place of training; empty: it is trained.
  std::function<absl::Status(SerialTrainer* network)> take_values;
  // Called once with the trained network; keeps what quality() needs.
  std::function<absl::Status(SerialTrainer* trained)> judge;
};

// What the networks are worth, beside baselines measured on the same held-out data in the same run.
struct Quality {
  struct Metric {
    std::string id;         // lower case, digits and underscores: "auc"
    std::string title;      // "area under the ROC curve"
    std::string unit = {};  // "%"; empty for pure numbers
    int decimals = 3;
  };
  struct Row {
    std::string name;                            // "DLRM", "user and item bias"
    std::vector<absl::optional<double>> values;  // [metric]; none: not measured
    std::string note = {};                       // under the table
  };
  struct Claim {
    std::string id;    // lower case, digits and underscores: "auc_over_biases"
    std::string text;  // without figures: "AUC above that of the bias model, on the same ratings"
    double ours = 0, other = 0;
    std::string accepted;  // "above 0.785"
    bool holds = false;
    std::string unit = {};
  };
  // Ours is above the other figure, or below it.
  static Claim Above(std::string id, std::string text, double ours, double other,
                     std::string unit = "");
  static Claim Below(std::string id, std::string text, double ours, double other,
                     std::string unit = "");

  std::string caption;  // "Likes among 9,993 held-out ratings"
  std::vector<Metric> metrics;
  std::vector<Row> rows;
  std::vector<Claim> claims;
  std::vector<std::string> notes;
};

// Data, networks and judges, loaded.
struct StudyWork {
  std::string data;  // "MovieLens (100,004 ratings by 671 users)", "synthetic ratings (...)"
  std::vector<std::string> notes;
  std::vector<StudyPart> parts;
  std::function<absl::StatusOr<Quality>()> quality;  // after every part was judged
};

struct Study {
  std::string name;     // of the target: "dlrm_train"
  std::string title;    // of the report
  std::string summary;  // what is trained on what, and what it must beat: --help and the report
  std::string loss_unit = "nats";
  // Flags of train_flags.h, or of the study's own file, whose default is another here. "steps" is
  // what the study's claims need.
  std::vector<std::pair<std::string, std::string>> defaults;
  // Flags under --quick; empty: the whole study is quick.
  std::vector<std::pair<std::string, std::string>> quick = {
      {"synthetic", "true"}, {"steps", "20"}, {"warmup_steps", "2"}, {"compare_steps", "2"}};
  OptimizerOptions optimizer;  // where its flags (optimizer_flags.h) say nothing else
  // The study's own flags, before anything is loaded; may be empty. InvalidArgument.
  std::function<absl::Status()> check;
  // Unavailable where the real data cannot be had. The synthetic data have the same form: options
  // are checked against their networks before the real ones are fetched.
  std::function<absl::StatusOr<StudyWork>(const StudyRequest&)> load;
};

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_STUDY_H_
