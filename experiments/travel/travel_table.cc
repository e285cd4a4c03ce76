#include "experiments/travel/travel_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/zoo/gpt.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kTravelNode = 8, kRounds = 4;
constexpr char kWeiPipeSource[] = "WeiPipe (PPoPP 2025), abstract: 32 GPUs";
constexpr char kUnknown[] = "links, width, tokens and samples of a micro-batch";

struct SchemeRow {
  const char* name;    // for people
  const char* scheme;  // of the catalogue
};
constexpr SchemeRow kRows[kTravelSchemes] = {{"1F1B", "1f1b"},
                                             {"ZB1", "zb1p"},
                                             {"FSDP", "1f1b"},
                                             {"naive", "weipipe_naive"},
                                             {"WeiPipe", "weipipe"},
                                             {"zero-bubble 1", "weipipe_zb1"},
                                             {"zero-bubble 2", "weipipe_zb2"},
                                             {"TawPipe", "tawpipe"}};

StepConfig ConfigOfScheme(TravelScheme scheme, int devices, int64_t samples) {
  StepConfig c;
  c.scheme = kRows[scheme].scheme;
  c.micro_batch_size = samples;
  c.state.weights = 2;
  c.recompute = Recompute::kFull;
  if (scheme == kFsdp) {
    c.data = devices;
    c.micro_batches = kRounds;
    c.sharding = Sharding::kFully;
  } else {
    c.pipeline = devices;
    c.micro_batches = kRounds * devices;
    c.layout = absl::StrCat("Et|(t|)*", devices - 2, "tL");
  }
  if (scheme == kTawPipe) c.group_size = kTravelNode;
  return c;
}

absl::StatusOr<TravelStep> Simulated(StepCache* cache, const StepConfig& config) {
  PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(cache, config));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step)));
  TravelStep result;
  result.samples_per_second = p.samples_per_second();
  result.memory = static_cast<double>(p.largest_device.value());
  result.fits = p.fits;
  for (const DeviceTrace& d : p.trace.devices) {
    result.sent += static_cast<double>(d.bytes_sent.value());
  }
  return result;
}

Claim TravelGainClaim(const std::vector<TravelCell>& cells, const char* id, const std::string& text,
                      const char* source, const char* tag, double published,
                      const std::vector<TravelScheme>& schemes,
                      const std::vector<TravelScheme>& over) {
  Claim c = PaperClaim(id, text, source, tag);
  c.unit = "%";
  Published(&c, published);
  double least = 1e9, most = -1e9;
  std::vector<RangeValue> values;
  for (const TravelCell& cell : cells) {
    const double ours = cell.Best(schemes), rival = cell.Best(over);
    if (ours == 0 || rival == 0) continue;
    const double gain = 100 * (ours / rival - 1);
    least = std::min(least, gain);
    most = std::max(most, gain);
    values.push_back({cell.ToString(), gain >= published});
  }
  Found(&c, Origin::kSimulated, most, absl::StrFormat("%+.1f to %+.1f %%", least, most));
  MetOverRange(&c, kUnknown, values, absl::StrFormat("at least %.1f %%", published),
               "with few tokens for the width, weights are more bytes than activations; with many, "
               "what travels hides beside compute");
  return c;
}

// A stage is one block: two hops of its 12 h^2 weights and one of as many gradients for each
// micro-batch, where an activation and its gradient have s b h each. The vocabulary's layers are on
// the first and the last stage, and only weights travel from there: they put the turn higher.
Claim BytesClaim(const std::vector<TravelCell>& cells) {
  Claim c = OwnClaim("travel.bytes",
                     "fewer bytes than activations above 18 tokens a column, and not below 12");
  int alike = 0, all = 0;
  for (const TravelCell& cell : cells) {
    const bool fewer = cell.steps[kWeiPipe].sent < cell.steps[k1F1B].sent;
    const double ratio = cell.tokens_per_width();
    if (ratio >= 12 && ratio <= 18) continue;
    ++all;
    alike += fewer == (ratio > 18);
  }
  c.unit = "cells";
  FoundAlike(&c, Origin::kSimulated, alike, all,
             "embedding and head are 64000 h weights more, which travel, too");
  return c;
}

template <typename Wanted>
std::vector<TravelCell> CellsOf(const std::vector<TravelCell>& all, const Wanted& wanted) {
  std::vector<TravelCell> cells;
  std::copy_if(all.begin(), all.end(), std::back_inserter(cells), wanted);
  return cells;
}

}  // namespace

const char* TravelPlaceName(TravelPlace place) {
  return place == TravelPlace::kNvlink ? "NVLink" : "PCIe";
}

ClusterSpec PlacedIn(TravelPlace place, ClusterSpec cluster) {
  if (place == TravelPlace::kNvlink) return cluster;
  cluster.name += "-pcie";
  cluster.title += ", as if it had PCIe 4.0 and one network card a node";
  ClusterLevel& node = cluster.levels[0];
  node.connection.bandwidth = {
      BytesPerSecond(25e9), "recalled: PCIe 4.0 x16 has 31.5 GB/s, about 25 of which reach a copy"};
  node.rings.clear();
  cluster.levels[1].sharing = Sharing::kUnit;
  return cluster;
}

double TravelCell::Best(const std::vector<TravelScheme>& schemes) const {
  double best = 0;
  for (const TravelScheme s : schemes) {
    if (steps[s].fits) best = std::max(best, steps[s].samples_per_second);
  }
  return best;
}

std::string TravelCell::ToString() const {
  return absl::StrCat(TravelPlaceName(place), " h=", hidden, " s=", tokens, " b=", samples);
}

absl::StatusOr<std::vector<TravelCell>> SimulateTravel(TravelPlace place, int devices,
                                                       const ClusterSpec& cluster) {
  std::vector<TravelCell> cells;
  for (const int64_t hidden : {1024, 2048, 4096}) {
    for (const int64_t tokens : {4096, 16384}) {
      GptConfig gpt;
      gpt.layers = devices;
      gpt.hidden = hidden;
      gpt.heads = hidden / 128;
      gpt.tokens = tokens;
      gpt.vocabulary = 32000;
      gpt.positions = Positions::kNone;
      gpt.rotary_base = 10000;
      gpt.key_tile = 128;
      PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildGpt(gpt));
      const auto on =
          ModelOnCluster::Of(std::move(graph), PlacedIn(place, cluster), NumberType::kBf16);
      StepCache cache(on->step());
      for (const int64_t samples : {1, 4, 16}) {
        TravelCell& cell = cells.emplace_back();
        cell.place = place;
        cell.devices = devices;
        cell.hidden = hidden;
        cell.tokens = tokens;
        cell.samples = samples;
        for (int s = 0; s < kTravelSchemes; ++s) {
          const auto scheme = static_cast<TravelScheme>(s);
          PIPELAB_ASSIGN_OR_RETURN(cell.steps[s],
                                   Simulated(&cache, ConfigOfScheme(scheme, devices, samples)));
        }
      }
    }
  }
  return cells;
}

Table TravelTable(const std::vector<TravelCell>& cells) {
  Table t("cells", "Samples a second of GPTs, by what travels");
  t.AddKey("links");
  t.AddKey("devices");
  t.AddKey("hidden");
  t.AddKey("tokens");
  t.AddKey("samples");
  t.AddColumn({"tokens_per_width", "s b / h", "", "", Origin::kComputed, 0});
  for (int i = 0; i < kTravelSchemes; ++i) {
    const char* metric = i == kFsdp ? "fsdp" : kRows[i].scheme;
    t.AddColumn({metric, kRows[i].name, "", "samples/s", Origin::kSimulated, 2});
  }
  t.AddColumn({"bytes", "bytes of WeiPipe over 1F1B's", "", "x", Origin::kSimulated, 2});
  for (const TravelCell& c : cells) {
    std::vector<Cell> row = {
        Label(TravelPlaceName(c.place)),       Label(c.devices),
        Label(static_cast<double>(c.hidden)),  Label(static_cast<double>(c.tokens)),
        Label(static_cast<double>(c.samples)), Computed(c.tokens_per_width())};
    for (const TravelStep& s : c.steps) {
      row.push_back(s.fits ? Simulated(s.samples_per_second) : Missing("out of memory"));
    }
    row.push_back(Simulated(c.steps[kWeiPipe].sent / c.steps[k1F1B].sent));
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "A block a device, heads of 128, 32000 words, 4 rounds of micro-batches (4 a device for "
      "FSDP), recomputed, bf16. Nodes of 8 A100s of 80 GB: with NVLink and a network card of 25 "
      "GB/s a GPU, or with PCIe 4.0 and one such card a node. TawPipe's groups are nodes. The last "
      "stage of an activation pipeline has the words' products beside its block, and the others "
      "wait "
      "for it; where weights travel, each device has a share.");
  return t;
}

std::vector<Claim> TravelClaims(const std::vector<TravelCell>& all) {
  const std::vector<TravelScheme> wei = {kWeiPipeNaive, kWeiPipe, kWeiPipeZb1, kWeiPipeZb2},
                                  activations = {k1F1B, kZb1p};
  std::vector<Claim> claims;
  for (const TravelPlace place : {TravelPlace::kNvlink, TravelPlace::kPcie}) {
    const bool nvlink = place == TravelPlace::kNvlink;
    const auto wanted = [&](const TravelCell& c) { return c.place == place; };
    claims.push_back(TravelGainClaim(
        CellsOf(all, wanted), nvlink ? "travel.weipipe_nvlink" : "travel.weipipe_pcie",
        absl::StrCat("throughput over the best activation pipeline, ", TravelPlaceName(place)),
        kWeiPipeSource, "read", nvlink ? 30.9 : 82, wei, activations));
  }
  claims.push_back(BytesClaim(all));
  return claims;
}

}  // namespace pipelab
