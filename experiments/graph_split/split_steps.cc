#include "experiments/graph_split/split_steps.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "kernels/comm/communicator.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/data/example_order.h"
#include "models/data/neighbour_sampler.h"
#include "models/data/split_sampler.h"
#include "models/layers/communicator_peers.h"
#include "models/layers/graph_peers.h"
#include "models/layers/graph_trainer.h"
#include "models/zoo/graph_network.h"
#include "pipelines/planners/graph_partition.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr uint64_t kSeed = 1;
constexpr absl::Duration kLimit = absl::Minutes(2);

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What all members of a width's run share.
struct Shared {
  const StepSize& size;
  const GraphData& data;
  const ModelGraph& network;
  const VertexOwners& owners;

  std::vector<int32_t> Batch(int64_t step) const {
    const ExampleOrder order(static_cast<int64_t>(data.train.size()), size.batch, kSeed,
                             "split/batch");
    std::vector<int32_t> batch;
    for (int64_t i = 0; i < size.batch; ++i) {
      batch.push_back(data.train[order.ExampleAt(step, i)]);
    }
    return batch;
  }
};

// One member's, of all steps.
struct MemberTimes {
  absl::Status status;
  std::vector<double> split, data;
  int64_t split_rows = 0, data_rows = 0;
  Bytes exchanged;
};

class Member {
 public:
  Member(const Shared& shared, Communicator* communicator)
      : shared_(shared),
        rank_(communicator->rank()),
        backend_(MakeCpuBackend(&arena_)),
        group_(communicator, Ranks(shared.size.members), kLimit),
        split_member_(&shared.data.graph, &shared.owners, rank_, shared.size.members,
                      shared.size.fanouts, kSeed),
        sampler_(&shared.data.graph, shared.size.fanouts, kSeed) {}

  absl::Status Run(MemberTimes* times) {
    GraphTrainerOptions options;
    options.data = &shared_.data;
    options.batch = shared_.size.batch;
    PIPELAB_ASSIGN_OR_RETURN(
        split_, GraphTrainer::Create(shared_.network, backend_.get(), &group_, options));
    PIPELAB_ASSIGN_OR_RETURN(
        data_, GraphTrainer::Create(shared_.network, backend_.get(), &group_, options));
    for (int step = 0; step <= shared_.size.steps; ++step) {
      PIPELAB_RETURN_IF_ERROR(SplitStep(step, times));
      PIPELAB_RETURN_IF_ERROR(DataStep(step, times));
    }
    return absl::OkStatus();
  }

 private:
  static std::vector<int> Ranks(int members) {
    std::vector<int> ranks;
    for (int m = 0; m < members; ++m) ranks.push_back(m);
    return ranks;
  }

  // The step's sum of gradients makes members end together.
  absl::Status Timed(GraphTrainer* trainer, const GraphPart& part, const SplitSample* split,
                     std::vector<double>* times) {
    const auto start = std::chrono::steady_clock::now();
    PIPELAB_RETURN_IF_ERROR(trainer->Step(part, split).status());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    times->push_back(took.count());
    return absl::OkStatus();
  }

  absl::Status SplitStep(int step, MemberTimes* times) {
    PIPELAB_ASSIGN_OR_RETURN(
        const SplitSample sample,
        SampleWithPeers(step, shared_.Batch(step), &split_member_, &group_, backend_.get()));
    times->split_rows += static_cast<int64_t>(sample.inputs.size());
    for (size_t b = 0; b < sample.blocks.size(); ++b) {
      const RowShuffle& shuffle = sample.blocks[b].shuffle;
      times->exchanged += GoBytes(shuffle, b == 0 ? shared_.data.width : shared_.size.hidden);
      if (b > 0) times->exchanged += ReturnBytes(shuffle, shared_.size.hidden);
    }
    return Timed(split_.get(), SplitPart(sample), &sample, &times->split);
  }

  absl::Status DataStep(int step, MemberTimes* times) {
    const std::vector<int32_t> batch = shared_.Batch(step);
    const size_t part = batch.size() / shared_.size.members;
    const GraphSample sample =
        sampler_.Sample(step, absl::MakeConstSpan(batch).subspan(part * rank_, part));
    times->data_rows += sample.blocks[0].num_sources();
    return Timed(data_.get(), WholePart(sample), nullptr, &times->data);
  }

  const Shared& shared_;
  const int rank_;
  Arena arena_;
  const std::unique_ptr<Backend> backend_;
  CommunicatorPeers group_;
  SplitMember split_member_;
  NeighbourSampler sampler_;
  std::unique_ptr<GraphTrainer> split_, data_;
};

absl::StatusOr<StepTimes> MeasureWidth(const Shared& shared) {
  const int members = shared.size.members;
  const auto communicators = MakeInProcessCommunicators(members, {});
  std::vector<MemberTimes> times(members);
  std::vector<std::thread> threads;
  for (int m = 0; m < members; ++m) {
    threads.emplace_back([&, m] {
      Member member(shared, communicators[m].get());
      times[m].status = member.Run(&times[m]);
      if (!times[m].status.ok()) communicators[m]->Abort(times[m].status);
    });
  }
  for (std::thread& thread : threads) thread.join();
  StepTimes result;
  result.width = shared.data.width;
  int64_t split_rows = 0, data_rows = 0;
  for (const MemberTimes& m : times) {
    PIPELAB_RETURN_IF_ERROR(m.status);
    split_rows += m.split_rows;
    data_rows += m.data_rows;
    result.exchanged_mib +=
        static_cast<double>(m.exchanged.value()) / (1 << 20) / (shared.size.steps + 1);
  }
  for (int step = 1; step <= shared.size.steps; ++step) {
    double split = 0, data = 0;
    for (const MemberTimes& m : times) {
      split = std::max(split, m.split[step]);
      data = std::max(data, m.data[step]);
    }
    result.split.push_back(split);
    result.data.push_back(data);
  }
  result.rows = static_cast<double>(data_rows) / static_cast<double>(split_rows);
  return result;
}

}  // namespace

double StepTimes::ratio() const { return Median(split) / Median(data); }

absl::StatusOr<std::vector<StepTimes>> MeasureSteps(const TextGraph& text, const StepSize& size) {
  std::vector<StepTimes> times;
  VertexOwners owners;
  for (int64_t width : size.widths) {
    const GraphData data = ToGraphData(text, static_cast<int>(width));
    if (owners.empty()) {
      PreSampling sampling;
      sampling.train = data.train;
      sampling.fanouts = size.fanouts;
      sampling.batch = size.batch;
      PIPELAB_ASSIGN_OR_RETURN(const PreSamples samples, SampleBefore(data.graph, sampling));
      PIPELAB_ASSIGN_OR_RETURN(owners, MakePartition(PartitionMethod::kPreSamples, data.graph,
                                                     samples, size.members, kSeed));
    }
    GraphNetworkConfig config;
    config.layers = static_cast<int>(size.fanouts.size());
    config.width = width;
    config.hidden = size.hidden;
    config.classes = data.classes;
    PIPELAB_ASSIGN_OR_RETURN(const ModelGraph network, BuildGraphNetwork(config));
    PIPELAB_ASSIGN_OR_RETURN(StepTimes of, MeasureWidth({size, data, network, owners}));
    times.push_back(std::move(of));
  }
  return times;
}

Table StepTable(const std::vector<StepTimes>& times, const StepSize& size) {
  Table t("steps", absl::StrCat("Steps of GraphSAGE on the theorem graph, batch ", size.batch,
                                ", on ", size.members, " threads: loading and computing"));
  t.AddKey("width");
  t.AddColumn({"data", "data-parallel", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"split", "split", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"ratio", "split over data-parallel", "", "x", Origin::kMeasured, 3});
  t.AddColumn({"rows", "rows data-parallel loads, over split", "", "x", Origin::kComputed, 2});
  t.AddColumn({"exchanged", "rows that split exchanges", "", "MiB", Origin::kComputed, 1});
  for (const StepTimes& of : times) {
    t.AddRow({Label(static_cast<double>(of.width)), Measured(Median(of.data)).WithSamples(of.data),
              Measured(Median(of.split)).WithSamples(of.split), Measured(of.ratio()),
              Computed(of.rows), Computed(of.exchanged_mib)});
  }
  return t;
}

std::vector<Claim> StepClaims(const std::vector<StepTimes>& times) {
  std::vector<Claim> claims;
  Claim step = OwnClaim("gsplit.real_step",
                        "loading and computing, split over data-parallel, rows 512 wide");
  step.unit = "x";
  for (const StepTimes& of : times) {
    if (of.width != 512) continue;
    Found(&step, Origin::kMeasured, of.ratio());
    MetIf(&step, of.ratio() <= 0.75, "at most 0.75 x",
          "two members have few vertices in common, and products of the same rows rule");
  }
  if (step.value.has_value()) claims.push_back(std::move(step));

  Claim even = OwnClaim("gsplit.break_even", "width of rows from which on split is the faster one");
  even.unit = "numbers";
  auto from = times.end();
  while (from != times.begin() && (from - 1)->ratio() < 1) --from;
  if (from == times.end()) {
    NotMade(&even, absl::StrFormat("split takes %.3f x at the widest, %d numbers",
                                   times.back().ratio(), times.back().width));
  } else {
    const bool narrowest = from == times.begin();
    Found(&even, Origin::kMeasured, static_cast<double>(from->width),
          absl::StrCat(narrowest ? "below " : "", from->width));
    MetIf(&even, from->width <= 512, "at most 512", "exchanges take longer than what is saved");
  }
  claims.push_back(std::move(even));
  return claims;
}

}  // namespace pipelab
