// What tests train on any devices: every scheme, small nets of every kind in pipelines, sharding,
// tensor- and context-parallel groups.
//
//   const TrainedJobs jobs;
//   for (const TrainedJob& job : jobs.all()) {
//     PipelineTraining::Create(*job.graph, *job.data, job.options) ...
//   }
//
// No GoogleTest here: device_schemes.h runs where there is none.
#ifndef PIPELAB_TESTS_TRAINED_JOBS_H_
#define PIPELAB_TESTS_TRAINED_JOBS_H_

#include <memory>
#include <string>
#include <vector>

#include "models/data/batch_source.h"
#include "models/data/text_batches.h"
#include "models/graph/layer_spec.h"
#include "models/layers/test_layers.h"
#include "pipelines/runtime/training.h"
#include "tests/small_gpt.h"

namespace pipelab {

struct TrainedJob {
  std::string name;  // "zb_h1", "1f1b on resnet"
  const ModelGraph* graph;
  const BatchSource* data;
  TrainingOptions options;
  bool quick = false;  // one of a few of each kind
};

// The networks and the list of what is trained.
class TrainedJobs {
 public:
  TrainedJobs();
  const std::vector<TrainedJob>& all() const { return jobs_; }

 private:
  void Add(std::string name, const ModelGraph& graph, const BatchSource& data,
           TrainingOptions options, bool quick = false);
  void AddSchemes();
  // Running statistics of batch normalisation, padded keys, masked targets, bags, pictures.
  void AddNets();
  void AddSharding();
  void AddTensorParallel();
  void AddContextParallel();

  const std::unique_ptr<TextBatchSource> text_ = SmallText();
  const ModelGraph tied_ = SmallGpt(/*tied=*/true), untied_ = SmallGpt(/*tied=*/false);
  const ModelGraph even_words_ = SmallGpt(/*tied=*/true, /*words_multiple=*/2);
  std::vector<ModelGraph> nets_;
  std::vector<std::unique_ptr<RandomData>> net_data_;
  std::vector<TrainedJob> jobs_;
};

}  // namespace pipelab

#endif  // PIPELAB_TESTS_TRAINED_JOBS_H_
