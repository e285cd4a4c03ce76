#include "experiments/inference/decode_times.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/zoo/gpt.h"
#include "pipelines/serving/generate.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr int64_t kWords = 256;
constexpr double kTwoDevices = 1.8;

absl::StatusOr<ModelGraph> Gpt(const DecodeSize& size) {
  GptConfig config;
  config.layers = size.layers;
  config.hidden = size.hidden;
  config.heads = size.hidden / 64;
  config.tokens = size.prompt + size.output;
  config.vocabulary = kWords;
  return BuildGpt(config);
}

std::vector<std::vector<int32_t>> Prompts(const DecodeSize& size) {
  std::vector<std::vector<int32_t>> prompts(size.requests);
  const CounterRng rng(1, "prompts");
  uint64_t n = 0;
  for (std::vector<int32_t>& prompt : prompts) {
    for (int64_t i = 0; i < size.prompt; ++i) {
      prompt.push_back(static_cast<int32_t>(rng.Below(n++, kWords)));
    }
  }
  return prompts;
}

absl::StatusOr<Generated> Decode(const ModelGraph& graph, const DecodeSize& size, int devices,
                                 int groups, int slots) {
  GenerateOptions options;
  options.prompts = Prompts(size);
  std::vector<Request> requests(size.requests);
  for (Request& request : requests) {
    request.prompt = size.prompt;
    request.output = size.output;
  }
  ServingOptions serving;
  serving.devices = devices;
  serving.groups = groups;
  serving.slots = slots;
  serving.cache_tokens = size.prompt + size.output;
  PIPELAB_ASSIGN_OR_RETURN(options.plan,
                           PlanPasses(std::move(requests), serving, ServingTimes::Unit()));
  options.set_weights = [](StageParameters*) { return absl::OkStatus(); };  // as drawn by seed
  return Generate(graph, options);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

absl::StatusOr<std::vector<DecodeRun>> MeasureDecoding(const DecodeSize& size) {
  std::vector<DecodeRun> runs;
  if (size.rounds == 0) return runs;
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, Gpt(size));
  PIPELAB_ASSIGN_OR_RETURN(const Generated serial, Decode(graph, size, 1, 1, 1));
  const double tokens = static_cast<double>(size.requests * size.output);
  for (const int devices : {1, 2, 4}) {
    DecodeRun run;
    run.devices = devices;
    run.groups = std::max(devices, 2);
    run.slots = size.slots;
    run.same_tokens = true;
    std::vector<double> rates, ratios;
    for (int round = 0; round < size.rounds; ++round) {
      PIPELAB_ASSIGN_OR_RETURN(const Generated one, Decode(graph, size, 1, run.groups, run.slots));
      PIPELAB_ASSIGN_OR_RETURN(const Generated made,
                               Decode(graph, size, devices, run.groups, run.slots));
      run.same_tokens = run.same_tokens && made.tokens == serial.tokens;
      rates.push_back(tokens / ToSeconds(made.trace.makespan));
      ratios.push_back(ToSeconds(one.trace.makespan) / ToSeconds(made.trace.makespan));
    }
    run.tokens_per_second = Median(rates);
    run.over_one_device = Median(ratios);
    runs.push_back(run);
  }
  return runs;
}

Table DecodeTable(const DecodeSize& size, const std::vector<DecodeRun>& runs) {
  Table t("decode_runs", absl::StrCat("A GPT of ", size.layers, " blocks, ", size.hidden,
                                      " wide, decodes ", size.requests, " requests of ",
                                      size.prompt, " + ", size.output, " tokens here"));
  t.AddKey("devices");
  t.AddKey("groups");
  t.AddKey("slots");
  t.AddColumn({"same", "tokens as in serial decoding", "", "", Origin::kMeasured, 0});
  t.AddColumn({"rate", "tokens", "", "1/s", Origin::kMeasured, 0});
  t.AddColumn({"over_one", "over one device", "", "x", Origin::kMeasured, 2});
  for (const DecodeRun& run : runs) {
    t.AddRow({Label(static_cast<double>(run.devices)), Label(static_cast<double>(run.groups)),
              Label(static_cast<double>(run.slots)), Measured(run.same_tokens ? 1 : 0),
              Measured(run.tokens_per_second), Measured(run.over_one_device)});
  }
  t.AddNote(absl::StrCat(
      "Medians of ", size.rounds,
      " rounds; a ratio is of two runs that follow one another, with the same groups. Serial: one "
      "request after the other on one device. A device is a thread; with more devices than cores "
      "they share them."));
  return t;
}

std::vector<Claim> DecodeClaims(const std::vector<DecodeRun>& runs, const std::string& why_not) {
  Claim same =
      OwnClaim("decode.same_tokens", "4 stages and 4 groups decode the tokens of serial decoding");
  Claim two = OwnClaim("decode.two_devices", "tokens a second of two devices over one");
  two.unit = "x";
  if (runs.empty()) same.reason = two.reason = why_not;
  for (const DecodeRun& run : runs) {
    if (run.devices == 4) {
      Found(&same, Origin::kMeasured, run.same_tokens ? 1 : 0, run.same_tokens ? "all" : "not all");
      MetIf(&same, run.same_tokens, "all", "sums of other numbers of rows round otherwise");
    } else if (run.devices == 2) {
      Found(&two, Origin::kMeasured, run.over_one_device);
      MetIf(&two, run.over_one_device >= kTwoDevices, "at least 1.8 x",
            "the two threads share caches, memory and whatever else runs on the machine");
    }
  }
  return {std::move(same), std::move(two)};
}

}  // namespace pipelab
