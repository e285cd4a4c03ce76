#include "experiments/report/sample.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "pipelines/cost/cost_table.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"

namespace pipelab {
namespace {

Table SchemeTable(const SampleRun& gpipe, const SampleRun& one) {
  Table t("schemes", "Two schemes & one model");
  t.AddKey("scheme");
  t.AddKey("devices", "devices x virtual stages");
  t.AddColumn({"loss", "loss after 50 steps", "", "nats/token", Origin::kMeasured, 4});
  t.AddColumn({"equals_serial", "equals serial", "", "", Origin::kComputed});
  t.AddColumn({"step_time", "step time", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"published_time", "step time in the paper", "", "ms", Origin::kPublished, 1});
  t.AddColumn({"bubble", "bubble", "", "%", Origin::kSimulated, 1});
  const auto bubble = [](const SampleRun& r) {
    return Simulated(ToPercent(Analyze(r.program, r.trace)->overall.bubble));
  };
  t.AddRow({Label("gpipe"), Label("4 x 1"), Measured(1.2345678), Computed("bit-equal"),
            Measured(41.26), Published(40.0, "read"), bubble(gpipe)});
  t.AddRow({Label("1F1B, <flush> & \"co\""), Label("4 x 1"), Measured(1.25),
            Computed("within 1e-6"), Missing("the run was <interrupted>"), Missing("not printed"),
            bubble(one).WithNote("one forward, one backward")});
  t.AddNote("Both schemes see the same weights & data.");
  return t;
}

Program MakeProgram(const std::string& scheme, int devices, int micro_batches, bool recompute) {
  SchemeParams params;
  params.devices = devices;
  params.micro_batches = micro_batches;
  params.recompute = recompute;
  auto schedule = MakeSchedule(scheme, params);
  CHECK(schedule.ok()) << schedule.status();
  auto program = Lower(*std::move(schedule), {});
  CHECK(program.ok()) << program.status();
  return *std::move(program);
}

SampleRun Simulated(Program program, const CostTable& costs) {
  auto trace = Simulate(program, costs);
  CHECK(trace.ok()) << trace.status();
  return {std::move(program), *std::move(trace)};
}

// With bytes: what a stage's forward keeps and what its parameters take.
CostTable SampleBytes(const Program& program) {
  CostTable costs = CostTable::Unit(program.schedule);
  for (StageCost& stage : costs.stages) {
    StageMemory& m = stage.memory;
    m.kept = m.forward_peak = m.forward_peak_kept = Bytes(20 << 20);
    m.weights = m.gradients = Bytes(10 << 20);
    m.optimizer = Bytes(20 << 20);
    m.state = Bytes(40 << 20);
  }
  return costs;
}

}  // namespace

SampleRun SimulateSample(const std::string& scheme, int devices, int micro_batches,
                         bool recompute) {
  Program program = MakeProgram(scheme, devices, micro_batches, recompute);
  CostTable costs = CostTable::Unit(program.schedule);
  costs.hop_latency = Nanoseconds(250000);
  costs.host_bandwidth = BytesPerSecond(2000);
  for (StageCost& s : costs.stages) s.step = Nanoseconds(400000);
  return Simulated(std::move(program), costs);
}

SampleRun SimulateIdeal(const std::string& scheme, int devices, int micro_batches) {
  Program program = MakeProgram(scheme, devices, micro_batches, false);
  const CostTable costs = CostTable::Unit(program.schedule);
  return Simulated(std::move(program), costs);
}

Trace AsMeasured(const SampleRun& simulated) {
  Trace t = simulated.trace;
  t.origin = TraceOrigin::kMeasured;
  for (size_t d = 0; d < t.devices.size(); ++d) {
    DeviceTrace& device = t.devices[d];
    for (size_t n = 0; n < device.spans.size(); ++n) {
      Span& s = device.spans[n];
      const OpCode op = simulated.program.instructions[d][n].op;
      const int64_t duration = s.end_ns - s.begin_ns;
      const bool works = op != OpCode::kWait;
      // Every span ends 1 % early: the rest is dispatch.
      s.end_ns -= duration / 100;
      s.cpu_ns = works ? duration * 9 / 10 : 0;
      device.library_ns.push_back(op == OpCode::kCompute ? duration * 3 / 4 : 0);
    }
  }
  return t;
}

Environment SampleEnvironment() {
  Environment env;
  env.date = "2024-05-01T12:00:00Z";
  env.commit = "0123456789abcdef0123456789abcdef01234567";
  env.modified = true;
  env.compiler = "gcc 12.2.0";
  env.build = "opt";
  env.cpu = "A Processor(R) @ 2.00GHz";
  env.cores = 2;
  env.gpu = "none";
  env.os = "Debian GNU/Linux 12 (bookworm)";
  env.packages = {{"libabsl-dev", "20220623.1-1"}, {"libdnnl-dev", "2.6.3-1"}};
  return env;
}

Report SampleReport() {
  ReportOptions options;
  options.name = "sample";
  options.title = "A sample <report> & its parts";
  options.summary = "First paragraph: 1 < 2 & \"quotes\".\n\nSecond paragraph.";
  options.command = "tools/bazel run //experiments:sample -- --steps 50 --note 'a<b'";
  options.seed = 7;
  options.environment = SampleEnvironment();
  Report report(std::move(options));
  report.AddConfig("steps", 50);
  report.AddConfig("learning_rate", 0.1);
  report.AddConfig("schemes", "gpipe,<1f1b>");
  report.AddConfig("ties", false);

  const SampleRun gpipe = SimulateSample("gpipe", 4, 8);
  const SampleRun one = SimulateSample("1f1b", 4, 8);
  report.AddTable(SchemeTable(gpipe, one));
  const CostTable bytes = SampleBytes(gpipe.program);
  report.AddTimeline("gpipe", gpipe.program, gpipe.trace, &bytes);
  report.AddTimeline("1F1B <&>", one.program, one.trace);
  report.AddTimeline("1F1B <&>", one.program, AsMeasured(one));
  Series serial, a, b;
  serial.name = "serial";
  for (int i = 0; i < 50; ++i) serial.values.push_back(2.5 + 4 / (1 + 0.2 * i));
  a.name = "gpipe";
  a.values = serial.values;
  b.name = "1F1B <&>";
  for (double v : serial.values) b.values.push_back(v + 0.05);
  report.AddLossCurves("Training loss", "loss [nats/token]", {serial, a, b});
  report.AddNote("The machine has fewer cores than the pipeline has devices: a & b <c>.");
  return report;
}

}  // namespace pipelab
