// What papers say of orders and places: who computes and sends what, and when.
#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiments/formulas/published_formulas.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

FormulaGroup OrderGroup(const char* id, const char* text, const char* source, const char* tag) {
  FormulaGroup g;
  g.id = absl::StrCat("formulas.", id);
  g.text = text;
  g.source = source;
  g.tag = tag;
  g.limit = 1e-9;
  g.reason = "the schedule that the catalogue makes is another than the paper's";
  return g;
}

void AddCell(std::string scheme, std::string of, double published, double ours,
             FormulaGroup* group) {
  FormulaCell cell;
  cell.scheme = std::move(scheme);
  cell.sizes = std::move(of);
  cell.low = cell.high = published;
  cell.ours = ours;
  group->cells.push_back(std::move(cell));
}

SchemeParams Sizes(int devices, int micro_batches, int virtual_stages = 0) {
  SchemeParams sizes;
  sizes.devices = devices;
  sizes.micro_batches = micro_batches;
  sizes.virtual_stages = virtual_stages;
  return sizes;
}

// 16 layers, each a stage, on 4 GPUs.
absl::StatusOr<FormulaGroup> LoopedPlacement() {
  FormulaGroup g =
      OrderGroup("looped_placement",
                 "placement of 16 layers on 4 GPUs: GPU 0 has layers 0, 4, 8 and 12, GPU 1 "
                 "has 1, 5, 9 and 13, ...",
                 "Breadth-First Pipeline Parallelism (arXiv 2211.05953)", "read-2nd");
  PIPELAB_ASSIGN_OR_RETURN(const Schedule s, MakeSchedule("breadth_first", Sizes(4, 4, 4)));
  for (int layer = 0; layer < s.num_stages(); ++layer) {
    AddCell("breadth_first", absl::StrCat("GPU of layer ", layer), layer % 4,
            s.placement.groups[0][layer][0], &g);
  }
  return g;
}

// Messages that a device with a neighbour on both sides sends in a step.
absl::StatusOr<double> SentByMiddle(const char* scheme, const SchemeParams& sizes) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule s, MakeSchedule(scheme, sizes));
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(std::move(s), {}));
  const auto& instructions = program.instructions[1];
  return static_cast<double>(
      std::count_if(instructions.begin(), instructions.end(),
                    [](const Instruction& i) { return i.op == OpCode::kSend; }));
}

absl::StatusOr<FormulaGroup> InterleavedMessages() {
  FormulaGroup g = OrderGroup(
      "interleaved_messages",
      "v virtual stages per device communicate v times as much (messages of a device with "
      "two neighbours)",
      "Megatron-LM (arXiv 2104.04473)", "read");
  for (const int p : {4, 8}) {
    for (const int v : {2, 4}) {
      PIPELAB_ASSIGN_OR_RETURN(const double once, SentByMiddle("1f1b", Sizes(p, 2 * p)));
      PIPELAB_ASSIGN_OR_RETURN(const double sent, SentByMiddle("interleaved", Sizes(p, 2 * p, v)));
      AddCell("interleaved", absl::StrCat("P=", p, " M=", 2 * p, " V=", v), v, sent / once, &g);
    }
  }
  return g;
}

// Forwards of a device before its first backward.
int WarmUp(const Schedule& s, int device) {
  const auto& order = s.order[device];
  return static_cast<int>(
      std::find_if(order.begin(), order.end(),
                   [](const Action& a) { return a.kind != ActionKind::kForward; }) -
      order.begin());
}

absl::StatusOr<FormulaGroup> SequentialWarmUp() {
  FormulaGroup g =
      OrderGroup("sequential_warm_up",
                 "forwards of stage i of S before its first backward, sequential 1F1B: "
                 "S + 1 - i",
                 "GraphPipe (arXiv 2406.17145)", "read");
  for (const int p : {2, 4, 8, 16}) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule s, MakeSchedule("1f1b", Sizes(p, 2 * p)));
    for (int d = 0; d < p; ++d) {
      AddCell("1f1b", absl::StrCat("P=", p, " M=", 2 * p, " i=", d + 1), p - d, WarmUp(s, d), &g);
    }
  }
  return g;
}

constexpr char kBitPipePaper[] = "BitPipe (arXiv 2410.19367)";

absl::StatusOr<FormulaGroup> BitPipeWarmUp() {
  FormulaGroup g =
      OrderGroup("bitpipe_warm_up",
                 "warm-up forwards of device r, before the pairs of 1F1B: 3D/2 + min(r, D-1-r)",
                 kBitPipePaper, "read");
  for (const int p : {4, 8, 16}) {
    PIPELAB_ASSIGN_OR_RETURN(const Schedule s, MakeSchedule("bitpipe", Sizes(p, p)));
    for (int d = 0; d < p; ++d) {
      // The last one before a backward is the first pair's, and no warm-up.
      AddCell("bitpipe", absl::StrCat("P=", p, " M=", p, " device ", d),
              1.5 * p + std::min(d, p - 1 - d), WarmUp(s, d) - 1, &g);
    }
  }
  return g;
}

// As the authors number it: a micro-batch m is m in the first half of the model, m + N in the
// second.
absl::StatusOr<FormulaGroup> BitPipeOrder() {
  constexpr int kSize = 4;
  constexpr std::array<std::array<int, 2 * kSize>, kSize> kPublished = {{{0, 1, 2, 6, 3, 7, 4, 5},
                                                                         {0, 2, 1, 3, 6, 4, 7, 5},
                                                                         {2, 0, 3, 1, 4, 6, 5, 7},
                                                                         {2, 3, 0, 4, 1, 5, 6, 7}}};
  FormulaGroup g = OrderGroup("bitpipe_order", "order of the forwards on each device, D = 4, N = 4",
                              kBitPipePaper, "read");
  PIPELAB_ASSIGN_OR_RETURN(const Schedule s, MakeSchedule("bitpipe", Sizes(kSize, kSize)));
  for (int d = 0; d < kSize; ++d) {
    size_t n = 0;
    for (const Action& a : s.order[d]) {
      if (a.kind != ActionKind::kForward) continue;
      AddCell("bitpipe", absl::StrCat("device ", d, " forward ", n), kPublished[d][n],
              a.micro_batch + (a.stage < kSize ? 0 : kSize), &g);
      ++n;
    }
  }
  return g;
}

}  // namespace

absl::StatusOr<std::vector<FormulaGroup>> OrderFormulas() {
  std::vector<FormulaGroup> groups;
  for (const auto& make :
       {LoopedPlacement, InterleavedMessages, SequentialWarmUp, BitPipeWarmUp, BitPipeOrder}) {
    PIPELAB_ASSIGN_OR_RETURN(FormulaGroup group, make());
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace pipelab
