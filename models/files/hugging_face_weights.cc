#include "models/files/hugging_face_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "models/files/block_scales.h"
#include "models/files/hugging_face_checks.h"
#include "models/files/hugging_face_families.h"
#include "models/files/hugging_face_tensors.h"
#include "tools/base/did_you_mean.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kNormEpsilon = 1e-5;  // of every norm here (kernels/backend.h)

constexpr double kLatentNormEpsilon = 1e-6;  // transformers' norms of latent rows

std::string CheckpointShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

class WeightsReader {
 public:
  WeightsReader(const WeightFamily& family, const ModelGraph& graph, const WeightFiles& files)
      : family_(family), graph_(graph), files_(files) {}

  // The norms' epsilon of the file becomes the scale of the residual stream.
  void SetEpsilon(double epsilon) { stream_ = std::sqrt(kNormEpsilon / epsilon); }
  // Queries are multiplied by the root of this, not by that of a head's size.
  void SetQueryScale(double scalar) { query_scalar_ = scalar; }
  void SetBlocks(const BlockScales& blocks) { blocks_ = blocks; }

  absl::Status Read(const TakeWeight& take) {
    for (const LayerSpec& layer : graph_.layers) {
      for (const ParameterSpec& p : layer.parameters) {
        tied_ = tied_ || !p.tie.empty();
        normed_heads_ = normed_heads_ || absl::EndsWith(p.name, "/qgamma");
      }
    }
    for (const bool collecting : {true, false}) {
      collecting_ = collecting;
      std::set<std::string> done;
      for (const LayerSpec& layer : graph_.layers) {
        for (const ParameterSpec& p : layer.parameters) {
          if (!done.insert(ValueName(p)).second) continue;
          PIPELAB_ASSIGN_OR_RETURN(std::vector<float> value, Value(layer, p));
          if (collecting) continue;
          const auto bad = std::find_if_not(value.begin(), value.end(),
                                            [](float x) { return std::isfinite(x); });
          if (bad != value.end()) {
            return Error("of the weights of \"", p.name, "\" one is ", *bad,
                         "; all must be finite numbers");
          }
          PIPELAB_RETURN_IF_ERROR(take(p, std::move(value)));
        }
      }
    }
    return CheckAllTaken();
  }

 private:
  template <class... Words>
  absl::Status Error(const Words&... words) const {
    return absl::InvalidArgumentError(absl::StrCat(files_.path(), ": ", words...));
  }

  // The file's name of a tensor, which may be without the family's prefix.
  std::string NameIn(const std::string& name) const {
    const std::string with = absl::StrCat(family_.prefix, name);
    return files_.tensors().count(name) > 0 && files_.tensors().count(with) == 0 ? name : with;
  }

  // The first that is there of names with | between them.
  std::string PresentOf(const std::string& names) const {
    const std::vector<std::string> all = absl::StrSplit(names, '|');
    for (const std::string& name : all) {
      if (files_.tensors().count(NameIn(name)) > 0) return name;
    }
    return all[0];
  }

  double TableScale(const ParameterSpec& table) const {
    return stream_ *
           (family_.scaled_embedding ? std::sqrt(static_cast<double>(table.shape.back())) : 1);
  }

  double QueryScale() const {
    if (query_scalar_ == 0) return 1;
    return std::sqrt(Attribute(graph_.layers[1], "head_size") / query_scalar_);
  }

  double ScaleOf(const WeightRule& rule, size_t part) const {
    switch (rule.scale) {
      case WeightScale::kNone:
        return 1;
      case WeightScale::kStream:
        return stream_;
      case WeightScale::kFromStream:
        return 1 / stream_;
      case WeightScale::kTable:
        return TableScale(graph_.layers[0].parameters[0]);
      case WeightScale::kHeadNorm:
        return tied_ ? 1 / TableScale(graph_.layers[0].parameters[0]) : 1;
      case WeightScale::kQueriesAndKeys:
        if (normed_heads_) return part < 2 ? stream_ : 1;
        return part == 0 ? QueryScale() : 1;
      case WeightScale::kQueryNorm:
        return QueryScale();
      case WeightScale::kLatentNorm:
        return std::sqrt(kNormEpsilon / kLatentNormEpsilon);
    }
    return 1;
  }

  absl::StatusOr<std::vector<float>> Value(const LayerSpec& layer, const ParameterSpec& p) {
    const auto [pattern, block] = PatternOf(p.name);
    const auto rule =
        std::find_if(family_.rules.begin(), family_.rules.end(),
                     [&, &wanted = pattern](const WeightRule& r) { return r.ours == wanted; });
    if (rule == family_.rules.end()) {
      return Error("no weights of ", family_.types[0], " are the parameter \"", p.name, "\"");
    }
    const std::string theirs = PresentOf(absl::StrReplaceAll(rule->theirs, {{"#", block}}));
    const int64_t count = absl::StrContains(theirs, "*") ? p.shape[0] : 1;
    const int64_t cols = p.shape.back(), rows = p.size() / count / cols;
    std::vector<float> value(collecting_ ? 0 : p.size());
    for (int64_t expert = 0; expert < count; ++expert) {
      TensorPart part = PartOf(*rule, layer, p, rows, cols);
      const std::vector<std::string> names =
          PartsOf(absl::StrReplaceAll(theirs, {{"*", absl::StrCat(expert)}}));
      for (size_t i = 0; i < names.size(); ++i) {
        // As a tensor-parallel group sees them: q is as wide as its heads of k.
        if (names.size() > 1) part.width = cols / p.split_units() * (i == 0 ? p.split_lead : 1);
        part.name = NameIn(names[i]);
        part.scale = ScaleOf(*rule, i);
        if (collecting_) {
          needed_.insert(part.name);
          if (BlockScales::Has(files_, part.name)) {
            needed_.insert(BlockScales::NameFor(part.name));
          }
        } else {
          PIPELAB_RETURN_IF_ERROR(
              Place(part, p, cols, absl::MakeSpan(value).subspan(expert * rows * cols)));
        }
        part.column += part.width;
      }
    }
    return value;
  }

  // The part that has all columns, as the only tensor.
  static TensorPart PartOf(const WeightRule& rule, const LayerSpec& layer, const ParameterSpec& p,
                           int64_t rows, int64_t cols) {
    const auto number = [&layer](const char* name) {
      const auto it = layer.attributes.find(name);
      return it == layer.attributes.end() ? 0 : static_cast<int64_t>(it->second);
    };
    TensorPart part;
    part.layout = rule.layout;
    part.vector = p.shape.size() == 1;
    part.rows = part.inputs = rows;
    part.width = cols;
    part.patch = number("patch");
    part.rope_size = number("rope_size");
    part.nope_size = number("nope_size");
    const int64_t latent = number("rank");
    if (rule.layout == WeightLayout::kLatent) part.outputs = cols + part.rope_size;
    if (rule.layout == WeightLayout::kBehindLatent) {
      part.outputs = latent + cols;
      part.first_output = latent;
    }
    return part;
  }

  absl::Status Place(TensorPart part, const ParameterSpec& p, int64_t cols,
                     absl::Span<float> value) {
    const auto it = files_.tensors().find(part.name);
    if (it == files_.tensors().end()) {
      return Error("has no tensor \"", part.name, "\", for the parameter \"", p.name, "\"",
                   DidYouMean(part.name, Others()));
    }
    if (part.outputs == 0) part.outputs = part.width;
    const std::vector<int64_t> needed = ShapeOf(part);
    std::vector<int64_t> shape = it->second.shape;
    // A leading 1 says nothing.
    while (shape.size() > needed.size() && shape[0] == 1) shape.erase(shape.begin());
    const bool longer = part.layout == WeightLayout::kFirstRows && shape.size() == 2 &&
                        shape[0] >= needed[0] && shape[1] == needed[1];
    if (shape != needed && !longer) {
      return Error("tensor \"", part.name, "\" is ", CheckpointShapeText(it->second.shape),
                   " there; the model takes ", CheckpointShapeText(needed));
    }
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> there, blocks_.Read(files_, part.name));
    const double shift = family_.gammas_about_one && absl::EndsWith(p.name, "gamma") ? 1 : 0;
    for (int64_t i = 0; i < part.rows; ++i) {
      for (int64_t j = 0; j < part.width; ++j) {
        const float number = there[PlaceOf(part, i, j)];
        value[i * cols + part.column + j] = static_cast<float>((number + shift) * part.scale);
      }
    }
    return absl::OkStatus();
  }

  // Tensors that the model does not take: some may have mistyped names.
  std::vector<absl::string_view> Others() const {
    std::vector<absl::string_view> others;
    for (const auto& [name, tensor] : files_.tensors()) {
      if (needed_.count(name) == 0) others.push_back(name);
    }
    return others;
  }

  // Checks the biases of a router, which here chooses by the scores themselves.
  absl::Status CheckZeros(const std::string& name) const {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> bias, files_.Read(name));
    if (std::all_of(bias.begin(), bias.end(), [](float b) { return b == 0; })) {
      return absl::OkStatus();
    }
    return Error("tensor \"", name,
                 "\" is not zero, and no router here has a bias: it would choose other experts");
  }

  absl::Status CheckAllTaken() const {
    for (absl::string_view name : Others()) {
      const auto& no_weights = family_.no_weights;
      if (tied_ && name == "lm_head.weight") continue;
      if (absl::EndsWith(name, ".e_score_correction_bias")) {
        PIPELAB_RETURN_IF_ERROR(CheckZeros(std::string(name)));
        continue;
      }
      if (std::any_of(no_weights.begin(), no_weights.end(),
                      [&](absl::string_view ending) { return absl::EndsWith(name, ending); })) {
        continue;
      }
      return Error("tensor \"", name, "\" of ",
                   CheckpointShapeText(files_.tensors().at(std::string(name)).shape),
                   " is no part of the model that the config.json describes");
    }
    return absl::OkStatus();
  }

  const WeightFamily& family_;
  const ModelGraph& graph_;
  const WeightFiles& files_;
  BlockScales blocks_;
  double stream_ = 1, query_scalar_ = 0;
  bool tied_ = false, normed_heads_ = false;
  bool collecting_ = false;
  std::set<std::string> needed_;  // names of tensors
};

}  // namespace

absl::Status ReadHuggingFaceWeights(const nlohmann::json& config, absl::string_view what,
                                    const ModelGraph& graph, const WeightFiles& files,
                                    const TakeWeight& take) {
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(config, what));
  PIPELAB_ASSIGN_OR_RETURN(const std::string type, file.String("model_type"));
  const WeightFamily* const family = FindWeightFamily(type);
  if (family == nullptr) {
    return file.Error("model_type", "\"", type, "\": its weights cannot be read");
  }
  PIPELAB_ASSIGN_OR_RETURN(const double epsilon, NormEpsilonOf(file, *family));
  WeightsReader reader(*family, graph, files);
  reader.SetEpsilon(epsilon);
  constexpr char kQueryScalar[] = "query_pre_attn_scalar";
  if (file.HasValue(kQueryScalar)) {
    PIPELAB_ASSIGN_OR_RETURN(const double scalar, file.Number(kQueryScalar));
    if (!(scalar >= 1e-6 && scalar <= 1e6)) {
      return file.Error(kQueryScalar, scalar, ": must be from 1e-6 to 1e6");
    }
    reader.SetQueryScale(scalar);
  }
  PIPELAB_ASSIGN_OR_RETURN(const BlockScales blocks, BlockScales::Of(file));
  reader.SetBlocks(blocks);
  return reader.Read(take);
}

}  // namespace pipelab
