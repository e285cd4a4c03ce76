#include "experiments/elastic/swarm_study.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/cluster.h"
#include "pipelines/cluster/device.h"
#include "pipelines/cluster/network.h"
#include "pipelines/cost/layer_times.h"
#include "pipelines/swarm/swarm_costs.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kWidths[] = {768, 4096, 12288};
constexpr int kDelays[] = {0, 10, 50, 100, 200};  // ms

constexpr Nanoseconds Seconds(int64_t n) { return Milliseconds(1000 * n); }

struct Place {
  Machine machine;
  PathCost link;
};

absl::StatusOr<Place> PlaceOf(const std::string& name) {
  PIPELAB_ASSIGN_OR_RETURN(const ClusterSpec cluster, LoadCluster("--cluster", name));
  const auto& connection = cluster.levels.back().connection;
  return Place{{cluster.device, NumberType::kFp16},
               {connection.latency.value, connection.bandwidth.value}};
}

struct Rule {
  const char* name;
  JoinRule joining;
  Nanoseconds every;
};

absl::Status SimulateRebalancing(const Place& place, SwarmStudy* study) {
  const SwarmStudySize& size = study->size;
  BlockStageSizes sizes;
  sizes.blocks = 3;
  sizes.hidden = 4096;
  sizes.samples = size.samples;
  PIPELAB_ASSIGN_OR_RETURN(SwarmStage stage, BlockStage(sizes, place.machine));
  // Beside compute, and not what these tables are about.
  for (SwarmPass* pass : {&stage.forward, &stage.backward}) pass->request = pass->result = Bytes(0);
  SwarmOptions options;
  options.stages.assign(size.stages, stage);
  options.link = place.link;
  options.duration = Seconds(3600ll * size.hours);
  options.warm_up = Seconds(3600);
  const Rule rules[] = {{"none", JoinRule::kOwnStage, Nanoseconds(0)},
                        {"joining", JoinRule::kNeediest, Nanoseconds(0)},
                        {"moving", JoinRule::kOwnStage, Seconds(300)},
                        {"moving", JoinRule::kOwnStage, Seconds(60)},
                        {"both", JoinRule::kNeediest, Seconds(300)},
                        {"both", JoinRule::kNeediest, Seconds(60)}};
  for (const Rule& rule : rules) {
    for (size_t t = 0; t < study->traces.size(); ++t) {
      options.joining = rule.joining;
      options.rebalance_every = rule.every;
      options.in_flight = size.in_flight * study->traces[t].num_peers();
      RebalanceRow& row = study->rebalancing.emplace_back();
      row.rule = rule.name;
      row.every = rule.every;
      row.trace = static_cast<int>(t);
      PIPELAB_ASSIGN_OR_RETURN(row.figures, SimulateSwarm(options, study->traces[t]));
    }
  }
  return absl::OkStatus();
}

absl::Status SimulateLaw(const Place& place, SwarmStudy* study) {
  PeerTraceOptions always;
  always.peers = 12;
  const PeerTrace trace = GeneratePeerTrace(always);
  SwarmOptions options;
  for (const bool eight_bits : {true, false}) {
    for (const int in_flight : {1, 2, 4}) {
      for (const int64_t hidden : kWidths) {
        BlockStageSizes sizes;
        sizes.hidden = hidden;
        sizes.eight_bits = eight_bits;
        PIPELAB_ASSIGN_OR_RETURN(const SwarmStage stage, BlockStage(sizes, place.machine));
        options.stages.assign(3, stage);
        options.in_flight = in_flight * always.peers;
        options.warm_up = stage.work() * 500;
        options.duration = options.warm_up * 5;
        for (const int delay : kDelays) {
          LawRow& row = study->law.emplace_back();
          row.hidden = hidden;
          row.in_flight = in_flight;
          row.eight_bits = eight_bits;
          row.delay = Milliseconds(delay);
          row.compute = stage.work();
          options.link = {row.delay, place.link.bandwidth};
          row.transfer = options.link.TransferTime(stage.forward.request + stage.backward.request);
          PIPELAB_ASSIGN_OR_RETURN(row.figures, SimulateSwarm(options, trace));
        }
      }
    }
  }
  return absl::OkStatus();
}

// Each peer of 1, 2 or 4 times the speed, as it is drawn.
absl::Status SimulateUnequal(SwarmStudy* study) {
  const SwarmStudySize& size = study->size;
  PeerTraceOptions options;
  options.peers = size.peers / size.stages * size.stages;
  options.speeds.clear();
  const CounterRng rng(1, "elastic/speeds");
  for (int p = 0; p < options.peers; ++p) {
    options.speeds.push_back(static_cast<double>(1 << rng.Below(p, 3)));
  }
  const PeerTrace trace = GeneratePeerTrace(options);
  SwarmStage stage;
  stage.forward.compute = Seconds(1);
  stage.backward.compute = Seconds(3);
  SwarmOptions swarm;
  swarm.stages.assign(size.stages, stage);
  swarm.in_flight = 8 * options.peers;
  swarm.warm_up = Seconds(4 * 3600);
  swarm.duration = Seconds(6 * 3600);
  for (const int variant : {0, 1, 2}) {
    swarm.rebalance_every = Seconds(variant == 0 ? 0 : 60);
    if (variant == 2) swarm.drift = {Seconds(600), 0.2, 0.9};
    PIPELAB_ASSIGN_OR_RETURN(const SwarmFigures f, SimulateSwarm(swarm, trace));
    const char* names[] = {"as they are", "rebalanced every 60 s",
                           "rebalanced every 60 s, speeds drift by 20 %"};
    study->unequal.push_back({names[variant], variant == 2, f});
    if (variant > 0) continue;
    // Pipeline i has the i-th peer of each stage, and is as fast as its slowest.
    for (int i = 0; i < options.peers; i += size.stages) {
      const auto first = options.speeds.begin() + i;
      study->fixed_pipelines +=
          *std::min_element(first, first + size.stages) / ToSeconds(stage.work()) / f.slowest;
    }
  }
  return absl::OkStatus();
}

double Share(const SwarmFigures& f) { return f.throughput / f.best; }

// The shares of a rule with this T, the least and the largest over traces.
std::pair<double, double> Shares(const SwarmStudy& study, absl::string_view rule, int64_t every) {
  std::pair<double, double> shares = {1e9, 0};
  for (const RebalanceRow& row : study.rebalancing) {
    if (row.rule != rule || row.every != Seconds(every)) continue;
    shares.first = std::min(shares.first, Share(row.figures));
    shares.second = std::max(shares.second, Share(row.figures));
  }
  return shares;
}

const LawRow& LawOf(const SwarmStudy& study, bool eight_bits, int64_t in_flight, int64_t hidden,
                    Nanoseconds delay) {
  return *std::find_if(study.law.begin(), study.law.end(), [&](const LawRow& row) {
    return row.eight_bits == eight_bits && row.in_flight == in_flight && row.hidden == hidden &&
           row.delay == delay;
  });
}

Table RebalancingTable(const SwarmStudy& study) {
  Table t("rebalancing", absl::StrCat(study.size.stages, " stages, traces of peers: the share of ",
                                      "the optimum by how peers come to their stages"));
  t.AddKey("rule", "stages change by");
  t.AddKey("every", "moves every [s]");
  t.AddKey("trace");
  t.AddColumn({"share", "of the optimum", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"use", "device use", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"moves", "moves", "", "", Origin::kSimulated, 0});
  t.AddColumn({"lost", "lost requests", "", "", Origin::kSimulated, 0});
  for (const RebalanceRow& row : study.rebalancing) {
    const SwarmFigures& f = row.figures;
    t.AddRow({Label(row.rule), Label(ToSeconds(row.every)), Label(row.trace + 1.0),
              Simulated(ToPercent(Share(f))), Simulated(ToPercent(f.device_use)),
              Simulated(static_cast<double>(f.moves)),
              Simulated(static_cast<double>(f.lost_requests))});
  }
  t.AddNote(
      "none: each place has its stage, also for the machine that replaces a preempted one. "
      "joining: a new peer goes to the slowest stage. moving: every T seconds one peer moves. "
      "both: the last two. The optimum is that of whole peers at each moment. Queues even out "
      "stages that are slow at different times, so a swarm can come out above it.");
  for (size_t i = 0; i < study.traces.size(); ++i) {
    t.AddNote(absl::StrCat("Trace ", i + 1, ": ", study.traces[i].source, "."));
  }
  return t;
}

Table LawTable(const SwarmStudy& study) {
  Table t("square_cube", "Device use by the width of a layer: 3 stages of a block, 4 peers each");
  t.AddKey("messages");
  t.AddKey("in_flight", "in flight a peer");
  t.AddKey("delay", "delay [ms]");
  for (const int64_t hidden : kWidths) {
    t.AddColumn({absl::StrCat("use_", hidden), absl::StrCat("d = ", hidden), "", "%",
                 Origin::kSimulated, 1});
  }
  for (const LawRow& row : study.law) {
    if (row.hidden != kWidths[0]) continue;
    std::vector<Cell> cells = {Label(row.eight_bits ? "8 bits" : "fp16"),
                               Label(static_cast<double>(row.in_flight)), Label(ToMs(row.delay))};
    for (const int64_t hidden : kWidths) {
      const LawRow& of = LawOf(study, row.eight_bits, row.in_flight, hidden, row.delay);
      cells.push_back(Simulated(ToPercent(of.figures.device_use)));
    }
    t.AddRow(std::move(cells));
  }
  for (const int64_t hidden : kWidths) {
    const LawRow& row = LawOf(study, true, 1, hidden, Nanoseconds(0));
    t.AddNote(absl::StrFormat(
        "d = %d: a micro-batch of 2048 tokens takes a peer %.1f ms, and its link in %.1f ms of "
        "8-bit messages.",
        hidden, ToMs(row.compute), ToMs(row.transfer)));
  }
  return t;
}

Table UnequalTable(const SwarmStudy& study) {
  Table t("unequal", "Peers of 1, 2 and 4 times the speed, drawn");
  t.AddKey("placement");
  t.AddColumn({"share", "of the slowest stage's speed", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"of_best", "of the optimum", "", "%", Origin::kSimulated, 1});
  for (const UnequalRow& row : study.unequal) {
    const SwarmFigures& f = row.figures;
    t.AddRow({Label(row.what),
              row.drifts ? Missing("speeds are not those of the trace")
                         : Simulated(ToPercent(f.throughput / f.slowest)),
              Simulated(ToPercent(Share(f)))});
  }
  t.AddNote(absl::StrFormat(
      "Pipelines of fixed peers, one of each stage, would reach %.1f %% of the slowest stage's "
      "speed: each is as fast as its slowest peer.",
      ToPercent(study.fixed_pipelines)));
  return t;
}

std::string RangeText(std::pair<double, double> shares) {
  return absl::StrFormat("%.1f to %.1f %%", ToPercent(shares.first), ToPercent(shares.second));
}

void AddRebalancingClaims(const SwarmStudy& study, std::vector<Claim>* claims) {
  constexpr char kWhere[] = "SWARM (arXiv 2301.11913), replay of preemptions";
  const auto add = [&](const char* id, const char* text, double published, absl::string_view rule,
                       int64_t every, double least, double most, const char* reason) {
    Claim c = published > 0 ? PaperClaim(id, text, kWhere, "read-2nd") : OwnClaim(id, text);
    c.unit = "%";
    if (published > 0) Published(&c, published);
    const std::pair<double, double> shares = Shares(study, rule, every);
    Found(&c, Origin::kSimulated, ToPercent(shares.first), RangeText(shares));
    std::string accepted = absl::StrFormat("at least %.0f %% in each trace", 100 * least);
    if (most < 10) {
      accepted = absl::StrFormat("%.0f to %.0f %% in each trace", 100 * least, 100 * most);
    } else if (every == 60) {
      accepted = "at least the least of every 300 s";
    }
    MetIf(&c, shares.first >= least && shares.second <= most, accepted, reason);
    claims->push_back(std::move(c));
  };
  add("swarm.static", "throughput without rebalancing, of the optimum", 82.7, "none", 0, 0.80, 0.86,
      "the traces are others than those for which the means were chosen");
  add("swarm.rebalance_300", "the same, rebalanced every 300 s", 95.8, "both", 300, 0.94, 1e9,
      "more peers come and go in 300 s than one move and the joins make good");
  add("swarm.rebalance_60", "every 60 s, at least as much as every 300 s", 0, "both", 60,
      Shares(study, "both", 300).first, 1e9, "moves cost more downloads than they win");
  add("swarm.moves_alone", "every 300 s, where replaced peers keep their places' stages", 0,
      "moving", 300, 0.94, 1e9,
      "one move in 300 s, while about 10 peers come or go, each back to its place's own stage");
}

void AddLawClaims(const SwarmStudy& study, std::vector<Claim>* claims) {
  constexpr char kWhere[] = "SWARM (arXiv 2301.11913), square-cube study";
  const auto add = [&](const char* id, const char* text, double published, bool eight_bits,
                       int64_t hidden, int delay, double least, double most, const char* reason) {
    Claim c = PaperClaim(id, text, kWhere, "read-2nd");
    c.unit = "%";
    Published(&c, published);
    const double use = LawOf(study, eight_bits, 4, hidden, Milliseconds(delay)).figures.device_use;
    Found(&c, Origin::kSimulated, ToPercent(use));
    MetIf(&c, use >= least && use <= most,
          least > 0 ? absl::StrFormat("at least %.0f %%", 100 * least)
                    : absl::StrFormat("at most %.0f %%", 100 * most),
          reason);
    claims->push_back(std::move(c));
  };
  add("swarm.wide", "device use, d = 12288, 500 Mb/s, no delay, 8-bit messages", 82, true, 12288, 0,
      0.75, 1, "the link is slower than the device");
  add("swarm.wide_delay", "the same with 200 ms of delay", 48, true, 12288, 200, 0.40, 1,
      "too few micro-batches are in flight");
  add("swarm.wide_fp16", "device use, d = 12288, no delay, fp16 messages", 82, false, 12288, 0,
      0.75, 1,
      "a backward's request has inputs and gradients, so a micro-batch's 2 bytes a number take the "
      "link longer than its passes take the tensor cores");
  add("swarm.narrow", "device use, d = 768, no delay, 8-bit messages", 18, true, 768, 0, 0, 0.20,
      "the layer's messages are too small for its passes");
  Claim rises = OwnClaim("swarm.square_cube", "device use rises with width at every delay");
  rises.unit = "rows";
  int rising = 0, rows = 0;
  for (const LawRow& row : study.law) {
    if (row.hidden != kWidths[0]) continue;
    const auto use = [&](int64_t hidden) {
      return LawOf(study, row.eight_bits, row.in_flight, hidden, row.delay).figures.device_use;
    };
    ++rows;
    rising += use(kWidths[0]) < use(kWidths[1]) && use(kWidths[1]) < use(kWidths[2]);
  }
  Found(&rises, Origin::kSimulated, rising, absl::StrCat(rising, " of ", rows, " rows"));
  MetIf(&rises, rising == rows, "every row", "wide layers' passes are slower for their flops");
  claims->push_back(std::move(rises));
}

}  // namespace

absl::StatusOr<SwarmStudy> SimulateSwarms(const SwarmStudySize& size) {
  SwarmStudy study;
  study.size = size;
  PIPELAB_ASSIGN_OR_RETURN(const Place place, PlaceOf(size.cluster));
  study.traces = size.given;
  for (int t = 1; t <= size.traces && size.given.empty(); ++t) {
    PeerTraceOptions options;
    options.peers = size.peers;
    options.duration = Seconds(3600ll * size.hours);
    options.up = size.up;
    options.away = size.away;
    options.seed = static_cast<uint64_t>(t);
    study.traces.push_back(GeneratePeerTrace(options));
  }
  PIPELAB_RETURN_IF_ERROR(SimulateRebalancing(place, &study));
  PIPELAB_RETURN_IF_ERROR(SimulateLaw(place, &study));
  PIPELAB_RETURN_IF_ERROR(SimulateUnequal(&study));
  return study;
}

std::vector<Table> SwarmTables(const SwarmStudy& study) {
  std::vector<Table> tables;
  tables.push_back(RebalancingTable(study));
  tables.push_back(LawTable(study));
  tables.push_back(UnequalTable(study));
  return tables;
}

std::vector<Claim> SwarmClaims(const SwarmStudy& study) {
  std::vector<Claim> claims;
  AddRebalancingClaims(study, &claims);
  AddLawClaims(study, &claims);
  Claim unequal = OwnClaim("swarm.unequal",
                           "throughput of unequal peers, of the slowest stage's sum of speeds");
  unequal.unit = "%";
  const SwarmFigures& f = study.unequal[0].figures;
  Found(&unequal, Origin::kSimulated, ToPercent(f.throughput / f.slowest));
  MetIf(&unequal, f.throughput >= 0.95 * f.slowest, "at least 95 %",
        "too few micro-batches are in flight");
  claims.push_back(std::move(unequal));
  return claims;
}

}  // namespace pipelab
