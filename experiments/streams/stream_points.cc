#include "experiments/streams/stream_points.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/zoo/conv_chain.h"
#include "pipelines/analysis/arrivals.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_cache.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kPaper[] = "PARTIME (arXiv 2210.09147), abstract";
constexpr int kSamples = 32;
constexpr int kMostDevices = 8;
constexpr int64_t kArrivals = 10000;

constexpr TickKind kKinds[] = {TickKind::kTraining, TickKind::kSlowCopies, TickKind::kInference};

const char* NameOf(TickKind kind) {
  switch (kind) {
    case TickKind::kTraining:
      return "training";
    case TickKind::kSlowCopies:
      return "training, copies not hidden";
    case TickKind::kInference:
      return "inference";
  }
  return "";
}

absl::StatusOr<StepPrediction> PredictTick(StepCache* cache, TickKind kind, int devices,
                                           int samples) {
  StepConfig c;
  c.scheme = kind == TickKind::kInference ? "over_time_inference" : "over_time";
  c.overlap_pipeline = kind != TickKind::kSlowCopies;
  c.pipeline = devices;
  c.micro_batches = samples;
  c.cut = CutRule::kLayers;
  return PredictStep(cache, c);
}

absl::StatusOr<StreamPoint> PointOf(StepCache* cache, TickKind kind, int devices) {
  StreamPoint p;
  p.kind = kind;
  p.devices = devices;
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction few, PredictTick(cache, kind, devices, kSamples));
  PIPELAB_ASSIGN_OR_RETURN(const StepPrediction many,
                           PredictTick(cache, kind, devices, 2 * kSamples));
  p.tick = Nanoseconds((many.step_time - few.step_time).value() / kSamples);
  std::vector<Nanoseconds> latencies = SampleLatencies(few.step.program, few.trace);
  std::nth_element(latencies.begin(), latencies.begin() + kSamples / 2, latencies.end());
  p.latency = latencies[kSamples / 2];
  Nanoseconds longest, sum;
  for (const StageCost& s : few.step.costs.stages) {
    Nanoseconds stage = s.forward;
    if (kind != TickKind::kInference) stage += s.backward_input + s.backward_weight;
    longest = std::max(longest, stage);
    sum += stage;
  }
  p.longest = longest / sum * devices;
  return p;
}

}  // namespace

absl::StatusOr<std::vector<StreamPoint>> StreamPoints(const std::vector<ClusterSpec>& clusters) {
  std::vector<StreamPoint> points;
  for (const ClusterSpec& cluster : clusters) {
    for (int64_t layers : {30, 150}) {
      for (int64_t side : {256, 1024}) {
        ConvChainConfig config;
        config.layers = layers;
        config.height = config.width = side;
        PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, BuildConvChain(config));
        StepModel on;
        on.model = &model;
        on.cluster = &cluster;
        on.type = NumberType::kFp32;
        StepCache cache(on);
        for (const TickKind kind : kKinds) {
          Nanoseconds alone;
          for (int devices = 1; devices <= kMostDevices; devices *= 2) {
            PIPELAB_ASSIGN_OR_RETURN(StreamPoint p, PointOf(&cache, kind, devices));
            if (devices == 1) alone = p.tick;
            p.cluster = cluster.name;
            p.layers = layers;
            p.side = side;
            p.alone = alone;
            points.push_back(std::move(p));
          }
        }
      }
    }
  }
  return points;
}

Table StreamTable(const std::vector<StreamPoint>& points) {
  Table t("speedup", "A stream of images through a chain of 5 x 5 convolutions of 32 channels");
  t.AddKey("cluster");
  t.AddKey("tick_is", "a tick is");
  t.AddKey("layers");
  t.AddKey("side");
  t.AddKey("devices", "P");
  t.AddColumn({"tick", "tick", "", "ms", Origin::kSimulated, 2});
  t.AddColumn({"speedup", "over one device", "speed-up", "x", Origin::kSimulated, 2});
  t.AddColumn({"latency", "latency", "", "ms", Origin::kSimulated, 2});
  t.AddColumn({"ticks", "latency in ticks", "in ticks", "", Origin::kSimulated, 2});
  t.AddColumn({"longest", "longest stage over the mean", "longest", "x", Origin::kSimulated, 2});
  for (const StreamPoint& p : points) {
    t.AddRow({Label(p.cluster), Label(NameOf(p.kind)), Label(static_cast<double>(p.layers)),
              Label(static_cast<double>(p.side)), Label(p.devices), Simulated(ToMs(p.tick)),
              Simulated(p.speedup()), Simulated(ToMs(p.latency)), Simulated(p.latency / p.tick),
              Simulated(p.longest)});
  }
  t.AddNote(
      "A tick of training is a forward, a backward and an optimizer step of each stage, that of "
      "inference a forward, in float32. Copies that are not hidden keep the devices at both ends "
      "busy. Latency is from a sample's first stage to its last one.");
  return t;
}

Table ArrivalTable(const StreamPoint& p) {
  Table t("arrivals",
          absl::StrCat(kArrivals, " samples that arrive evenly: ", p.layers, " layers, ", p.side,
                       " x ", p.side, ", P = ", p.devices, ", 4 places to wait"));
  t.AddKey("when_full", "when full");
  t.AddKey("rate", "arrivals a tick");
  t.AddColumn({"taken", "taken", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"dropped", "dropped", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"blocked", "waited at their source", "blocked", "%", Origin::kSimulated, 1});
  t.AddColumn({"median", "latency, median", "median", "ms", Origin::kSimulated, 2});
  t.AddColumn({"p99", "latency, 99th percentile", "99 %", "ms", Origin::kSimulated, 2});
  for (const WhenFull when : {WhenFull::kBlock, WhenFull::kDropOldest}) {
    for (const double rate : {0.5, 0.9, 1.0, 1.1, 2.0}) {
      StreamRules rules;
      rules.tick = p.tick;
      rules.latency = p.latency;
      rules.places = 4;
      rules.when_full = when;
      const Nanoseconds period(std::llround(static_cast<double>(p.tick.value()) / rate));
      const StreamFigures f = RunArrivals(EvenArrivals(kArrivals, period), rules);
      const auto share = [](int64_t count) {
        return Simulated(100.0 * static_cast<double>(count) / kArrivals);
      };
      t.AddRow({Label(when == WhenFull::kBlock ? "wait" : "drop the oldest"),
                Label(absl::StrCat(rate)), share(f.taken), share(f.dropped), share(f.blocked),
                Simulated(ToMs(f.median)), Simulated(ToMs(f.p99))});
    }
  }
  return t;
}

namespace {

Claim SpeedupClaim(const std::vector<StreamPoint>& points, TickKind kind, double least) {
  const bool training = kind == TickKind::kTraining;
  Claim c = PaperClaim(training ? "partime.speedup" : "partime.inference",
                       absl::StrCat("nearly linear speed-up on 8 GPUs, ",
                                    training ? "with backward" : "forwards alone"),
                       kPaper, "read");
  c.unit = "x";
  std::vector<RangeValue> values;
  std::vector<std::string> texts;
  double first = 0;
  std::string uneven;
  for (const StreamPoint& p : points) {
    if (p.devices != kMostDevices || p.cluster != points[0].cluster || p.kind != kind) continue;
    const std::string name = absl::StrCat(p.layers, " layers at ", p.side);
    if (first == 0) first = p.speedup();
    texts.push_back(absl::StrFormat("%.2f x (%s)", p.speedup(), name));
    values.push_back({name, p.speedup() >= least});
    uneven = absl::StrFormat("%s%s%.2f", uneven, uneven.empty() ? "" : ", ", p.longest);
  }
  Published(&c, kMostDevices);
  Found(&c, Origin::kSimulated, first, absl::StrJoin(texts, ", "));
  MetOverRange(&c, "the network", values, absl::StrCat("at least ", least, " x"),
               absl::StrCat("whole layers do not divide by 8: the longest stage is ", uneven,
                            " of the mean one"));
  return c;
}

}  // namespace

std::vector<Claim> StreamClaims(const std::vector<StreamPoint>& points) {
  Claim latency = OwnClaim("partime.latency", "a sample is through in a tick a stage");
  latency.unit = "ticks";
  std::vector<RangeValue> in_time;
  double most = 0;
  for (const StreamPoint& p : points) {
    if (p.kind != TickKind::kTraining) continue;
    const double ticks = p.latency / p.tick / p.devices;
    most = std::max(most, ticks);
    in_time.push_back(
        {absl::StrCat("P = ", p.devices, ", ", p.layers, " layers at ", p.side, ", ", p.cluster),
         ticks <= 1.1});
  }
  Found(&latency, Origin::kSimulated, most, absl::StrFormat("at most %.2f ticks a stage", most));
  MetOverRange(&latency, "network, P and machine", in_time, "at most 1.1 ticks a stage",
               "a stage that is faster than the longest one runs ahead, and its samples wait");
  return {SpeedupClaim(points, TickKind::kTraining, 7.5),
          SpeedupClaim(points, TickKind::kInference, 7.7), latency};
}

}  // namespace pipelab
