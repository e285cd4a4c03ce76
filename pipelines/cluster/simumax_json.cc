#include "pipelines/cluster/simumax_json.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "pipelines/cluster/device_class.h"
#include "pipelines/cluster/kernel_rates.h"
#include "pipelines/cluster/shape_rates.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024, kMostShare = 10;
constexpr int64_t kNodes = 128;

// The number must be above 0 and at most `most`.
absl::StatusOr<double> ReadAbove0(const JsonObject& object, absl::string_view key, double most) {
  PIPELAB_ASSIGN_OR_RETURN(const double value, object.Number(key));
  if (value > 0 && value <= most) return value;
  return object.Error(key, "must be above 0 and at most ", most, ", not ", value);
}

// "m=4096, k=8192, layout=TN".
class ShapeWords {
 public:
  ShapeWords(const JsonObject& list, std::string key) : list_(list), key_(std::move(key)) {
    for (absl::string_view word : absl::StrSplit(key_, ", ")) {
      const std::pair<std::string, std::string> pair =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      words_.insert(pair);
    }
  }

  // Empty where it is not there.
  std::string Text(const std::string& name) const {
    const auto at = words_.find(name);
    return at == words_.end() ? "" : at->second;
  }
  absl::StatusOr<int64_t> Size(const std::string& name) const {
    constexpr int64_t kMost = int64_t{1} << 20;
    int64_t size = 0;
    if (absl::SimpleAtoi(Text(name), &size) && size >= 1 && size <= kMost) return size;
    return list_.Error(key_, "must have ", name, "= and a number from 1 to ", kMost);
  }
  absl::Status Unknown(const std::string& name, absl::string_view known) const {
    return list_.Error(key_, name, " must be ", known, ", not \"", Text(name), "\"");
  }

 private:
  const JsonObject& list_;
  const std::string key_;
  std::map<std::string, std::string> words_;
};

// x and w of y_MN = x_MK w_KN are A and B of the forward's TN; gradients name the sizes of their
// own products. `b` is a micro-batch's samples, and multiplies rows. The answer is false where the
// file has what is not ours.
absl::StatusOr<bool> ReadProduct(const ShapeWords& words, ShapeRate* shape) {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t b, words.Size("b"));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t m, words.Size("m"));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t n, words.Size("n"));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t k, words.Size("k"));
  const std::string layout = words.Text("layout");
  if (layout == "TN") {
    *shape = {KernelPass::kForward, b * m, n, k};
  } else if (layout == "NN") {
    *shape = {KernelPass::kInputGradient, b * m, k, n};
  } else if (layout == "NT") {
    *shape = {KernelPass::kWeightGradient, b * k, m, n};
    return words.Text("accumulate") == "True" && words.Text("out_dtype") == "fp32";
  } else {
    return words.Unknown("layout", "TN, NN or NT");
  }
  return true;
}

absl::StatusOr<bool> ReadGrouped(const ShapeWords& words, ShapeRate* shape) {
  PIPELAB_ASSIGN_OR_RETURN(shape->groups, words.Size("ng"));
  PIPELAB_ASSIGN_OR_RETURN(shape->m, words.Size("M"));
  PIPELAB_ASSIGN_OR_RETURN(shape->n, words.Size("N"));
  PIPELAB_ASSIGN_OR_RETURN(shape->k, words.Size("K"));
  const std::string stage = words.Text("stage");
  if (stage == "fwd") {
    shape->pass = KernelPass::kForward;
  } else if (stage == "bwd_grad_act") {
    shape->pass = KernelPass::kInputGradient;
  } else if (stage == "bwd_grad_w") {
    shape->pass = KernelPass::kWeightGradient;
    return words.Text("accumulate") == "True" && words.Text("main_grad_dtype") == "fp32";
  } else {
    return words.Unknown("stage", "fwd, bwd_grad_act or bwd_grad_w");
  }
  return true;
}

absl::StatusOr<bool> ReadAttention(const ShapeWords& words, ShapeRate* shape) {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t samples, words.Size("batch"));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t heads, words.Size("head_num"));
  PIPELAB_ASSIGN_OR_RETURN(shape->m, words.Size("seq_len"));
  PIPELAB_ASSIGN_OR_RETURN(shape->k, words.Size("qk_head_dim"));
  shape->n = samples * heads;
  return true;
}

// The list of one kind of kernel, and its default share of `tflops`, 0 where it has none.
struct SimumaxKernels {
  std::vector<ShapeRate> shapes;
  double tflops = 0, share = 0;
};

template <typename Read>
absl::StatusOr<SimumaxKernels> ReadKernels(const JsonObject& ops, absl::string_view name,
                                           Read read) {
  SimumaxKernels kernels;
  if (!ops.Has(name)) return kernels;
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject op, ops.Object(name));
  PIPELAB_ASSIGN_OR_RETURN(kernels.tflops, ReadAbove0(op, "tflops", 1e6));
  PIPELAB_ASSIGN_OR_RETURN(kernels.share, op.Number("efficient_factor"));
  if (!(kernels.share >= 0 && kernels.share <= kMostShare)) {
    return op.Error("efficient_factor", "must be from 0 to ", kMostShare, ", not ", kernels.share);
  }
  if (!op.HasValue("accurate_efficient_factor")) return kernels;
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject list, op.Object("accurate_efficient_factor"));
  const std::vector<std::string> keys = list.Keys();
  if (keys.size() > ShapeRates::kMost) {
    return op.Error("accurate_efficient_factor", "must be at most ", ShapeRates::kMost,
                    " shapes, not ", keys.size());
  }
  std::vector<ShapeRate> strided;  // whose queries, keys and values are not contiguous
  for (const std::string& key : keys) {
    const ShapeWords words(list, key);
    ShapeRate shape;
    PIPELAB_ASSIGN_OR_RETURN(const bool ours, read(words, &shape));
    PIPELAB_ASSIGN_OR_RETURN(const double share, ReadAbove0(list, key, kMostShare));
    shape.tflops = share * kernels.tflops;
    if (ours) (words.Text("qkv_contiguous") == "False" ? strided : kernels.shapes).push_back(shape);
  }
  if (kernels.shapes.empty()) kernels.shapes = std::move(strided);
  return kernels;
}

class SimumaxSystem {
 public:
  SimumaxSystem(const JsonObject& file, std::string name) : file_(file), name_(std::move(name)) {}

  absl::StatusOr<ClusterSpec> Read() {
    ClusterSpec cluster;
    cluster.name = name_;
    cluster.title = absl::StrCat(name_, ", a system of SimuMax");
    cluster.device.name = name_;
    PIPELAB_RETURN_IF_ERROR(ReadDevice(&cluster.device));
    PIPELAB_RETURN_IF_ERROR(ReadLevels(&cluster));
    FillFromClass(DeviceClass::kGpu, &cluster.device);
    return cluster;
  }

 private:
  std::string Source(absl::string_view origin, absl::string_view what) const {
    return absl::StrCat(origin, ": SimuMax's system ", name_, ": ", what);
  }

  absl::Status ReadDevice(DeviceSpec* device) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject accelerator, file_.Object("accelerator"));
    PIPELAB_ASSIGN_OR_RETURN(const double memory, ReadAbove0(accelerator, "mem_gbs", 1e6));
    device->memory = {Bytes(std::llround(memory * kGib)), Source("published", "mem_gbs")};
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject bandwidths, accelerator.Object("bandwidth"));
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject memories, bandwidths.Object("default"));
    PIPELAB_ASSIGN_OR_RETURN(const double gbps, ReadAbove0(memories, "gbps", 1e9));
    PIPELAB_ASSIGN_OR_RETURN(const double share, ReadAbove0(memories, "efficient_factor", 1));
    PIPELAB_ASSIGN_OR_RETURN(const double latency, ReadAbove0(memories, "latency_us", 1e6));
    device->memory_bandwidth = {BytesPerSecond(gbps * kGib),
                                Source("published", "bandwidth.default, in 1024^3 bytes")};
    device->memory_efficiency =
        RampCurve(share, share * gbps * kGib, Nanoseconds(std::llround(latency * 1e3)));
    device->memory_efficiency.source = Source(
        "published", "bandwidth.default: efficient_factor, and latency_us for each operation");
    device->launch_overhead = {Nanoseconds(0),
                               "computed: it is in memory_efficiency, and products were timed one "
                               "behind the other"};
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject ops, accelerator.Object("op"));
    return ReadRates(ops, device);
  }

  absl::Status ReadRates(const JsonObject& ops, DeviceSpec* device) {
    auto rates = std::make_shared<KernelRates>();
    for (const auto& [type, prefix] :
         {std::make_pair(NumberType::kBf16, ""), std::make_pair(NumberType::kFp8, "fp8_")}) {
      const std::string name = absl::StrCat(prefix, "matmul");
      PIPELAB_ASSIGN_OR_RETURN(SimumaxKernels products, ReadKernels(ops, name, ReadProduct));
      PIPELAB_ASSIGN_OR_RETURN(const SimumaxKernels grouped,
                               ReadKernels(ops, absl::StrCat(prefix, "group_matmul"), ReadGrouped));
      if (products.share == 0 && products.shapes.empty()) {
        if (type == NumberType::kFp8) continue;
        return ops.Error(name, "must have tflops and an efficient_factor above 0");
      }
      device->peaks[type] = {FlopsPerSecond(1e12 * products.tflops),
                             Source("published", absl::StrCat("op.", name, ".tflops"))};
      products.shapes.insert(products.shapes.end(), grouped.shapes.begin(), grouped.shapes.end());
      PIPELAB_RETURN_IF_ERROR(AddShapes(ops, name, OperationKind::kMatmul, type,
                                        std::move(products.shapes), rates.get()));
      if (type == NumberType::kFp8) continue;
      SetDefault(name, OperationKind::kMatmul, products.share, device);
      SetDefault(name, OperationKind::kConvolution, products.share, device);
    }
    PIPELAB_RETURN_IF_ERROR(ReadAttentions(ops, device, rates.get()));
    device->rates = std::move(rates);
    return absl::OkStatus();
  }

  absl::Status ReadAttentions(const JsonObject& ops, DeviceSpec* device, KernelRates* rates) {
    constexpr double kCausal = 0.5;  // of the pairs
    std::vector<ShapeRate> shapes;
    for (const auto& [name, pass] : {std::make_pair("sdp_fwd", KernelPass::kForward),
                                     std::make_pair("sdp_bwd", KernelPass::kInputGradient)}) {
      PIPELAB_ASSIGN_OR_RETURN(const SimumaxKernels kernels, ReadKernels(ops, name, ReadAttention));
      for (ShapeRate shape : kernels.shapes) {
        shape.pass = pass;
        shape.tflops *= kCausal;
        shapes.push_back(shape);
      }
      if (pass != KernelPass::kForward || kernels.share == 0) continue;
      const double peak = device->peaks[NumberType::kBf16].value.value() / 1e12;
      SetDefault(name, OperationKind::kAttention, kCausal * kernels.share * kernels.tflops / peak,
                 device);
    }
    return AddShapes(ops, "sdp_fwd", OperationKind::kAttention, NumberType::kBf16,
                     std::move(shapes), rates);
  }

  absl::Status AddShapes(const JsonObject& ops, absl::string_view name, OperationKind kind,
                         NumberType type, std::vector<ShapeRate> shapes, KernelRates* rates) {
    if (shapes.empty()) return absl::OkStatus();
    absl::StatusOr<ShapeRates> made = ShapeRates::Make(kind, std::move(shapes));
    if (!made.ok()) return ops.Error(name, made.status().message());
    rates->shapes[{kind, type}] = {
        *std::move(made),
        Source("measured", kind == OperationKind::kAttention ? "op.sdp_fwd and sdp_bwd, by shape"
                                                             : absl::StrCat("op.", name,
                                                                            " and group_matmul, "
                                                                            "by shape and pass"))};
    return absl::OkStatus();
  }

  // What has no shapes gets the same share at any size.
  void SetDefault(absl::string_view name, OperationKind kind, double share, DeviceSpec* device) {
    if (share <= 0) return;
    device->arithmetic[kind] = {
        {{{1e6, std::min(1.0, share)}}},
        Source("published", absl::StrCat("op.", name, ".efficient_factor"))};
  }

  struct Link {
    double bandwidth = 0, latency = 0, fixed = 0;  // bytes a second, us
  };

  // A collective has what the network says for all where it says nothing itself.
  static absl::StatusOr<Link> ReadLink(const JsonObject& network, absl::string_view name) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject all, network.Object("bandwidth"));
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject ops, network.Object("op"));
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject own, ops.Object(name));
    const auto either = [&](absl::string_view key) -> const JsonObject& {
      return own.HasValue(key) ? own : all;
    };
    Link link;
    PIPELAB_ASSIGN_OR_RETURN(const double gbps, ReadAbove0(all, "gbps", 1e9));
    PIPELAB_ASSIGN_OR_RETURN(
        const double share, ReadAbove0(either("efficient_factor"), "efficient_factor", kMostShare));
    PIPELAB_ASSIGN_OR_RETURN(link.latency, ReadAbove0(either("latency_us"), "latency_us", 1e5));
    if (own.HasValue("fixed_latency_us")) {
      PIPELAB_ASSIGN_OR_RETURN(link.fixed, own.Number("fixed_latency_us"));
    }
    if (!(link.fixed >= 0 && link.fixed <= 1e5)) {
      return own.Error("fixed_latency_us", "must be from 0 to 100000, not ", link.fixed);
    }
    link.bandwidth = gbps * kGib * share;
    return link;
  }

  static Sourced<Nanoseconds> Us(double us, std::string source) {
    return {Nanoseconds(std::llround(us * 1e3)), std::move(source)};
  }

  // A message cannot be faster than its link, whatever share was fitted.
  absl::StatusOr<ClusterLevel> ReadLevel(const JsonObject& networks, const std::string& name) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject network, networks.Object(name));
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject all, network.Object("bandwidth"));
    PIPELAB_ASSIGN_OR_RETURN(const double gbps, ReadAbove0(all, "gbps", 1e9));
    PIPELAB_ASSIGN_OR_RETURN(const Link message, ReadLink(network, "p2p"));
    const std::string source = Source("published", absl::StrCat("networks.", name, ": p2p"));
    ClusterLevel level;
    level.sharing = Sharing::kDevice;
    level.connection.latency = Us(message.latency, source);
    level.connection.bandwidth = {BytesPerSecond(std::min(message.bandwidth, gbps * 1e9)), source};
    return level;
  }

  absl::Status AddRing(const JsonObject& networks, const std::string& name, int64_t ranks,
                       ClusterSpec* cluster) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject network, networks.Object(name));
    PIPELAB_ASSIGN_OR_RETURN(const Link gather, ReadLink(network, "all_gather"));
    PIPELAB_ASSIGN_OR_RETURN(const Link scatter, ReadLink(network, "reduce_scatter"));
    PIPELAB_ASSIGN_OR_RETURN(const Link reduce, ReadLink(network, "all_reduce"));
    const std::string both = Source(
        "published", absl::StrCat("networks.", name, ": all_gather and reduce_scatter together"));
    RingConnection ring;
    ring.ranks = ranks;
    ring.connection.latency = Us((gather.latency + scatter.latency) / 2, both);
    ring.connection.bandwidth = {BytesPerSecond(2 / (1 / gather.bandwidth + 1 / scatter.bandwidth)),
                                 both};
    ring.all_reduce = {BytesPerSecond(reduce.bandwidth),
                       Source("published", absl::StrCat("networks.", name, ": all_reduce"))};
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject ops, network.Object("op"));
    if (ops.Has("all2all")) {
      PIPELAB_ASSIGN_OR_RETURN(const Link exchange, ReadLink(network, "all2all"));
      ring.all_to_all = {BytesPerSecond(exchange.bandwidth),
                         Source("published", absl::StrCat("networks.", name, ": all2all"))};
    }
    cluster->levels[0].rings.push_back(std::move(ring));
    cluster->device.collective_overhead =
        Us(gather.fixed + scatter.fixed,
           Source("published", absl::StrCat("networks.", name,
                                            ": fixed_latency_us of all_gather "
                                            "and reduce_scatter together")));
    return absl::OkStatus();
  }

  absl::Status ReadLevels(ClusterSpec* cluster) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject networks, file_.Object("networks"));
    PIPELAB_ASSIGN_OR_RETURN(const bool pcie, networks.Bool("intra_with_pcie"));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t devices, file_.Integer("num_per_node", 1, 1024));
    const std::string node = pcie ? "intra_node_pcie_8x" : "high_intra_node";
    PIPELAB_ASSIGN_OR_RETURN(cluster->levels.emplace_back(), ReadLevel(networks, node));
    cluster->levels[0].name = "node";
    cluster->levels[0].size = devices;
    for (const int64_t ranks : {2, 4}) {
      const std::string name = absl::StrCat("intra_node_pcie_", ranks, "x");
      if (pcie) PIPELAB_RETURN_IF_ERROR(AddRing(networks, name, ranks, cluster));
    }
    PIPELAB_RETURN_IF_ERROR(AddRing(networks, node, pcie ? 8 : 0, cluster));
    PIPELAB_ASSIGN_OR_RETURN(cluster->levels.emplace_back(), ReadLevel(networks, "inter_node"));
    ClusterLevel& outer = cluster->levels.back();
    outer.name = "cluster";
    outer.size = kNodes;
    Sourced<BytesPerSecond>& bandwidth = outer.connection.bandwidth;
    bandwidth.value = BytesPerSecond(bandwidth.value.value() / static_cast<double>(devices));
    absl::StrAppend(&bandwidth.source, ", a node's, divided by its devices");
    return absl::OkStatus();
  }

  const JsonObject& file_;
  const std::string name_;
};

}  // namespace

bool IsSimumaxSystem(const nlohmann::json& root) {
  return root.is_object() && root.contains("sys_name") && root.contains("accelerator");
}

absl::StatusOr<ClusterSpec> ParseSimumaxSystem(const nlohmann::json& root, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_ASSIGN_OR_RETURN(std::string name, file.String("sys_name"));
  return SimumaxSystem(file, std::move(name)).Read();
}

}  // namespace pipelab
