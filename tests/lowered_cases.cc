// Every scheme, in all its ways, with each option of Lower.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "pipelines/fill/fill_pass.h"
#include "pipelines/fill/gaps.h"
#include "pipelines/graphs/preparation.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/early_recompute.h"
#include "pipelines/schedules/guided_order.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/schedules/vocabulary.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "tests/prime_costs.h"
#include "tests/program_digests.h"
#include "tests/program_text.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// One way to lower a schedule; those of one line stand together in the golden file.
struct Variation {
  std::string line, name;
  int copies = 1;
  LoweringOptions lowering = {};
  bool recompute = false, timed = false;  // of the scheme
  bool early = false;                     // recomputes move into gaps
  bool ties = false;                      // two, of two and of three stages
  bool skips = false;                     // the stage graph also has edges over one stage
  bool fills = false;                     // other jobs in all gaps
  int members = 1;                        // Program::devices_per_member
};

class Variations {
 public:
  Variations() {
    Add("plain", "", 1);
    Add("recompute", "", 1).recompute = true;
    Variation& early = Add("recompute", "early", 1);
    early.recompute = early.early = true;
    Add("timed", "", 1).timed = true;
    Add("no_step", "", 1).lowering.step = false;
    Add("skips", "", 1).skips = true;
    Add("tied", "", 1).ties = true;
    Add("fills", "", 1).fills = true;
    AddSums();
    for (const Sharding sharding : {Sharding::kOptimizer, Sharding::kGradients, Sharding::kFully}) {
      AddSharding(sharding);
    }
    AddCalls();
    Add("slice_exchange", "", 1).lowering.slice_exchange = true;
  }
  const std::vector<Variation>& all() const { return all_; }

 private:
  Variation& Add(std::string line, std::string name, int copies) {
    Variation& v = all_.emplace_back();
    v.line = std::move(line);
    v.name = std::move(name);
    v.copies = copies;
    return v;
  }

  void AddSums() {
    Add("copies", "as it says", 3).ties = true;
    for (const bool eager : {false, true}) {
      Variation& v = Add("copies", eager ? "eager" : "at the end", 2);
      v.ties = true;
      v.lowering.eager_reductions = eager;
    }
    Variation& norm = Add("norm", "", 2);
    norm.ties = true;
    norm.lowering.norm_values = 1009;
    norm.lowering.norm_rounds = 2;
    Add("experts", "replicated", 4).lowering.expert_copies = 2;
  }

  void AddSharding(Sharding sharding) {
    const std::string line = ShardingName(sharding);
    const auto add = [&](const std::string& name, int copies) -> Variation& {
      Variation& v = Add(line, name, copies);
      v.lowering.sharding = sharding;
      return v;
    };
    for (const bool overlap : {false, true}) {
      const char* beside = overlap ? "beside " : "";
      add(absl::StrCat(beside, "all"), 2).lowering.overlap = overlap;
      Variation& sets = add(absl::StrCat(beside, "sets"), 4);
      sets.lowering.overlap = overlap;
      sets.lowering.shards = 2;
      if (!ShardsGradients(sharding)) continue;
      Variation& each = add(absl::StrCat(beside, "each"), 2);
      each.lowering.overlap = overlap;
      each.lowering.residency = Residency::kMicroBatch;
    }
    add("recompute", 2).recompute = true;
    add("members", 2).members = 2;
    Variation& norm = add("norm", 2);
    norm.lowering.norm_values = 1013;
    norm.ties = true;
    Variation& experts = Add("experts", line, 4);
    experts.lowering.sharding = sharding;
    experts.lowering.expert_copies = 2;
  }

  void AddCalls() {
    for (const auto& [name, calls] : {std::pair("one message", MessageCalls::kOneMessage),
                                      {"one neighbour", MessageCalls::kOneNeighbour},
                                      {"both neighbours", MessageCalls::kBothNeighbours}}) {
      for (const int copies : {1, 2}) {
        Variation& v = Add("calls", absl::StrCat(name, copies > 1 ? ", copies" : ""), copies);
        v.lowering.calls = calls;
        v.ties = copies > 1;
      }
    }
  }

  std::vector<Variation> all_;
};

constexpr int64_t kAllPrices = 150;  // actions: programs of more are simulated in fewer ways

// The ways to price a program; the smallest ones in all.
std::vector<PricesOf> PricesFor(const Program& program) {
  int64_t actions = 0;
  for (const std::vector<Action>& order : program.schedule.order) {
    actions += static_cast<int64_t>(order.size());
  }
  std::vector<PricesOf> prices = {PricesOf::kPlain};
  if (program.schedule.NumShapes() > 1) prices.push_back(PricesOf::kWholeParts);
  if (actions > kAllPrices) return prices;
  for (const PricesOf more :
       {PricesOf::kBlocking, PricesOf::kSteady, PricesOf::kAtWait, PricesOf::kSharedLinks}) {
    prices.push_back(more);
  }
  return prices;
}

absl::Status AddTrace(const Program& program, const CostTable& costs, bool levels,
                      CaseTexts* texts) {
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
  texts->spans += SpansText(program, trace);
  texts->memory += PeaksText(trace);
  if (levels) texts->memory += LevelsText(program, costs, trace);
  texts->traffic += TrafficText(trace);
  return absl::OkStatus();
}

absl::StatusOr<Program> WithFillsInAllGaps(Program program) {
  const CostTable costs = PrimeCosts(program, PricesOf::kPlain);
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<DeviceGaps> gaps,
                           FindGaps(program, costs, trace, /*device_memory=*/Bytes(1 << 30)));
  return WithFills(std::move(program), gaps);
}

absl::StatusOr<CaseTexts> TextsOf(const Program& program) {
  CaseTexts texts;
  texts.lists = ListsText(program);
  for (const PricesOf prices : PricesFor(program)) {
    const CostTable costs = PrimeCosts(program, prices);
    PIPELAB_RETURN_IF_ERROR(AddTrace(program, costs, prices == PricesOf::kPlain, &texts));
    if (prices != PricesOf::kSteady) continue;
    // Measured times in the place of costs.
    PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
    PIPELAB_ASSIGN_OR_RETURN(const CostTable measured, ReplayCosts(program, {trace}, costs));
    PIPELAB_RETURN_IF_ERROR(AddTrace(program, measured, /*levels=*/false, &texts));
  }
  return texts;
}

absl::StatusOr<CaseTexts> Lowered(Schedule schedule, const Variation& v) {
  LoweringOptions lowering = v.lowering;
  const int stages = schedule.num_stages(), last = stages - 1;
  if (v.early) {
    if (schedule.weights_travel || !schedule.stages.IsChain()) {
      return absl::InvalidArgumentError("recomputes move where stages are a chain and stay");
    }
    schedule = RecomputeInGaps(std::move(schedule), PassLengths::Unit(stages), /*ahead=*/1);
  }
  if (v.ties) lowering.ties = {{"ends", {0, last}}, {"all", {0, stages / 2, last}}};
  if (v.skips) {
    std::vector<StageGraph::Edge> edges = schedule.stages.edges;
    for (int s = 0; s + 2 < stages; s += 2) edges.push_back({s, s + 2});
    lowering.stages = StageGraph::FromEdges(stages, std::move(edges));
  }
  PIPELAB_ASSIGN_OR_RETURN(Program program, Lower(std::move(schedule), lowering));
  program.devices_per_member = v.members;
  if (v.fills) {
    PIPELAB_ASSIGN_OR_RETURN(program, WithFillsInAllGaps(std::move(program)));
  }
  return TextsOf(program);
}

// Stage graphs, groups of unequal sizes, and stages with micro-batches of their own.
std::vector<SchemeParams> GraphSizes(SchemeParams sizes) {
  std::vector<SchemeParams> all;
  const auto add = [&](int devices, int micro_batches, std::vector<std::vector<int>> groups,
                       std::vector<StageGraph::Edge> edges, std::vector<int32_t> counts,
                       int group_size) {
    sizes.devices = devices;
    sizes.micro_batches = micro_batches;
    sizes.stages = StageGraph::FromEdges(static_cast<int>(groups.size()), std::move(edges));
    sizes.devices_of_stage = std::move(groups);
    sizes.micro_batches_of_stage = std::move(counts);
    sizes.group_size = group_size;
    all.push_back(sizes);
  };
  add(3, 4, {{0}, {1}, {2}}, {{0, 2}, {1, 2}}, {}, 0);
  add(4, 4, {{0}, {1, 2}, {3}}, {{0, 2}, {1, 2}}, {4, 2, 1}, 0);
  add(4, 6, {{0}, {1}, {2}, {3}}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}, {}, 2);
  add(6, 4, {{0, 1}, {2}, {3, 4, 5}}, {{0, 1}, {1, 2}}, {}, 0);
  add(5, 8, {{0}, {1, 2}, {3, 4}}, {{0, 1}, {1, 2}, {0, 2}}, {8, 2, 8}, 0);
  add(4, 8, {{0}, {1}, {2}, {3}}, {{0, 1}, {1, 2}, {2, 3}}, {1, 2, 4, 8}, 0);
  add(4, 8, {{0}, {1}, {2}, {3}}, {{0, 1}, {1, 2}, {2, 3}}, {8, 4, 2, 2}, 2);
  return all;
}

std::vector<SchemeParams> ReplaySizes(SchemeParams sizes) {
  std::vector<SchemeParams> all;
  for (const std::vector<int32_t>& passes :
       std::vector<std::vector<int32_t>>{{4, 2, 3}, {2, 4}, {8, 3, 5, 8}}) {
    sizes.micro_batches_of_stage = passes;
    sizes.devices = static_cast<int>(passes.size());
    sizes.micro_batches = *std::max_element(passes.begin(), passes.end());
    for (sizes.group_size = 0; sizes.group_size <= 2; sizes.group_size += 2) all.push_back(sizes);
  }
  return all;
}

PassTimes UnequalTimes(int stages) {
  PassTimes times;
  for (int s = 0; s < stages; ++s) {
    times.forward.push_back(Nanoseconds(1009 + 12 * s));
    times.backward_input.push_back(Nanoseconds(1201 + 30 * s));
    times.backward_weight.push_back(Nanoseconds(701 + 18 * s));
  }
  times.hop = {Nanoseconds(53)};
  return times;
}

// All ways to run the scheme on some devices; plainly on more.
std::vector<SchemeParams> SizesOf(const Scheme& scheme, const Variation& v) {
  std::vector<SchemeParams> all;
  SchemeParams sizes;
  sizes.data_parallel = v.copies;
  sizes.recompute = v.recompute;
  VariantLimits limits;
  limits.halves = true;
  limits.max_stages = v.line == "plain" ? 32 : 12;
  std::vector<std::pair<int, int>> grids = {{2, 8}, {3, 6}, {4, 8}};
  if (v.line == "plain") grids.insert(grids.end(), {{1, 2}, {2, 4}, {4, 6}, {4, 16}, {8, 16}});
  for (const auto& [devices, micro_batches] : grids) {
    sizes.devices = devices;
    sizes.micro_batches = micro_batches;
    for (int barriers = 1; barriers <= (TakesVocabularyParts(scheme) ? 2 : 1); ++barriers) {
      if (TakesVocabularyParts(scheme)) {
        sizes.stages = VocabularyStages(devices, devices * scheme.default_virtual_stages, barriers);
      }
      for (SchemeParams& way : Variants(scheme, sizes, limits)) all.push_back(std::move(way));
      if (all.empty()) all.push_back(sizes);  // refused, or without variants
    }
    if ((scheme.options & kForwardsFirst) == 0) continue;
    all.push_back(sizes);
    all.back().forwards_first = true;
  }
  const bool own = (scheme.options & kStageMicroBatches) != 0;
  std::vector<SchemeParams> more;
  if (own) more = scheme.name == "graph" ? GraphSizes(sizes) : ReplaySizes(sizes);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string NameOf(const SchemeParams& p) {
  std::string name = absl::StrCat("P=", p.devices, ",M=", p.micro_batches);
  const auto add = [&](const char* key, int value) {
    if (value != 0) absl::StrAppend(&name, ",", key, "=", value);
  };
  add("V", p.virtual_stages);
  add("group", p.group_size);
  add("replicas", p.replicas);
  add("slices", p.slices);
  add("update", p.update_interval);
  if (p.concatenation != Concatenation::kDirect) {
    absl::StrAppend(&name, ",", ConcatenationName(p.concatenation));
  }
  if (p.forwards_first) absl::StrAppend(&name, ",forwards_first");
  if (!p.devices_of_stage.empty() || p.stages.num_stages() > 0) {
    absl::StrAppend(
        &name, ",edges=", absl::StrJoin(p.stages.edges, "+", [](std::string* out, const auto& e) {
          absl::StrAppend(out, e.from, "-", e.to);
        }));
  }
  if (!p.micro_batches_of_stage.empty()) {
    absl::StrAppend(&name, ",passes=", absl::StrJoin(p.micro_batches_of_stage, "+"));
  }
  return name;
}

std::string CaseName(const std::string& line, const Variation& v, const std::string& what) {
  return absl::StrCat(line, v.name.empty() ? "" : "/", v.name, "/", what);
}

void AddScheme(const Scheme& scheme, const Variation& v, std::vector<DigestCase>* cases) {
  const std::string name(scheme.name), line = absl::StrCat(name, "/", v.line);
  for (SchemeParams& sizes : SizesOf(scheme, v)) {
    cases->push_back(
        {CaseName(line, v, NameOf(sizes)), [name, sizes, v]() mutable -> absl::StatusOr<CaseTexts> {
           if (v.timed) {
             PIPELAB_ASSIGN_OR_RETURN(const int stages, NumStages(name, sizes));
             sizes.times = UnequalTimes(stages);
           }
           PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakeSchedule(name, sizes));
           return Lowered(std::move(schedule), v);
         }});
  }
}

struct NamedSchedule {
  std::string name;
  Schedule schedule;
};

// What no scheme has: any order of any graph, workers that prepare.
std::vector<NamedSchedule> OwnSchedules() {
  std::vector<NamedSchedule> all;
  int number = 0;
  for (const RandomShape& shape : Shapes()) {
    all.push_back({absl::StrCat("shape ", number), RandomOrder(shape, /*seed=*/number + 1)});
    ++number;
  }
  number = 0;
  for (Schedule& s : OtherSchedules()) {
    all.push_back({absl::StrCat("other ", number++), std::move(s)});
  }
  for (const PreparationSizes& sizes :
       {PreparationSizes{0, 2, 4}, {2, 2, 7}, {3, 1, 8, 2, true}, {2, 2, 6, 2}}) {
    absl::StatusOr<Schedule> s = MakePreparation(sizes);
    if (!s.ok()) continue;
    all.push_back(
        {absl::StrCat("workers ", sizes.workers, " copies ", sizes.copies), *std::move(s)});
  }
  return all;
}

}  // namespace

std::vector<DigestLine> LoweredLines() {
  const Variations variations;
  std::vector<DigestLine> lines;
  std::map<std::string, size_t> at;
  const auto line_of = [&](const std::string& name) -> std::vector<DigestCase>* {
    const auto [it, made] = at.emplace(name, lines.size());
    if (made) lines.push_back({name, {}});
    return &lines[it->second].cases;
  };
  for (const Scheme& scheme : Catalog()) {
    for (const Variation& v : variations.all()) {
      if (v.timed && (scheme.options & kPassTimes) == 0) continue;
      AddScheme(scheme, v, line_of(absl::StrCat(scheme.name, "/", v.line)));
    }
  }
  for (const NamedSchedule& own : OwnSchedules()) {
    for (const Variation& v : variations.all()) {
      if (v.copies > 1 && v.line != "fully") continue;
      if (v.recompute || v.timed) continue;  // the schedule's own
      const std::string line = absl::StrCat("own schedules/", v.line);
      line_of(line)->push_back(
          {CaseName(line, v, own.name), [own, v] { return Lowered(own.schedule, v); }});
    }
  }
  return lines;
}

}  // namespace pipelab
