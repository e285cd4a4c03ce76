// Formulas of schedules.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/formulas/published_formulas.h"
#include "experiments/simulate/simulated_run.h"
#include "pipelines/ir/versions.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A schedule at one size, simulated.
struct Point {
  SchemeParams sizes;
  Schedule schedule;
  RunFigures figures;

  double p() const { return sizes.devices; }
  double m() const { return sizes.micro_batches; }
  double v() const { return sizes.virtual_stages; }
  // Idle over compute.
  double bubble_over_compute() const { return figures.bubble / (1 - figures.bubble); }
  double Most(double (*of)(const DeviceFigures&)) const {
    double most = 0;
    for (const DeviceFigures& d : figures.devices) most = std::max(most, of(d));
    return most;
  }
  // Activations of a stage as a pipeline with one stage per device has them.
  double most_in_flight() const {
    return Most([](const DeviceFigures& d) { return double(d.peak_in_flight); }) / Parts();
  }
  double least_in_flight() const {
    double least = most_in_flight();
    for (const DeviceFigures& d : figures.devices)
      least = std::min(least, d.peak_in_flight / Parts());
    return least;
  }
  double weights() const {  // of such a stage, on device 0
    double held = 0;
    for (const auto& replica : schedule.placement.groups) {
      for (const auto& group : replica) held += std::count(group.begin(), group.end(), 0);
    }
    return held / Parts();
  }
  // The idle time of the device that idles most between its own first and last action: what the
  // next step cannot fill.
  double idle_within() const {
    return Most([](const DeviceFigures& d) { return d.span - d.busy; });
  }

 private:
  // Stages of one copy of the model for each device of the pipeline.
  double Parts() const {
    return static_cast<double>(schedule.num_stages()) / static_cast<double>(sizes.devices);
  }
};

SimulatedTimes EqualTimes() {  // t_b = t_f
  SimulatedTimes times;
  times.forward = "2";
  return times;  // I = W = 1
}

absl::StatusOr<Point> Simulated(const std::string& scheme, const SchemeParams& sizes,
                                const SimulatedTimes& times) {
  Point point;
  point.sizes = sizes;
  PIPELAB_ASSIGN_OR_RETURN(point.schedule, MakeSchedule(scheme, sizes));
  PIPELAB_ASSIGN_OR_RETURN(const SimulatedRun run, RunSimulated(point.schedule, times));
  point.figures = FiguresOf(run);
  return point;
}

using Formula = std::function<double(const Point&)>;

// What a formula is of: sizes, published and simulated values.
struct Sweep {
  std::string scheme;
  std::vector<SchemeParams> sizes;
  Formula low, high, ours;
  SimulatedTimes times = {};
};

absl::Status Add(const Sweep& sweep, FormulaGroup* group) {
  for (const SchemeParams& sizes : sweep.sizes) {
    PIPELAB_ASSIGN_OR_RETURN(const Point point, Simulated(sweep.scheme, sizes, sweep.times));
    FormulaCell cell;
    cell.scheme = sweep.scheme;
    cell.sizes =
        absl::StrCat("P=", sizes.devices, " M=", sizes.micro_batches,
                     sizes.virtual_stages > 0 ? absl::StrCat(" V=", sizes.virtual_stages) : "",
                     sizes.replicas > 0 ? absl::StrCat(" replicas=", sizes.replicas) : "",
                     sizes.slices > 0 ? absl::StrCat(" slices=", sizes.slices) : "");
    cell.low = sweep.low(point);
    cell.high = sweep.high ? sweep.high(point) : cell.low;
    cell.ours = sweep.ours(point);
    group->cells.push_back(std::move(cell));
  }
  return absl::OkStatus();
}

// P from 2 to 16, M = P, 2 P, 4 P.
std::vector<SchemeParams> Grid(const std::vector<int>& virtual_stages = {0}, int least_devices = 2,
                               int replicas = 0) {
  std::vector<SchemeParams> grid;
  for (int p = least_devices; p <= 16; p *= 2) {
    for (const int k : {1, 2, 4}) {
      for (const int v : virtual_stages) {
        SchemeParams sizes;
        sizes.devices = p;
        sizes.micro_batches = k * p;
        sizes.virtual_stages = v;
        sizes.replicas = replicas;
        grid.push_back(sizes);
      }
    }
  }
  return grid;
}

std::vector<SchemeParams> Devices(const std::vector<int>& devices, int times) {
  std::vector<SchemeParams> grid;
  for (const int p : devices) {
    grid.emplace_back();
    grid.back().devices = p;
    grid.back().micro_batches = times * p;
  }
  return grid;
}

class Groups {
 public:
  FormulaGroup& New(const char* id, const char* text, const char* source, const char* tag,
                    const char* unit = "") {
    groups_.emplace_back();
    FormulaGroup& g = groups_.back();
    g.id = absl::StrCat("formulas.", id);
    g.text = text;
    g.source = source;
    g.tag = tag;
    g.unit = unit;
    g.limit = 1e-9;
    g.reason = "the schedule that the catalogue makes is another than the paper's";
    return g;
  }
  void Fill(FormulaGroup& group, const std::vector<Sweep>& sweeps) {
    for (const Sweep& sweep : sweeps) {
      if (status_.ok()) status_ = Add(sweep, &group);
    }
  }
  absl::StatusOr<std::vector<FormulaGroup>> Take() {
    if (!status_.ok()) return status_;
    return std::move(groups_);
  }

 private:
  std::vector<FormulaGroup> groups_;
  absl::Status status_;
};

constexpr char kGpipe[] = "GPipe (arXiv 1811.06965)",
               kPipeOffload[] = "PipeOffload (arXiv 2503.01328)",
               kMegatron[] = "Megatron-LM (arXiv 2104.04473)",
               kBreadthFirst[] = "Breadth-First Pipeline Parallelism (arXiv 2211.05953)",
               kChimera[] = "Chimera (arXiv 2107.06925), table of schemes",
               kBitPipe[] = "BitPipe (arXiv 2410.19367)",
               kZeroBubble[] = "Zero bubble (arXiv 2401.10241)",
               kControllable[] = "Controllable memory (arXiv 2405.15362)",
               kDualPipe[] = "DualPipe (DeepSeek-V3)", kSlimPipe[] = "SlimPipe (arXiv 2504.14519)",
               kPipeDream[] = "PipeDream (SOSP 2019), 2BW";

void AddBubbles(Groups* all) {
  const Formula share = [](const Point& x) { return x.figures.bubble; };
  const Formula over_compute = [](const Point& x) { return x.bubble_over_compute(); };
  all->Fill(all->New("gpipe_bubble", "bubble (K - 1) / (M + K - 1)", kGpipe, "read"),
            {{"gpipe", Grid(), [](const Point& x) { return (x.p() - 1) / (x.m() + x.p() - 1); },
              nullptr, share}});
  all->Fill(all->New("1f1b_bubble", "bubble over compute (p - 1) / m", kMegatron, "read"),
            {{"1f1b", Grid(), [](const Point& x) { return (x.p() - 1) / x.m(); }, nullptr,
              over_compute}});
  all->Fill(all->New("megatron_batch_time", "time of a batch (b'/b + p - 1)(t_f + t_b)", kMegatron,
                     "read", "t_f"),
            {{"1f1b", Grid(), [](const Point& x) { return 3 * (x.m() + x.p() - 1); }, nullptr,
              [](const Point& x) { return x.figures.makespan; }}});
  const Formula looped = [](const Point& x) { return (x.p() - 1) / (x.v() * x.m()); };
  all->Fill(
      all->New("interleaved_bubble", "bubble over compute (p - 1) / (v m)", kMegatron, "read"),
      {{"interleaved", Grid({2, 4}), looped, nullptr, over_compute}});
  all->Fill(all->New("looped_bubble", "bubble over compute (N_PP - 1) / (N_mb N_loop)",
                     kBreadthFirst, "read"),
            {{"breadth_first", Grid({2, 4}), looped, nullptr, over_compute}});
}

void AddChimera(Groups* all) {
  const Formula share = [](const Point& x) { return x.figures.bubble; };
  const Formula unidirectional = [](const Point& x) { return (x.p() - 1) / (x.m() + x.p() - 1); };
  FormulaGroup& bubble = all->New(
      "chimera_bubble",
      "bubble with t_b = t_f: (D - 1) / (N + D - 1) of GPipe and DAPPLE, (D - 2f) / (2fN + D - 2f) "
      "of Chimera with 2f pipelines, N = D",
      kChimera, "read-2nd");
  std::vector<SchemeParams> units;  // N = D
  for (const SchemeParams& sizes : Grid({0}, 4, 2)) {
    if (sizes.micro_batches == sizes.devices) units.push_back(sizes);
  }
  std::vector<SchemeParams> four = units;
  for (SchemeParams& sizes : four) sizes.replicas = 4;
  const Formula chimera = [](const Point& x) {
    const double f2 = x.sizes.replicas;
    return (x.p() - f2) / (f2 * x.m() + x.p() - f2);
  };
  bubble.reason =
      "with 4 pipelines the table's formula is that of 2f times as many micro-batches as devices";
  all->Fill(bubble, {{"gpipe", Grid(), unidirectional, nullptr, share, EqualTimes()},
                     {"1f1b", Grid(), unidirectional, nullptr, share, EqualTimes()},
                     {"chimera", units, chimera, nullptr, share, EqualTimes()},
                     {"chimera", four, chimera, nullptr, share, EqualTimes()}});

  const Formula weights = [](const Point& x) { return x.weights(); };
  const Formula one = [](const Point&) { return 1.0; };
  const Formula replicas = [](const Point& x) { return double(x.sizes.replicas); };
  all->Fill(all->New("chimera_weights", "weights: M_w of GPipe and DAPPLE, 2f M_w of Chimera",
                     kChimera, "read-2nd", "M_w"),
            {{"gpipe", Grid(), one, nullptr, weights},
             {"1f1b", Grid(), one, nullptr, weights},
             {"chimera", units, replicas, nullptr, weights},
             {"chimera", four, replicas, nullptr, weights}});

  const Formula most = [](const Point& x) { return x.most_in_flight(); };
  const Formula least = [](const Point& x) { return x.least_in_flight(); };
  const Formula d = [](const Point& x) { return x.p(); };
  all->Fill(
      all->New("chimera_activations",
               "activations of the devices: N of GPipe, 1 to D of DAPPLE, D - D/2f + 1 to D of "
               "Chimera with 2f pipelines",
               kChimera, "read-2nd", "M_a"),
      {{"gpipe", Grid(), [](const Point& x) { return x.m(); }, nullptr, most},
       {"1f1b", Grid(), d, nullptr, most},
       {"chimera", units, d, nullptr, most},
       {"chimera", units, [](const Point& x) { return x.p() / 2 + 1; }, nullptr, least},
       {"chimera", four, d, nullptr, most},
       {"chimera", four, [](const Point& x) { return x.p() - x.p() / x.sizes.replicas + 1; },
        nullptr, least}});
}

void AddBitPipe(Groups* all) {
  const Formula share = [](const Point& x) { return x.figures.bubble; };
  all->Fill(
      all->New("bitpipe_bubble",
               "bubble: (D - 2) / (4N + D - 2) with t_b = t_f; (D - 2)(1 + k) / (6N + (D - 2)(1 "
               "+ k)) with t_b = 2 t_f and N = k D",
               kBitPipe, "derived"),
      {{"bitpipe", Grid(), [](const Point& x) { return (x.p() - 2) / (4 * x.m() + x.p() - 2); },
        nullptr, share, EqualTimes()},
       {"bitpipe", Grid(),
        [](const Point& x) {
          const double idle = (x.p() - 2) * (1 + x.m() / x.p());
          return idle / (6 * x.m() + idle);
        },
        nullptr, share}});
  all->Fill(all->New("bitpipe_activations", "activations of the devices: (3D/2 + 1)/2 to D",
                     kBitPipe, "derived", "M_a"),
            {{"bitpipe", Grid(), [](const Point& x) { return (1.5 * x.p() + 1) / 2; }, nullptr,
              [](const Point& x) { return x.least_in_flight(); }},
             {"bitpipe", Grid(), [](const Point& x) { return x.p(); }, nullptr,
              [](const Point& x) { return x.most_in_flight(); }}});
}

void AddZeroBubble(Groups* all) {
  // TF = TB = TW = 1. A device's own idle time between its first and its last action.
  const Formula idle = [](const Point& x) { return x.idle_within(); };
  FormulaGroup& sizes = all->New(
      "zero_bubble_sizes",
      "bubble: (p-1)(TF+TB+TW) of 1F1B, (p-1)(TF+TB-TW) of ZB-H1, (p-1)(TF+TB-2TW) of ZB-H2, all "
      "times equal",
      kZeroBubble, "read", "TF");
  all->Fill(sizes, {{"1f1b", Grid(), [](const Point& x) { return 3 * (x.p() - 1); }, nullptr, idle},
                    {"zb_h1", Grid(), [](const Point& x) { return x.p() - 1; }, nullptr, idle},
                    {"zb_h2", Devices({2, 4, 8, 16}, 4), [](const Point&) { return 0.0; }, nullptr,
                     idle}});
  const Formula most = [](const Point& x) { return x.most_in_flight(); };
  const Formula p = [](const Point& x) { return x.p(); };
  all->Fill(
      all->New("zero_bubble_activations", "peak activations: p of 1F1B and ZB-H1, 2p - 1 of ZB-H2",
               kZeroBubble, "read", "M_a"),
      {{"1f1b", Grid(), p, nullptr, most},
       {"zb_h1", Grid(), p, nullptr, most},
       {"zb_h2", Devices({2, 4, 8, 16}, 4), [](const Point& x) { return 2 * x.p() - 1; }, nullptr,
        most}});
  all->Fill(all->New("zbv_bubble", "ZB-V: no bubble where TF = TB = TW, with 2 p micro-batches",
                     kControllable, "read", "TF"),
            {{"zbv", Devices({2, 4, 8, 16}, 2), [](const Point&) { return 0.0; }, nullptr, idle}});
  FormulaGroup& controllable = all->New("controllable_activations",
                                        "peak activations against 1F1B's p: as many of ZB-V, a "
                                        "half of V-Half, a third of V-Min (p of "
                                        "16 to 64)",
                                        kControllable, "read", "M_a");
  controllable.limit = 0.15;
  controllable.reason = "a stage's own micro-batch more than the share, which few devices feel";
  all->Fill(controllable, {{"zbv", Devices({16, 32, 64}, 2), p, nullptr, most},
                           {"v_half", Devices({16, 32, 64}, 2),
                            [](const Point& x) { return x.p() / 2; }, nullptr, most},
                           {"v_min", Devices({16, 32, 64}, 2),
                            [](const Point& x) { return x.p() / 3; }, nullptr, most}});
}

// The share of what the same order would hold without a host.
double ShareOnDevice(const Point& x) {
  int64_t held = 0, most = 0;
  for (const Action& a : x.schedule.order[0]) {
    if (a.kind == ActionKind::kForward) most = std::max(most, ++held);
    if (a.kind == ActionKind::kBackwardWeight) --held;
  }
  return x.most_in_flight() * x.v() / static_cast<double>(most);
}

void AddPipeOffload(Groups* all) {
  // Each device has stages of one layer.
  FormulaGroup& constant =
      all->New("pipeoffload_constant",
               "PO-F: about four layers' activations on a device, however many devices and stages",
               kPipeOffload, "read", "layers");
  constant.limit = 0.25;
  constant.reason =
      "three are enough: the one in backward, the next on its way, the one in forward";
  all->Fill(constant, {{"po_f", Grid({2, 4}), [](const Point&) { return 4.0; }, nullptr,
                        [](const Point& x) { return x.most_in_flight() * x.v(); }}});
  FormulaGroup& half = all->New("pipeoffload_half",
                                "half of the stages offloaded, the longest-lived ones: the peak "
                                "falls by about 3/4 (of 32 and 64 devices)",
                                kPipeOffload, "read", "of the peak");
  half.differences = true;
  half.limit = 0.05;
  half.reason = "few stages on a device, or a short pipeline: what is on its way counts";
  std::vector<SchemeParams> sizes;
  for (const int v : {8, 16}) {
    for (SchemeParams& s : Devices({32, 64}, 4)) {
      s.virtual_stages = v;
      sizes.push_back(s);
    }
  }
  all->Fill(half, {{"po_h", sizes, [](const Point&) { return 0.25; }, nullptr, ShareOnDevice}});
}

void AddDualPipe(Groups* all) {
  FormulaGroup& g = all->New(
      "dualpipe",
      "DualPipe: bubble (PP/2 - 1)(F&B + B - 3W) where a forward and a backward that overlap take "
      "as long as both after one another; activations PP + 1, parameters 2x",
      kDualPipe, "read");
  SimulatedTimes pairs;
  pairs.atomic_pairs = true;
  const std::vector<SchemeParams> sizes = Devices({4, 8, 16}, 4);
  all->Fill(g, {{"dualpipe", sizes, [](const Point& x) { return (x.p() / 2 - 1) * (3 + 2 - 3); },
                 nullptr, [](const Point& x) { return x.figures.makespan - 3 * x.m(); }, pairs},
                {"dualpipe", sizes, [](const Point& x) { return x.p() + 1; }, nullptr,
                 [](const Point& x) { return x.most_in_flight(); }},
                {"dualpipe", sizes, [](const Point&) { return 2.0; }, nullptr,
                 [](const Point& x) { return x.weights(); }}});
}

void AddSlimPipe(Groups* all) {
  std::vector<SchemeParams> sizes;
  for (const int p : {2, 4, 8, 16}) {
    for (const int k : {1, 2, 4}) {
      sizes.push_back(Devices({p}, 1)[0]);
      sizes.back().slices = k * p;
    }
  }
  const Formula held = [](const Point& x) { return x.most_in_flight() / x.sizes.slices; };
  FormulaGroup& g = all->New("slimpipe_peak",
                             "SlimPipe: with n slices a device holds 1 + (P - 1)/n of a "
                             "micro-batch's activations of a stage, and 1F1B P",
                             kSlimPipe, "derived", "micro-batches");
  all->Fill(g, {{"seq1f1b", sizes, [](const Point& x) { return 1 + (x.p() - 1) / x.sizes.slices; },
                 nullptr, held},
                {"1f1b", Devices({2, 4, 8, 16}, 1), [](const Point& x) { return x.p(); }, nullptr,
                 [](const Point& x) { return x.most_in_flight(); }}});
}

void AddVersions(Groups* all) {
  const Formula first = [](const Point& x) {
    const std::vector<int> versions = LiveVersions(x.schedule);
    return double(*std::max_element(versions.begin(), versions.end()));
  };
  const Formula last = [](const Point& x) { return double(LiveVersions(x.schedule).back()); };
  const Formula p = [](const Point& x) { return x.p(); };
  const Formula one = [](const Point&) { return 1.0; };
  all->Fill(all->New("pipedream_versions",
                     "weight versions: stage k of n uses w(t-n+k), so n at the first and 1 at the "
                     "last; 2 of 2BW",
                     kPipeDream, "read-2nd"),
            {{"pipedream", Devices({2, 4, 8, 16}, 4), p, nullptr, first},
             {"pipedream", Devices({2, 4, 8, 16}, 4), one, nullptr, last},
             {"pipedream_2bw", Devices({2, 4, 8, 16}, 4), [](const Point&) { return 2.0; }, nullptr,
              first}});
}

}  // namespace

absl::StatusOr<std::vector<FormulaGroup>> ScheduleFormulas() {
  Groups all;
  AddBubbles(&all);
  AddChimera(&all);
  AddBitPipe(&all);
  AddZeroBubble(&all);
  AddPipeOffload(&all);
  AddDualPipe(&all);
  AddSlimPipe(&all);
  AddVersions(&all);
  return all.Take();
}

}  // namespace pipelab
