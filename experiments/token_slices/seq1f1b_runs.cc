#include "experiments/token_slices/seq1f1b_runs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/token_slices/seq1f1b_step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kRunGpus = 8, kPipeline = 4, kSamples = 8;
constexpr int64_t kWords = 50257, kWordsMultiple = 128;
constexpr double kRatioOff = 0.1, kReplayOff = 0.03, kAllocatedOff = 0.05;
constexpr char kSource[] = "logs of Seq1F1B's code by others, 8 A100";
constexpr char kGap[] = "the launch gap";

Seq1F1BSetup SetupOfRun(const PublishedSeq1F1BRun& run, int64_t launch_gap_us) {
  Seq1F1BSetup setup;
  setup.layers = run.layers;
  setup.hidden = run.hidden;
  setup.heads = run.heads;
  setup.tokens = run.tokens;
  setup.tensor = static_cast<int>(run.tensor);
  const int64_t multiple = kWordsMultiple * run.tensor;
  setup.words = (kWords + multiple - 1) / multiple * multiple;
  setup.scheme = run.slices > 1 ? "seq1f1b" : "1f1b";
  setup.slices = static_cast<int>(run.slices);
  setup.pipeline = kPipeline;
  setup.data = kRunGpus / kPipeline / setup.tensor;
  setup.micro_batches = kSamples / setup.data;
  setup.launch_gap_us = launch_gap_us;
  return setup;
}

double TokensPerSecond(const PublishedSeq1F1BRun& run, const StepPrediction& p) {
  return static_cast<double>(run.tokens * kSamples) / ToSeconds(p.step_time);
}

std::string NameOf(const PublishedSeq1F1BRun& run) {
  return absl::StrCat(run.layers, "x", run.hidden, " ", run.tokens, " tokens, ", run.slices,
                      " slices");
}

double Mib(Bytes bytes) { return static_cast<double>(bytes.value()) / (1 << 20); }

// The gains of runs that differ in slices alone, over the run without.
std::vector<ComparedCell> SliceGains(const std::vector<Seq1F1BRunSteps>& runs) {
  std::vector<ComparedCell> cells;
  for (const Seq1F1BRunSteps& whole : runs) {
    if (whole.run.slices > 1) continue;
    for (const Seq1F1BRunSteps& sliced : runs) {
      if (sliced.run.slices == 1 || sliced.run.tokens != whole.run.tokens ||
          sliced.run.layers != whole.run.layers || sliced.run.hidden != whole.run.hidden) {
        continue;
      }
      cells.push_back({NameOf(sliced.run),
                       sliced.run.tokens_per_second / whole.run.tokens_per_second,
                       sliced.simulated / whole.simulated});
    }
  }
  return cells;
}

std::vector<ComparedCell> Replays(const std::vector<Seq1F1BRunSteps>& runs) {
  std::vector<ComparedCell> cells;
  for (const Seq1F1BRunSteps& r : runs) {
    cells.push_back({NameOf(r.run), r.run.tokens_per_second, r.replayed});
  }
  return cells;
}

std::vector<ComparedCell> Allocated(const std::vector<Seq1F1BRunSteps>& runs) {
  std::vector<ComparedCell> cells;
  for (const Seq1F1BRunSteps& r : runs) {
    for (size_t s = 0; s < r.memory.size(); ++s) {
      cells.push_back(
          {absl::StrCat(NameOf(r.run), " stage ", s), r.run.allocated_mib[s], Mib(r.memory[s])});
    }
  }
  return cells;
}

// The errors of `cells` over all gaps.
template <typename Cells>
Claim ErrorClaim(const Seq1F1BRunsByGap& all, const char* id, const char* text, Origin origin,
                 const Cells& cells_of, double most, const std::string& reason) {
  Claim c = PaperClaim(id, text, kSource, "read");
  c.unit = "%";
  std::vector<RangeValue> values;
  for (const auto& runs : all) {
    values.push_back({absl::StrCat("gap=", runs[0].launch_gap_us, "us"),
                      ErrorsOf(cells_of(runs)).largest <= most});
  }
  const CellErrors first = ErrorsOf(cells_of(all[0]));
  c.published = absl::StrCat(first.cells, " cells");
  Found(
      &c, origin, 100 * first.largest,
      absl::StrFormat("median %.1f %%, largest %.1f %% (%s) with gap=%dus; largest %.1f %% with "
                      "gap=%dus",
                      100 * first.median, 100 * first.largest, first.worst, all[0][0].launch_gap_us,
                      100 * ErrorsOf(cells_of(all.back())).largest, all.back()[0].launch_gap_us));
  MetOverRange(&c, kGap, values, absl::StrFormat("each cell within %.0f %%", 100 * most), reason);
  return c;
}

}  // namespace

absl::StatusOr<Seq1F1BRunSteps> SimulateRun(const PublishedSeq1F1BRun& run, int64_t launch_gap_us,
                                            const ClusterSpec& cluster) {
  Seq1F1BRunSteps result;
  result.run = run;
  result.launch_gap_us = launch_gap_us;
  Seq1F1BSetup setup = SetupOfRun(run, launch_gap_us);
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction simulated, SimulateSeq1F1B(setup, cluster));
  result.simulated = TokensPerSecond(run, simulated);
  setup.optimizer_tensors = 0;
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction first, SimulateSeq1F1B(setup, cluster));
  for (size_t s = 0; s < result.memory.size(); ++s) result.memory[s] = first.devices[s].memory;
  setup.optimizer_tensors = 2;
  const double m = setup.micro_batches;
  setup.passes = MeasuredPasses{run.forward_ms[0] / m, run.backward_ms[0] / m,
                                run.forward_ms[1] / m, run.backward_ms[1] / m};
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction replayed, SimulateSeq1F1B(setup, cluster));
  result.replayed = TokensPerSecond(run, replayed);
  return result;
}

Table Seq1F1BRunsTable(const Seq1F1BRunsByGap& all) {
  Table t("runs", "Seq1F1B's code on 8 A100, as others logged it");
  for (const char* key : {"blocks", "width", "tokens", "slices"}) t.AddKey(key);
  t.AddColumn({"logged", "throughput", "", "tokens/s", Origin::kPublished, 0});
  t.AddColumn({"simulated", "throughput", "", "tokens/s", Origin::kSimulated, 0});
  t.AddColumn({"replayed", "of the logged passes", "", "tokens/s", Origin::kReplayed, 0});
  for (const Seq1F1BRunSteps& r : all[0]) {
    t.AddRow({Label(static_cast<double>(r.run.layers)), Label(static_cast<double>(r.run.hidden)),
              Label(static_cast<double>(r.run.tokens)), Label(static_cast<double>(r.run.slices)),
              Published(r.run.tokens_per_second, r.run.tag), Simulated(r.simulated),
              Value(Origin::kReplayed, r.replayed)});
  }
  t.AddNote(absl::StrCat(
      "P = 4, a sample in a micro-batch, 8 in a step. With gap=", all[0][0].launch_gap_us, "us."));
  return t;
}

Table Seq1F1BRunsMemoryTable(const Seq1F1BRunsByGap& all) {
  Table t("runs_memory", "Memory of Seq1F1B's code on 8 A100, as others logged it");
  for (const char* key : {"blocks", "width", "tokens", "slices", "stage"}) t.AddKey(key);
  t.AddColumn({"allocated", "allocated in the first step", "", "MiB", Origin::kPublished, 0});
  t.AddColumn({"simulated", "the same", "", "MiB", Origin::kSimulated, 0});
  t.AddColumn({"reserved", "reserved", "", "GiB", Origin::kPublished, 1});
  for (const Seq1F1BRunSteps& r : all[0]) {
    for (size_t s = 0; s < r.memory.size(); ++s) {
      t.AddRow({Label(static_cast<double>(r.run.layers)), Label(static_cast<double>(r.run.hidden)),
                Label(static_cast<double>(r.run.tokens)), Label(static_cast<double>(r.run.slices)),
                Label(static_cast<double>(s)), Published(r.run.allocated_mib[s], r.run.tag),
                Simulated(Mib(r.memory[s])), Published(r.run.reserved_gib[s], r.run.tag)});
    }
  }
  return t;
}

std::vector<Claim> Seq1F1BRunClaims(const Seq1F1BRunsByGap& all) {
  return {
      ErrorClaim(all, "seq1f1b.runs.slices", "throughput of 2 to 8 slices over none",
                 Origin::kSimulated, SliceGains, kRatioOff,
                 "slices of equal work take unequal times where kernels of few tokens are slower"),
      ErrorClaim(all, "seq1f1b.runs.replayed", "throughput, of the passes that were logged",
                 Origin::kReplayed, Replays, kReplayOff,
                 "a step of 4096 tokens takes 0.6 s, and 30 ms of it are neither passes nor "
                 "messages: broadcasts of tokens and the barriers of timers are not simulated"),
      ErrorClaim(all, "seq1f1b.runs.memory", "memory allocated in the first step, by stage",
                 Origin::kSimulated, Allocated, kAllocatedOff,
                 "a backward of 32768 tokens holds some 3 GiB more for a time there, and 6 GiB on "
                 "the last stage"),
  };
}

}  // namespace pipelab
