#include "experiments/local/real_pipelines.h"

#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/calibration/real_runs.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/zoo/gpt.h"
#include "pipelines/analysis/arrivals.h"
#include "pipelines/runtime/training.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMicroBatches = 48;
constexpr int64_t kRowTokens = 64, kRowSamples = 8;
constexpr double kWanted = 1.85;

TrainingOptions OptionsOf(const std::string& scheme, int devices) {
  TrainingOptions options;
  options.config.scheme = scheme;
  options.config.pipeline = devices;
  options.config.micro_batches = kMicroBatches;
  options.config.micro_batch_size = kRowSamples;
  if (scheme == "local") {  // on one device the serial loop
    options.config.virtual_stages = 2 / devices;
    options.config.update_interval = 1;
  }
  return options;
}

absl::StatusOr<RealPipeline> RunScheme(const std::string& scheme, const ModelGraph& graph,
                                       const BatchSource& text, int runs) {
  RealPipeline real;
  real.scheme = scheme;
  real.cores = static_cast<int>(std::thread::hardware_concurrency());
  PIPELAB_ASSIGN_OR_RETURN(auto one, PipelineTraining::Create(graph, text, OptionsOf(scheme, 1)));
  PIPELAB_ASSIGN_OR_RETURN(auto two, PipelineTraining::Create(graph, text, OptionsOf(scheme, 2)));
  real.same_losses = true;
  std::vector<Trace> traces;  // of the two
  for (int run = 0; run <= runs; ++run) {
    double losses[2] = {};
    for (PipelineTraining* training : {one.get(), two.get()}) {
      const bool alone = training == one.get();
      absl::StatusOr<TrainingStep> step;
      const double ms = MillisecondsOf([&] { step = training->Step(); });
      PIPELAB_RETURN_IF_ERROR(step.status());
      losses[alone ? 0 : 1] = step->loss;
      if (run == 0) continue;  // caches are cold
      (alone ? real.one_ms : real.two_ms).push_back(ms);
      if (alone) continue;
      std::vector<double> latencies;
      for (Nanoseconds l : SampleLatencies(two->program(), step->trace))
        latencies.push_back(ToMs(l));
      real.latency_ms.push_back(UpperMedian(std::move(latencies)));
      traces.push_back(std::move(step->trace));
    }
    real.same_losses = real.same_losses && losses[0] == losses[1];
  }
  real.core_share = CoreShare(two->program(), traces);
  return real;
}

}  // namespace

double RealPipeline::speedup() const { return UpperMedian(one_ms) / UpperMedian(two_ms); }

double RealPipeline::ticks() const {
  return UpperMedian(latency_ms) / (UpperMedian(two_ms) / kMicroBatches);
}

absl::StatusOr<std::vector<RealPipeline>> RunRealPipelines(int runs, int64_t hidden) {
  PIPELAB_ASSIGN_OR_RETURN(
      TextData text,
      MakeTextData(SyntheticCorpus(/*bytes=*/1 << 18, /*seed=*/1), kRowTokens, /*seed=*/1));
  GptConfig gpt;
  gpt.layers = 8;
  gpt.hidden = hidden;
  gpt.heads = 4;
  gpt.tokens = kRowTokens;
  gpt.vocabulary = text.train->vocabulary();
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildGpt(gpt));
  std::vector<RealPipeline> all;
  for (const char* scheme : {"local", "over_time"}) {
    PIPELAB_ASSIGN_OR_RETURN(RealPipeline real, RunScheme(scheme, graph, *text.train, runs));
    all.push_back(std::move(real));
  }
  return all;
}

Table RealPipelineTable(const std::vector<RealPipeline>& real) {
  Table t("real", absl::StrCat("A GPT of 8 blocks, ", kMicroBatches,
                               " micro-batches without a flush, on one device and on two here"));
  t.AddKey("scheme");
  t.AddColumn({"one", "one device", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"two", "two devices", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"speedup", "speed-up", "", "x", Origin::kMeasured, 2});
  t.AddColumn({"latency", "latency on two", "latency", "ms", Origin::kMeasured, 1});
  t.AddColumn({"ticks", "of micro-batches", "ticks", "", Origin::kMeasured, 2});
  for (const RealPipeline& r : real) {
    t.AddRow({Label(r.scheme), Measured(UpperMedian(r.one_ms)).WithSamples(r.one_ms),
              Measured(UpperMedian(r.two_ms)).WithSamples(r.two_ms), Measured(r.speedup()),
              Measured(UpperMedian(r.latency_ms)).WithSamples(r.latency_ms), Measured(r.ticks())});
    t.AddNote(absl::StrFormat("%s: the two devices had %.0f %% of their time on one of %d cores.",
                              r.scheme, ToPercent(r.core_share), r.cores));
  }
  return t;
}

std::vector<Claim> RealPipelineClaims(const std::vector<RealPipeline>& real) {
  std::vector<Claim> claims;
  for (const RealPipeline& r : real) {
    const std::string paper = r.scheme == "local" ? "ppll" : "partime";
    if (r.scheme == "local") {
      Claim same = OwnClaim("ppll.real_bits", "two devices have the serial loop's losses");
      Found(&same, Origin::kMeasured, r.same_losses ? 1 : 0,
            r.same_losses ? "equal" : "they differ");
      MetIf(&same, r.same_losses, "equal", "a bit differs");
      claims.push_back(std::move(same));
    }
    Claim c = OwnClaim(paper + ".real_speedup", "two devices over one, without a flush");
    c.unit = "x";
    if (!HadOwnCores(r.core_share)) {
      NotMade(&c, NoOwnCores(r.core_share));
    } else {
      Found(&c, Origin::kMeasured, r.speedup());
      MetIf(&c, r.speedup() >= kWanted, absl::StrFormat("at least %.2f", kWanted),
            absl::StrCat("measured on ", r.cores, " cores"));
    }
    claims.push_back(std::move(c));
    if (r.scheme == "local") continue;
    Claim latency =
        OwnClaim("partime.real_latency", "on two devices a sample is through in two ticks");
    latency.unit = "ticks";
    if (!HadOwnCores(r.core_share)) {
      NotMade(&latency, "a device needs a core of its own");
    } else {
      Found(&latency, Origin::kMeasured, r.ticks());
      MetIf(&latency, r.ticks() <= 2.2, "at most 2.2",
            absl::StrCat("measured on ", r.cores, " cores"));
    }
    claims.push_back(std::move(latency));
  }
  return claims;
}

}  // namespace pipelab
