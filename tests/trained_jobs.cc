#include "tests/trained_jobs.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "models/layers/test_images.h"
#include "models/layers/test_nets.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {
namespace {

TrainingOptions OptionsOf(const std::string& scheme) {
  TrainingOptions options;
  options.config.scheme = scheme;
  options.config.pipeline = 4;
  options.config.micro_batches = 8;
  options.config.micro_batch_size = kSmallSamples;
  options.config.overlap_data = false;
  options.config.published_order = HasOption(scheme, kPassTimes);
  options.config.split_head = HasOption(scheme, kSplitBackward);
  options.optimizer = SmallAdam();
  options.wait_limit = absl::Seconds(60);
  return options;
}

}  // namespace

TrainedJobs::TrainedJobs() {
  AddSchemes();
  AddNets();
  AddSharding();
  AddTensorParallel();
  AddContextParallel();
}

void TrainedJobs::Add(std::string name, const ModelGraph& graph, const BatchSource& data,
                      TrainingOptions options, bool quick) {
  jobs_.push_back({std::move(name), &graph, &data, std::move(options), quick});
}

void TrainedJobs::AddSchemes() {
  const std::set<std::string> quick = {"1f1b", "zb_h1", "chimera", "terapipe", "pipedream"};
  for (const Scheme& scheme : Catalog()) {
    const std::string name(scheme.name);
    if (!MakeSchedule(name, SchemeSizes(OptionsOf(name).config)).ok()) continue;
    if ((scheme.options & kForwardOnly) != 0) continue;  // inference_test.cc
    Add(name, scheme.asynchronous ? untied_ : tied_, *text_, OptionsOf(name),
        quick.count(name) > 0);
  }
}

void TrainedJobs::AddNets() {
  nets_ = SmallNets(/*dropout=*/0.1, Activation::kRelu);
  for (const auto& make : {&SmallAmoebaNet, &SmallUNet, &SmallResNet, &SmallVgg}) {
    nets_.push_back(make().graph);
  }
  for (const ModelGraph& net : nets_) {
    net_data_.push_back(std::make_unique<RandomData>(TestFieldsOf(net)));
    TrainingOptions options = OptionsOf("1f1b");
    options.config.pipeline = 3;
    options.config.micro_batches = 4;
    Add(absl::StrCat("1f1b on ", net.name), net, *net_data_.back(), options, net.name == "resnet");
  }
}

void TrainedJobs::AddSharding() {
  for (const auto& [name, sharding] : {std::make_pair("optimizer", Sharding::kOptimizer),
                                       std::make_pair("fully", Sharding::kFully)}) {
    TrainingOptions options = OptionsOf("1f1b");
    options.config.pipeline = 2;
    options.config.data = 2;
    options.config.micro_batch_size = kSmallSamples / 2;
    options.config.sharding = sharding;
    Add(absl::StrCat("1f1b, data-parallel 2, sharded: ", name), tied_, *text_, options);
  }
}

void TrainedJobs::AddTensorParallel() {
  for (const bool sequence : {false, true}) {
    TrainingOptions options = OptionsOf("1f1b");
    options.config.pipeline = 2;
    options.config.tensor = 2;
    options.config.sequence_parallel = sequence;
    Add(absl::StrCat("1f1b, tensor-parallel 2", sequence ? ", sequence-parallel" : ""), even_words_,
        *text_, options);
  }
}

void TrainedJobs::AddContextParallel() {
  for (const auto& [name, exchange] : {std::make_pair("gathered", ContextExchange::kGather),
                                       std::make_pair("round a ring", ContextExchange::kRing),
                                       std::make_pair("by heads", ContextExchange::kHeads)}) {
    TrainingOptions options = OptionsOf("1f1b");
    options.config.pipeline = options.config.context = 2;
    options.config.context_exchange = exchange;
    Add(absl::StrCat("1f1b, context-parallel 2, ", name), tied_, *text_, options,
        /*quick=*/exchange == ContextExchange::kRing);
  }
}

}  // namespace pipelab
