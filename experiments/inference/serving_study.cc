#include "experiments/inference/serving_study.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/files/model_file.h"
#include "pipelines/analysis/arrivals.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/ir/program.h"
#include "pipelines/serving/pass_costs.h"
#include "pipelines/serving/pass_plan.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kUse = 0.95;
constexpr int64_t kChunk = 128;

// A decoding pass of so many slots, in the middle of a request.
std::vector<TokenRun> TypicalPass(const ServingSize& size, int slots) {
  std::vector<TokenRun> runs;
  for (int s = 0; s < slots; ++s) runs.push_back({s, size.prompt + size.output / 2, 1, true});
  return runs;
}

// Lengths from half to one and a half times the mean; or all the same.
std::vector<Request> Requests(const ServingSize& size, bool equal, double per_second) {
  const CounterRng rng(size.seed, "lengths");
  std::vector<Nanoseconds> arrivals(size.requests);
  if (per_second > 0) arrivals = RandomArrivals(size.requests, per_second, size.seed);
  uint64_t n = 0;
  const auto length = [&](int64_t mean) {
    const auto spread = static_cast<int64_t>(rng.Below(n++, static_cast<uint64_t>(mean) + 1));
    return equal ? mean : mean - mean / 2 + spread;
  };
  std::vector<Request> requests;
  for (int r = 0; r < size.requests; ++r) {
    Request& request = requests.emplace_back();
    request.arrival = arrivals[r];
    request.prompt = length(size.prompt);
    request.output = length(size.output);
  }
  return requests;
}

// Tokens of a slot's cache, for all requests of the study.
int64_t CacheTokens(const ServingSize& size) {
  int64_t most = 2 * (size.prompt + size.output);
  for (const Request& r : size.given) most = std::max(most, r.prompt + r.output);
  return most;
}

class Simulator {
 public:
  static absl::StatusOr<Simulator> Make(const ServingSize& size) {
    Simulator made;
    made.size_ = size;
    const std::string model = absl::StrCat(size.model, "@", CacheTokens(size));
    PIPELAB_ASSIGN_OR_RETURN(made.graph_, FindModel("--model", model));
    PrintNotes(made.graph_);
    PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, LoadCluster("--cluster", size.cluster));
    made.options_.machine = {cluster.device, NumberType::kBf16};
    made.options_.link = {cluster.levels[0].connection.latency.value,
                          cluster.levels[0].connection.bandwidth.value};
    return made;
  }

  absl::StatusOr<ServingRow> Run(ServingRow row, const std::vector<Request>& requests,
                                 ServingOptions serving) const {
    ServingCostOptions options = options_;
    options.int4_group = row.int4_group;
    PIPELAB_ASSIGN_OR_RETURN(
        const ModelPartition partition,
        CutForPass(graph_, row.devices, options, TypicalPass(size_, row.slots)));
    PIPELAB_ASSIGN_OR_RETURN(const ServingCosts costs,
                             ServingCosts::Make(graph_, partition, options));
    serving.devices = row.devices;
    serving.groups = row.groups;
    serving.slots = row.slots;
    serving.cache_tokens = CacheTokens(size_);
    const ServingTimes times = costs.Times();
    PIPELAB_ASSIGN_OR_RETURN(const PassPlan plan, PlanPasses(requests, serving, times));
    PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(PassSchedule(plan), {}));
    PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs.Table(plan)));
    PIPELAB_ASSIGN_OR_RETURN(row.figures, FiguresOf(plan, program, trace));
    for (int s = 0; s < row.devices; ++s) {
      row.caches = std::max(row.caches, costs.CacheBytes(s, serving));
      row.weights = std::max(row.weights, costs.WeightBytes(s));
    }
    return row;
  }

 private:
  ServingSize size_;
  ModelGraph graph_;
  ServingCostOptions options_;
};

ServingRow RowOf(std::string what, int devices, int groups, int slots, int64_t int4_group = 0) {
  ServingRow row;
  row.what = std::move(what);
  row.devices = devices;
  row.groups = groups;
  row.slots = slots;
  row.int4_group = int4_group;
  return row;
}

absl::Status SimulateUse(const Simulator& simulator, ServingStudy* study) {
  // Each slot has the same number of requests, all alike, so that nothing but the groups decides.
  for (const int devices : {1, 2, 4, 8}) {
    for (const int groups : {1, 2, devices, 2 * devices}) {
      if (groups > 2 && groups < devices) continue;
      const bool known = std::any_of(
          study->use.begin(), study->use.end(),
          [&](const ServingRow& r) { return r.devices == devices && r.groups == groups; });
      if (known) continue;
      ServingSize size = study->size;
      size.requests = groups * 8;
      size.output *= 4;
      PIPELAB_ASSIGN_OR_RETURN(
          study->use.emplace_back(),
          simulator.Run(RowOf("", devices, groups, 8), Requests(size, /*equal=*/true, 0), {}));
    }
  }
  return absl::OkStatus();
}

absl::Status SimulatePolicies(const Simulator& simulator, ServingStudy* study) {
  const ServingSize& size = study->size;
  const std::vector<Request> unequal = Requests(size, /*equal=*/false, 0);
  for (const bool continuous : {false, true}) {
    ServingOptions serving;
    serving.continuous = continuous;
    PIPELAB_ASSIGN_OR_RETURN(
        study->batching.emplace_back(),
        simulator.Run(RowOf(continuous ? "continuous" : "static", 4, 4, 8), unequal, serving));
  }
  // Loads as shares of what the pipeline can do at the most.
  const double most =
      study->batching.back().figures.tokens_per_second / static_cast<double>(size.output);
  const bool given = !size.given.empty();
  for (const double share : given ? std::vector<double>{0} : std::vector<double>{0.5, 0.8}) {
    const std::vector<Request> arriving =
        given ? size.given : Requests(size, /*equal=*/false, share * most);
    for (const int64_t chunk : {int64_t{0}, kChunk}) {
      ServingOptions serving;
      serving.chunk = chunk;
      ServingRow row = RowOf(chunk == 0 ? "whole" : absl::StrCat("chunks of ", chunk), 4, 4, 8);
      row.load = share;
      PIPELAB_ASSIGN_OR_RETURN(study->prompts.emplace_back(),
                               simulator.Run(row, arriving, serving));
    }
  }
  for (const int slots : {1, 4, 16, 64}) {
    for (const int64_t group : {0, 128}) {
      ServingSize enough = size;
      enough.requests = 4 * slots * 2;
      PIPELAB_ASSIGN_OR_RETURN(
          study->weights.emplace_back(),
          simulator.Run(RowOf(group == 0 ? "bf16" : "int4", 4, 4, slots, group),
                        Requests(enough, /*equal=*/true, 0), {}));
    }
  }
  return absl::OkStatus();
}

Cell Ms(Nanoseconds time) { return Simulated(ToMs(time)); }

void AddFigureColumns(Table* t) {
  t->AddColumn({"tokens", "tokens", "", "1/s", Origin::kSimulated, 0});
  t->AddColumn({"use", "device use", "", "%", Origin::kSimulated, 1});
  t->AddColumn({"first", "first token, median", "", "ms", Origin::kSimulated, 1});
  t->AddColumn({"first_p99", "99th percentile", "", "ms", Origin::kSimulated, 1});
  t->AddColumn({"between", "between tokens, median", "", "ms", Origin::kSimulated, 2});
  t->AddColumn({"between_p99", "99th percentile of it", "", "ms", Origin::kSimulated, 2});
  t->AddColumn({"latency", "whole request, median", "request", "s", Origin::kSimulated, 2});
  t->AddColumn({"latency_p99", "99th percentile of requests", "", "s", Origin::kSimulated, 2});
}

std::vector<Cell> FigureCells(const ServingFigures& f) {
  return {Simulated(f.tokens_per_second),
          Simulated(ToPercent(f.device_use)),
          Ms(f.first_token.median),
          Ms(f.first_token.p99),
          Ms(f.between_tokens.median),
          Ms(f.between_tokens.p99),
          Simulated(ToSeconds(f.latency.median)),
          Simulated(ToSeconds(f.latency.p99))};
}

void AddRow(std::vector<Cell> keys, const ServingRow& row, Table* t) {
  const std::vector<Cell> figures = FigureCells(row.figures);
  keys.insert(keys.end(), figures.begin(), figures.end());
  t->AddRow(std::move(keys));
}

Cell Number(int value) { return Label(static_cast<double>(value)); }

}  // namespace

absl::StatusOr<ServingStudy> SimulateServing(const ServingSize& size) {
  ServingStudy study;
  study.size = size;
  PIPELAB_ASSIGN_OR_RETURN(const Simulator simulator, Simulator::Make(size));
  PIPELAB_RETURN_IF_ERROR(SimulateUse(simulator, &study));
  PIPELAB_RETURN_IF_ERROR(SimulatePolicies(simulator, &study));
  return study;
}

std::vector<Table> ServingTables(const ServingStudy& study) {
  const ServingSize& size = study.size;
  std::vector<Table> tables;
  Table use("device_use", absl::StrCat(size.model, " on ", size.cluster,
                                       ": stages and groups of 8 requests alike, of ", size.prompt,
                                       " + ", 4 * size.output, " tokens"));
  use.AddKey("devices");
  use.AddKey("groups");
  AddFigureColumns(&use);
  for (const ServingRow& row : study.use) {
    AddRow({Number(row.devices), Number(row.groups)}, row, &use);
  }
  tables.push_back(std::move(use));
  Table batching("batching", absl::StrCat(size.requests,
                                          " requests of unequal lengths, 4 stages, 4 "
                                          "groups of 8: static and continuous batching"));
  batching.AddKey("batching");
  AddFigureColumns(&batching);
  for (const ServingRow& row : study.batching) AddRow({Label(row.what)}, row, &batching);
  tables.push_back(std::move(batching));
  Table prompts("prompts", "The same requests as they arrive: prompts whole and in chunks");
  prompts.AddKey("load");
  prompts.AddKey("prompts");
  AddFigureColumns(&prompts);
  for (const ServingRow& row : study.prompts) {
    AddRow(
        {Label(row.load == 0 ? "file" : absl::StrCat(ToPercent(row.load), " %")), Label(row.what)},
        row, &prompts);
  }
  prompts.AddNote(
      "Load: requests a second, as a share of those that continuous batching gets through. Chunks "
      "shrink as the prompt in front of them grows.");
  tables.push_back(std::move(prompts));
  Table weights("weights", "Weights of 2 bytes and in 4 bits, 4 stages and 4 groups");
  weights.AddKey("slots");
  weights.AddKey("weights");
  AddFigureColumns(&weights);
  weights.AddColumn({"weight_bytes", "weights, fullest stage", "", "GiB", Origin::kComputed, 2});
  weights.AddColumn({"cache_bytes", "caches, fullest stage", "", "GiB", Origin::kComputed, 2});
  for (const ServingRow& row : study.weights) {
    std::vector<Cell> cells = {Number(row.slots), Label(row.what)};
    const std::vector<Cell> figures = FigureCells(row.figures);
    cells.insert(cells.end(), figures.begin(), figures.end());
    cells.push_back(Computed(ToGiB(row.weights)));
    cells.push_back(Computed(ToGiB(row.caches)));
    weights.AddRow(std::move(cells));
  }
  weights.AddNote("Groups of 128 rows. The head stays in 2 bytes.");
  tables.push_back(std::move(weights));
  return tables;
}

std::vector<Claim> ServingClaims(const ServingStudy& study) {
  std::vector<Claim> claims;
  Claim use = OwnClaim("decode.device_use", "device use with as many groups as stages, 2 to 8");
  use.unit = "%";
  double least = 1;
  for (const ServingRow& row : study.use) {
    if (row.devices > 1 && row.groups == row.devices) {
      least = std::min(least, row.figures.device_use);
    }
  }
  Found(&use, Origin::kSimulated, ToPercent(least));
  MetIf(&use, least >= kUse, "at least 95 %",
        "stages are whole layers, and cannot be cut into parts that take the same time");
  claims.push_back(std::move(use));
  Claim batching =
      OwnClaim("decode.continuous", "tokens a second of continuous over static batching");
  batching.unit = "x";
  const double gain =
      study.batching[1].figures.tokens_per_second / study.batching[0].figures.tokens_per_second;
  Found(&batching, Origin::kSimulated, gain);
  MetIf(&batching, gain > 1, "above 1 x",
        "requests of so nearly equal lengths leave few free slots");
  claims.push_back(std::move(batching));
  Claim chunks = OwnClaim("decode.chunks",
                          "99th percentile between tokens, prompts in chunks over whole ones, at "
                          "the highest load");
  chunks.unit = "x";
  const size_t last = study.prompts.size() - 1;
  const double ratio =
      static_cast<double>(study.prompts[last].figures.between_tokens.p99.value()) /
      static_cast<double>(study.prompts[last - 1].figures.between_tokens.p99.value());
  Found(&chunks, Origin::kSimulated, ratio);
  MetIf(&chunks, ratio < 1, "below 1 x",
        "prompts are so short that a whole one takes no longer than a chunk");
  claims.push_back(std::move(chunks));
  Claim int4 = OwnClaim("decode.int4", "tokens a second of 4-bit over 2-byte weights, one slot");
  int4.unit = "x";
  const double over =
      study.weights[1].figures.tokens_per_second / study.weights[0].figures.tokens_per_second;
  Found(&int4, Origin::kSimulated, over);
  MetIf(&int4, over >= 2, "at least 2 x", "heads and launches do not shrink with the weights");
  claims.push_back(std::move(int4));
  return claims;
}

}  // namespace pipelab
