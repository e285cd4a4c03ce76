#include "experiments/travel/tawpipe_table.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/zoo/gpt.h"
#include "pipelines/step/block_layout.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kGpus = 24, kTawPipeNode = 8, kBatch = 1536;
constexpr int64_t kBlocks = 48, kHeads = 32, kWords = 32000;
constexpr char kSource[] = "TawPipe (arXiv 2511.09741), 24 GPUs";
constexpr char kTag[] = "read-2nd";

// As TawPipeMethod.
struct Method {
  const char* name;
  const char* metric;
  const char* scheme;
};
constexpr Method kMethods[kTawPipeMethods] = {{"TawPipe", "tawpipe", "tawpipe"},
                                              {"WeiPipe", "weipipe", "weipipe"},
                                              {"1F1B", "1f1b", "1f1b"},
                                              {"FSDP", "fsdp", "1f1b"}};

struct PublishedRow {
  int64_t hidden, tokens;
  double tokens_per_second[kTawPipeMethods], memory[kTawPipeMethods];
};
constexpr PublishedRow kPublished[] = {
    {4096, 16384, {1377.6, 1232.4, 1114.2, 956.1}, {56.7, 57.8, 62.3, 52.0}},
    {1024, 16384, {8914, 8412, 5594, 6751}, {0, 0, 0, 0}},
    {1024, 8192, {11738, 10663, 6636, 8826}, {0, 0, 0, 0}},
    {1024, 4096, {13629, 12055, 7212, 10559}, {0, 0, 0, 0}},
};

absl::StatusOr<ModelGraph> Llama(int64_t hidden, int64_t tokens) {
  const int64_t inner = (8 * hidden / 3 + 31) / 32 * 32;
  GptConfig c = LlamaConfig(kBlocks, hidden, kHeads, inner, tokens, kWords);
  c.tied_embeddings = true;
  return BuildGpt(c);
}

StepConfig ConfigOfMethod(TawPipeMethod method, int64_t samples) {
  StepConfig c;
  c.scheme = kMethods[method].scheme;
  c.micro_batch_size = samples;
  c.state.weights = c.state.gradients = 2;
  c.recompute = Recompute::kFull;
  if (method == kSharded) {
    c.data = kGpus;
    c.micro_batches = static_cast<int>(kBatch / kGpus / samples);
    c.sharding = Sharding::kFully;
    GatherByBlock(kBlocks, &c);
  } else {
    c.pipeline = kGpus;
    c.micro_batches = static_cast<int>(kBatch / samples);
    c.layout = absl::StrCat("Ett|(tt|)*", kGpus - 2, "ttL");
  }
  if (method == kTaw) c.group_size = kTawPipeNode;
  if (method == kOneFOneB) {  // a fork of Megatron-LM
    c.execution = kGroupedCalls;
    c.overlap_data = false;
  }
  return c;
}

absl::Status TakeFastest(StepCache* cache, TawPipeMethod method, int64_t least_samples,
                         int64_t tokens, TawPipeStep* best) {
  for (int64_t samples = least_samples; samples <= kBatch / kGpus; samples *= 2) {
    PIPELAB_ASSIGN_OR_RETURN(Step step, BuildStep(cache, ConfigOfMethod(method, samples)));
    const Bytes room = step.device_memory;
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateStep(std::move(step), room));
    if (!p.fits) break;  // nor do larger ones
    const double rate = p.samples_per_second() * static_cast<double>(tokens) / kGpus;
    if (rate <= best->tokens_per_second) continue;
    best->tokens_per_second = rate;
    best->memory = static_cast<double>(p.largest_device.value()) * 1e-9;
    best->samples = samples;
  }
  return absl::OkStatus();
}

std::string Place(const TawPipeRow& row) {
  return absl::StrCat("h=", row.hidden, " s=", row.tokens);
}

// TawPipe over another at the size of the abstract.
Claim TawPipeGainClaim(const std::vector<TawPipeRow>& rows, TawPipeMethod over, double published) {
  Claim c = PaperClaim(absl::StrCat("travel.tawpipe_", kMethods[over].metric),
                       absl::StrCat("TawPipe's throughput over ", kMethods[over].name,
                                    "'s, h=", kPublished[0].hidden, " s=", kPublished[0].tokens),
                       kSource, kTag);
  c.unit = "%";
  Published(&c, published);
  if (rows.empty() || rows[0].hidden != kPublished[0].hidden ||
      rows[0].methods[over].tokens_per_second == 0) {
    NotMade(&c, "nothing fits, or the row is left out");
    return c;
  }
  const double gain =
      100 * (rows[0].methods[kTaw].tokens_per_second / rows[0].methods[over].tokens_per_second - 1);
  Found(&c, Origin::kSimulated, gain, absl::StrFormat("%+.1f %%", gain));
  MetIf(&c, gain >= published, absl::StrFormat("at least %.1f %%", published),
        "with smaller micro-batches weights are more bytes than activations");
  return c;
}

Claim OrderClaim(const std::vector<TawPipeRow>& rows) {
  Claim c =
      PaperClaim("travel.tawpipe_order", "methods by throughput, at each size", kSource, kTag);
  c.published = "TawPipe over WeiPipe over FSDP and 1F1B";
  c.unit = "pairs";
  int pairs = 0, alike = 0;
  for (const TawPipeRow& row : rows) {
    for (const TawPipeStep& a : row.methods) {
      for (const TawPipeStep& b : row.methods) {
        if (a.published <= b.published) continue;
        ++pairs;
        alike += a.tokens_per_second > b.tokens_per_second;
      }
    }
  }
  FoundAlike(&c, Origin::kSimulated, alike, pairs,
             "with h=1024 s=16384 all that travels hides beside compute here, and weights, groups "
             "and shards are within 1 % of each other");
  return c;
}

Claim RatioClaim(const std::vector<TawPipeRow>& rows) {
  Claim c =
      PaperClaim("travel.tawpipe_table", "throughput over 1F1B's, at each size", kSource, kTag);
  std::vector<ComparedCell> cells;
  for (const TawPipeRow& row : rows) {
    const TawPipeStep& base = row.methods[kOneFOneB];
    for (const TawPipeMethod m : {kTaw, kWei, kSharded}) {
      const TawPipeStep& s = row.methods[m];
      if (s.tokens_per_second == 0 || base.tokens_per_second == 0) continue;
      cells.push_back({absl::StrCat(Place(row), ", ", kMethods[m].name),
                       s.published / base.published, s.tokens_per_second / base.tokens_per_second});
    }
  }
  c.origin = Origin::kSimulated;
  MetWithinErrors(
      &c, ErrorsOf(cells), 0.1,
      "h=1024 has heads of 32 numbers, and norms, positions and gates of eager PyTorch, "
      "which take longer than the kernels here; and these rows' micro-batches are not "
      "printed");
  return c;
}

}  // namespace

ClusterSpec WithEthernet(ClusterSpec cluster) {
  cluster.name += "-ethernet";
  cluster.title += ", as if its nodes had one card of 10 Gbit/s Ethernet each";
  ClusterLevel& network = cluster.levels[1];
  network.sharing = Sharing::kUnit;
  network.connection.bandwidth = {BytesPerSecond(1.25e9), "10 Gbit/s Ethernet"};
  network.connection.latency = {Microseconds(50), "recalled: a message over TCP"};
  return cluster;
}

absl::StatusOr<std::vector<TawPipeRow>> SimulateTawPipe(const ClusterSpec& cluster,
                                                        int64_t least_samples,
                                                        int64_t most_tokens) {
  std::vector<TawPipeRow> rows;
  for (const PublishedRow& published : kPublished) {
    if (published.tokens > most_tokens) continue;
    TawPipeRow& row = rows.emplace_back();
    row.hidden = published.hidden;
    row.tokens = published.tokens;
    PIPELAB_ASSIGN_OR_RETURN(ModelGraph llama, Llama(row.hidden, row.tokens));
    const auto on = ModelOnCluster::Of(
        MegatronGraph(std::move(llama), AttentionImplementation::kFused, NumberType::kFp16),
        WithEthernet(cluster), NumberType::kFp16);
    StepCache cache(on->step());
    for (int m = 0; m < kTawPipeMethods; ++m) {
      TawPipeStep& step = row.methods[m];
      step.published = published.tokens_per_second[m];
      step.published_memory = published.memory[m];
      PIPELAB_RETURN_IF_ERROR(
          TakeFastest(&cache, static_cast<TawPipeMethod>(m), least_samples, row.tokens, &step));
    }
  }
  return rows;
}

Table TawPipeTable(const std::vector<TawPipeRow>& rows) {
  Table t("tawpipe", "Throughput of a GPU, at the sizes of TawPipe's table");
  for (const char* key : {"hidden", "tokens", "method"}) t.AddKey(key);
  t.AddColumn({"published", "throughput", "", "tokens/s", Origin::kPublished, 0});
  t.AddColumn({"simulated", "throughput", "", "tokens/s", Origin::kSimulated, 0});
  t.AddColumn({"samples", "in a micro-batch", "", "samples", Origin::kComputed, 0});
  t.AddColumn({"memory_published", "memory", "", "GB", Origin::kPublished, 1});
  t.AddColumn({"memory", "memory", "", "GB", Origin::kSimulated, 1});
  for (const TawPipeRow& row : rows) {
    for (int m = 0; m < kTawPipeMethods; ++m) {
      const TawPipeStep& s = row.methods[m];
      const bool fits = s.tokens_per_second > 0;
      t.AddRow(
          {Label(static_cast<double>(row.hidden)), Label(static_cast<double>(row.tokens)),
           Label(kMethods[m].name), Published(s.published, kTag),
           fits ? Simulated(s.tokens_per_second) : Missing("out of memory"),
           fits ? Computed(static_cast<double>(s.samples)) : Missing("out of memory"),
           s.published_memory > 0 ? Published(s.published_memory, kTag) : Missing("not printed"),
           fits ? Simulated(s.memory) : Missing("out of memory")});
    }
  }
  t.AddNote(
      "Llamas of 48 blocks, 1536 samples a step, 3 nodes of 8 A100s of 80 GB (assumed), 10 Gbit/s "
      "between them. Micro-batches are as memory allows, as the paper says: of each method the "
      "fastest that fits. At h=4096 WeiPipe's memory is printed, and fits 4 samples alone.");
  return t;
}

std::vector<Claim> TawPipeClaims(const std::vector<TawPipeRow>& rows) {
  return {TawPipeGainClaim(rows, kWei, 11.8), TawPipeGainClaim(rows, kOneFOneB, 23.6),
          TawPipeGainClaim(rows, kSharded, 44.1), OrderClaim(rows), RatioClaim(rows)};
}

}  // namespace pipelab
