// Piper's inputs (Tarnawski et al. 2021): a graph of nodes, each with variants, and the machine.
//
//   PIPELAB_ASSIGN_OR_RETURN(PiperProblem p,
//                            ParsePiper(text, "bert.json", PiperTimeUnit::kSeconds));
//   for (const PiperVariant& v : p.nodes[3].variants.at(2)) ...   // tensor-parallel on two devices
//   PIPELAB_ASSIGN_OR_RETURN(LayerList list, ToLayerList(p, "bert", "bert.json"));
//
// Numbers are kept as the file has them: bytes with fractions, and times in the unit of the file,
// which it does not say. Piper adds times to bytes / bandwidth, so seconds are meant; some files
// hold milliseconds all the same. Keys that Piper does not have are ignored: all of its own must
// be there.
//
// Errors: InvalidArgument, one line with file, key and reason.
#ifndef PIPELAB_MODELS_FILES_PIPER_JSON_H_
#define PIPELAB_MODELS_FILES_PIPER_JSON_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/files/layer_list.h"
#include "nlohmann/json.hpp"
#include "tools/base/units.h"

namespace pipelab {

enum class PiperTimeUnit : uint8_t { kSeconds, kMilliseconds };

// One way to run a node on a number of devices (TMPC). Of one micro-batch and of each device.
struct PiperVariant {
  std::string id;   // "vanilla", "activation recomp"
  double time = 0;  // forward and backward (timePerSample)
  double parameter_bytes = 0;
  double in_flight_bytes = 0;  // of each micro-batch in flight (memoryUsageA)
  double fixed_bytes = 0;      // memoryUsageB
  // Bytes that tensor parallelism moves for an edge, by the node at its other end: in the forward
  // from a predecessor, in the backward from a successor (syncTimeFw, syncTimeBw).
  std::map<int, double> forward_sync_bytes, backward_sync_bytes;
};

struct PiperNode {
  int64_t id = 0;
  std::string name;  // several nodes may have it
  // By tensor-parallel degree; none is empty.
  std::map<int, std::vector<PiperVariant>> variants;
};

struct PiperEdge {
  int from = 0, to = 0;  // indices of nodes, not ids
  double bytes = 0;      // communicationCost
};

// Without a cycle; ids and edges are there once, and every variant has its node's edges.
struct PiperProblem {
  double memory_bytes = 0;  // of a device
  int64_t devices = 0;
  BytesPerSecond bandwidth;
  int64_t micro_batches = 0;  // of a batch, over all copies of a stage
  std::vector<PiperNode> nodes;
  std::vector<PiperEdge> edges;
  PiperTimeUnit unit = PiperTimeUnit::kSeconds;

  // A variant's time in seconds.
  double Seconds(double time) const {
    return unit == PiperTimeUnit::kMilliseconds ? time * 1e-3 : time;
  }
};

// `what` names the file; the unit is that of its times.
absl::StatusOr<PiperProblem> ParsePiper(absl::string_view text, absl::string_view what,
                                        PiperTimeUnit unit = PiperTimeUnit::kSeconds);
absl::StatusOr<PiperProblem> ReadPiper(const nlohmann::json& root, absl::string_view what,
                                       PiperTimeUnit unit = PiperTimeUnit::kSeconds);
std::string PiperToJson(const PiperProblem& problem);

// The variant without tensor parallelism and recomputing: "vanilla" of degree 1, else its first.
// Null: the node has none of degree 1.
const PiperVariant* PlainVariant(const PiperNode& node);

// The plain variants as layers; names that several nodes have get "#ID". A sample of the list is a
// micro-batch of the file. What a micro-batch keeps in flight stands for what the layer keeps, its
// inputs included. Lost: all other variants, the machine, memoryUsageB (parameters give weights,
// gradients and optimizer state of their own), and different bytes on the edges of one node (the
// largest counts). Assumed: a third of the time is the forward, and half of the rest the weight
// part, where there are parameters of 4 bytes each. Every sink is an output.
// InvalidArgument names the node without a plain variant.
absl::StatusOr<LayerList> ToLayerList(const PiperProblem& problem, absl::string_view name,
                                      absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_PIPER_JSON_H_
