#include "pipelines/graphs/graph_step_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/graph/layer_spec.h"
#include "models/specs/graph_conv_spec.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cluster/rank_network.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A neighbour's id: a read of 32 bytes over PCIe, of which 0.385 of the rate of copies remains (4.7
// of 12.3 GB/s: Min et al., "EMOGI", VLDB 2020, recalled).
constexpr double kBytesOfDraw = 32 / 0.385;
// Numbers that a device reads and writes for an id that is drawn: the id, a table's place to look
// up and to set, each a sector, and the lists.
constexpr int64_t kNumbersADraw = 3 * 8 + 4;

LayerSpec SpecOf(const GraphLayerShape& s) {
  return GraphConvSpec({.name = "",
                        .kind = s.heads > 0 ? GraphConvKind::kGat : GraphConvKind::kSage,
                        .counts = s.block,
                        .in = s.in,
                        .out = s.out,
                        .heads = std::max<int64_t>(s.heads, 1),
                        .input_gradient = s.needs_inputs});
}

// Times of one step.
class Pricer {
 public:
  Pricer(const GraphStep& counts, const GraphSetUp& set_up, const GraphMachine& machine,
         Network network)
      : counts_(counts), set_up_(set_up), machine_(machine), network_(std::move(network)) {}

  absl::StatusOr<GraphStepTime> Time() {
    GraphStepTime time;
    PIPELAB_ASSIGN_OR_RETURN(time.sample, Sampling());
    PIPELAB_ASSIGN_OR_RETURN(time.load, Loading());
    for (int64_t l = 0; l < set_up_.layers(); ++l) {
      PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds out, RowExchange(counts_.forward[l]));
      PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds back, RowExchange(counts_.backward[l]));
      PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds work, Layer(l));
      time.exchange += out + back;
      time.train += work + out + back;
    }
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds update, Update());
    time.train += update;
    return time;
  }

 private:
  const DeviceSpec& device() const { return machine_.devices->device; }

  absl::StatusOr<Nanoseconds> Run(const std::vector<Operation>& operations) const {
    return RunTime(device(), NumberType::kFp32, operations);
  }

  Nanoseconds Exchange(const ByteMatrix& bytes) const {
    if (bytes.empty() || set_up_.all() == 1) return Nanoseconds(0);
    const auto& call = device().collective_overhead;
    return ExchangeTime(network_, bytes) + (call.has_value() ? call->value : Nanoseconds(0));
  }

  // Rows are gathered into what is sent, and what comes is put, or added, where it belongs.
  absl::StatusOr<Nanoseconds> RowExchange(const ByteMatrix& bytes) const {
    if (bytes.empty()) return Nanoseconds(0);
    const auto n = static_cast<size_t>(set_up_.all());
    int64_t most = 0;
    for (size_t m = 0; m < n; ++m) {
      int64_t numbers = 0;
      for (size_t j = 0; j < n; ++j) numbers += (bytes[m * n + j] + bytes[j * n + m]) / 4;
      most = std::max(most, numbers);
    }
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds copies,
                             Run({ElementwiseOperation(most), ElementwiseOperation(most)}));
    return copies + Exchange(bytes);
  }

  // Members of a unit that share a way to the host take their parts of it, all at one time.
  Nanoseconds FromHost(const std::vector<double>& bytes) const {
    double slowest = 0;
    for (size_t level = 0; level < machine_.host->levels.size(); ++level) {
      const bool shared = machine_.host->levels[level].sharing == Sharing::kUnit;
      const int64_t together = shared ? machine_.host->devices_in(static_cast<int>(level) - 1) : 1;
      const double rate = machine_.host->levels[level].connection.bandwidth.value.value();
      for (size_t first = 0; first < bytes.size(); first += together) {
        double sum = 0;
        for (size_t m = first; m < std::min<size_t>(first + together, bytes.size()); ++m) {
          sum += bytes[m];
        }
        slowest = std::max(slowest, sum / rate);
      }
    }
    return Nanoseconds(std::llround(slowest * 1e9)) +
           machine_.host->levels[0].connection.latency.value;
  }

  absl::StatusOr<Nanoseconds> Sampling() const {
    Nanoseconds time;
    for (int64_t hop = 0; hop < set_up_.layers(); ++hop) {
      std::vector<double> bytes;
      Nanoseconds slowest;
      for (const GraphWork& work : counts_.members) {
        const BlockCounts& drawn = work.drawn[hop];
        bytes.push_back(kBytesOfDraw * static_cast<double>(drawn.edges + drawn.targets));
        // Draw; insert into the table; number what is new; translate ids.
        const int64_t part = drawn.edges * kNumbersADraw / 4;
        PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds run,
                                 Run(std::vector<Operation>(4, ElementwiseOperation(part))));
        slowest = std::max(slowest, run);
      }
      // The host reads how many are new before the next hop.
      time += FromHost(bytes) + slowest + LaunchGap(device());
    }
    for (const ByteMatrix& bytes : counts_.sampling) {
      // Counts go before ids.
      time += Exchange(bytes) + Exchange(ByteMatrix(bytes.size())) + LaunchGap(device());
    }
    return time;
  }

  absl::StatusOr<Nanoseconds> Loading() const {
    std::vector<double> bytes;
    Nanoseconds copies;
    for (const GraphWork& work : counts_.members) {
      bytes.push_back(static_cast<double>(work.host_rows * counts_.row_bytes));
      const int64_t own = work.own_rows * counts_.row_bytes / 4;
      PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds copy, Run({ElementwiseOperation(2 * own)}));
      copies = std::max(copies, copy);
    }
    const bool any = *std::max_element(bytes.begin(), bytes.end()) > 0;
    const bool peers = *std::max_element(counts_.loading.begin(), counts_.loading.end()) > 0;
    return copies + (any ? FromHost(bytes) : Nanoseconds(0)) +
           (peers ? Exchange(counts_.loading) : Nanoseconds(0));
  }

  GraphLayerShape Shape(int64_t layer, const BlockCounts& block) const {
    const int64_t columns = layer == 0 ? counts_.first_columns : 1;
    return {block, set_up_.inputs_of(layer) / columns, set_up_.outputs_of(layer),
            set_up_.heads_of(layer), layer > 0};
  }

  absl::StatusOr<Nanoseconds> Layer(int64_t layer) const {
    Nanoseconds slowest;
    for (const GraphWork& work : counts_.members) {
      Nanoseconds sum;
      for (const BlockCounts& block : work.layers[layer]) {
        const LayerOperations operations = GraphLayerOperations(Shape(layer, block));
        for (const auto& pass :
             {operations.forward, operations.backward_input, operations.backward_weight}) {
          PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds run, Run(pass));
          sum += run;
        }
      }
      slowest = std::max(slowest, sum);
    }
    return slowest;
  }

  // A ring over all members, then Adam: value, gradient and two moments read, all but the gradient
  // written.
  absl::StatusOr<Nanoseconds> Update() const {
    int64_t parameters = 0;
    for (int64_t l = 0; l < set_up_.layers(); ++l) {
      for (const ParameterSpec& p : SpecOf(Shape(l, BlockCounts())).parameters) {
        parameters += p.size();
      }
    }
    Nanoseconds ring;
    if (set_up_.all() > 1) {
      const PathCost step = RingStep(*machine_.devices, {set_up_.all(), 1});
      ring = RingTime(step, set_up_.all(), Collective::kAllReduce, Bytes(4 * parameters));
      if (device().collective_overhead.has_value()) ring += device().collective_overhead->value;
    }
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds adam,
                             Run({MemoryOperation(OperationKind::kOptimizer, 7 * parameters)}));
    return ring + adam;
  }

  const GraphStep& counts_;
  const GraphSetUp& set_up_;
  const GraphMachine& machine_;
  const Network network_;
};

// GraphSAGE whose rows become narrower: W x of all sources, and then the mean.
LayerOperations NarrowSageOperations(const GraphLayerShape& s) {
  LayerOperations ops;
  const int64_t t = s.block.targets, rows = s.block.sources;
  const int64_t edges = s.block.edges * (s.out + 1);
  AddElementwise(edges + t * s.out, edges + s.block.edges + rows * s.out, &ops);
  for (int64_t m : {t, rows}) {
    ops.forward.push_back(MatmulOperation(m, s.out, s.in));
    if (s.needs_inputs) ops.backward_input.push_back(InputGradientOperation(m, s.out, s.in));
    ops.backward_weight.push_back(WeightGradientOperation(m, s.out, s.in));
  }
  AddMemory(OperationKind::kActivation, 2 * t * s.out, 3 * t * s.out, &ops);
  return ops;
}

}  // namespace

LayerOperations GraphLayerOperations(const GraphLayerShape& shape) {
  if (shape.block.targets == 0) return LayerOperations();
  if (shape.heads == 0 && shape.in > shape.out) return NarrowSageOperations(shape);
  return SpecOf(shape).operations(1, TokenSlice());
}

Nanoseconds ExchangeTime(const Network& network, const ByteMatrix& bytes) {
  std::vector<double> loads(network.links.size());
  Nanoseconds latency;
  const int n = network.num_devices;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      const auto sent = static_cast<double>(bytes[from * n + to]);
      if (from == to) continue;
      const Route& route = network.RouteOf(from, to);
      latency = std::max(latency, CostOfPath(network, from, to).latency);
      for (const LinkUse& use : route.uses) loads[use.link] += use.load * sent;
    }
  }
  Nanoseconds slowest;
  for (size_t i = 0; i < loads.size(); ++i) {
    slowest = std::max(slowest, TransferTime(loads[i], network.links[i].bandwidth));
  }
  return latency + slowest;
}

absl::StatusOr<GraphStepTime> TimeOfStep(const GraphStep& counts, const GraphSetUp& set_up,
                                         const GraphMachine& machine) {
  PIPELAB_ASSIGN_OR_RETURN(Network network, MakeNetwork(*machine.devices, set_up.all()));
  return Pricer(counts, set_up, machine, std::move(network)).Time();
}

}  // namespace pipelab
